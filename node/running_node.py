"""What the listeners for operators (metrics, gRPC) read off a node at work.

They are started by `node.cluster_node` and must not import it: hence the protocol.
"""

from typing import Protocol

from metadata.image.image import MetadataImage
from network.server import KafkaServer
from node.broker import BrokerRole
from node.commit_watch import CommitWatch
from node.config.model import NodeConfig
from node.controller import ControllerRole
from node.observability.latency import LatencyMeter
from node.quorum_member import QuorumMember
from raft.adapters.clock import MonotonicWallClock


class RunningNode(Protocol):
    """`node.cluster_node.ClusterNode`; to be used on its loop."""

    config: NodeConfig
    clock: MonotonicWallClock
    member: QuorumMember
    commits: CommitWatch
    controller: ControllerRole | None
    broker: BrokerRole | None
    commit_latency: LatencyMeter
    skipped_records: int

    @property
    def committed_image(self) -> MetadataImage: ...

    @property
    def servers(self) -> tuple[tuple[str, KafkaServer], ...]: ...
