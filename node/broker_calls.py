"""How a node carries the requests of members that speak gRPC to the active controller."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kquorum.metadata.image.image import MetadataImage
from kquorum.node.authorization import LoadWatch, gate_of
from kquorum.node.config.model import NodeConfig
from kquorum.node.config.security_keys import GRPC
from kquorum.node.quorum_member import QuorumMember
from kquorum.node.security import certificate_names

if TYPE_CHECKING:
    from kquorum.metadata.grpc.access import MemberGate
    from kquorum.metadata.grpc.broker.service import BrokerCalls


def broker_calls(config: NodeConfig, member: QuorumMember) -> "BrokerCalls":
    """Imports gRPC, which only nodes with a listener for it need."""
    from kquorum.metadata.grpc.broker.requests import Membership
    from kquorum.metadata.grpc.broker.service import BrokerCalls

    membership = Membership(
        cluster_id=member.cluster_id,
        heartbeat_interval_ms=config.broker_heartbeat_interval_ms,
        session_timeout_ms=config.broker_session_timeout_ms,
    )
    # As a broker's own: a heartbeat that is stuck at a dead controller must not eat the session.
    heartbeats = member.channel(
        "grpc-heartbeat", retry_timeout_ms=max(1, config.broker_session_timeout_ms // 2)
    )
    others = member.channel("grpc-member", retry_timeout_ms=config.request_timeout_ms)
    return BrokerCalls(membership, heartbeats, others)


def member_gate(config: NodeConfig, member: QuorumMember, image: Callable[[], MetadataImage]) -> "MemberGate":
    """What judges the callers of all gRPC services. `image` is the committed one."""
    from kquorum.metadata.grpc.access import MemberGate

    is_loaded = LoadWatch(
        has_heard=lambda: member.ms_since_commit() is not None,
        high_watermark=lambda: member.driver.high_watermark,
        applied_offset=lambda: image().provenance.last_contained_offset,
    )
    gate = gate_of(config, member.now_ms, is_loaded)
    return MemberGate(gate, image, certificate_names(config, GRPC))
