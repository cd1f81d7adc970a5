"""What the listeners for operators (metrics, gRPC) read off a node at work.

They are started by `node.cluster_node` and must not import it: hence the protocol.
"""

from typing import TYPE_CHECKING, Protocol

from kquorum.metadata.image.image import MetadataImage
from kquorum.network.limits import ServerCounters
from kquorum.network.server import KafkaServer
from kquorum.node.commit_watch import CommitWatch
from kquorum.node.config.model import NodeConfig
from kquorum.node.controller import ControllerRole
from kquorum.node.observability.latency import LatencyMeter
from kquorum.node.quorum_member import QuorumMember
from kquorum.raft.adapters.clock import MonotonicWallClock

if TYPE_CHECKING:
    # A node without a broker does not load one.
    from kquorum.node.broker import BrokerRole


class CountedListener(Protocol):
    """gRPC's listener, for those who may not import gRPC."""

    @property
    def counters(self) -> ServerCounters: ...


class RunningNode(Protocol):
    """`node.cluster_node.ClusterNode`; to be used on its loop."""

    config: NodeConfig
    clock: MonotonicWallClock
    member: QuorumMember
    commits: CommitWatch
    controller: ControllerRole | None
    broker: "BrokerRole | None"
    commit_latency: LatencyMeter
    skipped_records: int

    @property
    def committed_image(self) -> MetadataImage: ...

    @property
    def grpc_server(self) -> CountedListener | None: ...

    @property
    def servers(self) -> tuple[tuple[str, KafkaServer], ...]: ...
