"""The part of the `Quorum` service that tells of nodes and brokers: what they serve, and how far they follow."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import grpc

from metadata.grpc.access import Context, MemberGate
from metadata.grpc.source import NotTheLeader
from metadata.image.image import Provenance
from metadata.members import BrokerProgress, BrokerStanding, Waited, waited_for
from wire.proto import quorum_pb2 as pb
from wire.protocol.api_keys import ApiKey

WAIT_TIMEOUT_MS: Final = 10_000
LONGEST_WAIT_MS: Final = 600_000
LOOK_EVERY_S: Final = 0.02
_STANDINGS: Final = {
    BrokerStanding.FENCED: pb.FENCED,
    BrokerStanding.ACTIVE: pb.ACTIVE,
    BrokerStanding.IN_CONTROLLED_SHUTDOWN: pb.IN_CONTROLLED_SHUTDOWN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLife:
    """As the broker itself knows it."""

    state: str
    epoch: int
    is_fenced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """What a node serves, and of when it is; `reason` is why it is not ready."""

    node_id: int
    cluster_id: str
    roles: tuple[str, ...]
    reason: str
    is_cut_off: bool
    ms_since_commit: int | None
    provenance: Provenance
    leader_id: int
    broker: BrokerLife | None


class MembersSource(Protocol):
    """A node, as these calls use it; all of it belongs to the node's event loop."""

    def describe_node(self) -> NodeStatus: ...

    def leader_epoch(self) -> int: ...

    def brokers(self) -> Sequence[BrokerProgress]:
        """By id; raises NotTheLeader elsewhere than at the active controller."""
        ...

    def committed_offset(self) -> int:
        """The last in the committed image."""
        ...

    async def last_committed_offset(self) -> int:
        """The same, once all is in it that was committed anywhere when this was called. Raises NotTheLeader."""
        ...


class MembersCalls:
    """Mixed into the servicer of `Quorum`. `gate` judges callers; none: all may call."""

    members: MembersSource | None = None
    gate: MemberGate | None = None

    async def admit(self, context: Context, api_key: ApiKey) -> None:
        """Ends the call of who lacks the right."""
        if self.gate is not None:
            await self.gate.admit(context, api_key)

    async def DescribeNode(  # noqa: N802
        self,
        request: pb.DescribeNodeRequest,  # noqa: ARG002 - gRPC's signature
        context: Context,
    ) -> pb.DescribeNodeResponse:
        source = await self._members(context)
        return node_message(source.describe_node())

    async def DescribeBrokers(  # noqa: N802
        self,
        request: pb.DescribeBrokersRequest,  # noqa: ARG002 - gRPC's signature
        context: Context,
    ) -> pb.DescribeBrokersResponse:
        source = await self._members(context)
        try:
            brokers = source.brokers()
        except NotTheLeader as refusal:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(refusal))
            raise
        node = source.describe_node()
        return pb.DescribeBrokersResponse(
            leader_id=node.node_id,
            leader_epoch=source.leader_epoch(),
            committed_offset=source.committed_offset(),
            brokers=[progress_message(broker) for broker in brokers],
            cluster_id=node.cluster_id,
        )

    async def WaitApplied(  # noqa: N802
        self, request: pb.WaitAppliedRequest, context: Context
    ) -> pb.WaitAppliedResponse:
        source = await self._members(context)
        timeout_ms = min(request.timeout_ms, LONGEST_WAIT_MS) if request.timeout_ms > 0 else WAIT_TIMEOUT_MS
        try:
            waited = await wait_applied(
                source, request.offset if request.HasField("offset") else None, timeout_ms
            )
        except NotTheLeader as refusal:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(refusal))
            raise
        return pb.WaitAppliedResponse(
            offset=waited.offset,
            is_applied=waited.is_applied,
            lagging=[progress_message(broker) for broker in waited.lagging],
            fenced=[progress_message(broker) for broker in waited.fenced],
        )

    async def _members(self, context: Context) -> MembersSource:
        await self.admit(context, ApiKey.DESCRIBE_QUORUM)
        if self.members is None:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "this node tells nothing of members")
        assert self.members is not None, "an aborted call does not go on"
        return self.members


async def wait_applied(source: MembersSource, offset: int | None, timeout_ms: int) -> Waited:
    """Until all that are not fenced have applied it, or the time is over. An offset that is not committed yet is
    waited for as well. Raises NotTheLeader, also when the lead is lost meanwhile."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_ms / 1000
    if offset is None:
        try:
            async with asyncio.timeout_at(deadline):
                offset = await source.last_committed_offset()
        except TimeoutError:
            return waited_for(source.committed_offset() + 1, source.brokers())
    waited = waited_for(offset, source.brokers())
    while not waited.is_applied and loop.time() < deadline:
        await asyncio.sleep(LOOK_EVERY_S)
        waited = waited_for(offset, source.brokers())
    return waited


def node_message(node: NodeStatus) -> pb.DescribeNodeResponse:
    life = node.broker
    return pb.DescribeNodeResponse(
        node_id=node.node_id,
        cluster_id=node.cluster_id,
        roles=node.roles,
        is_ready=not node.reason,
        reason=node.reason,
        is_cut_off=node.is_cut_off,
        ms_since_commit=node.ms_since_commit,
        offset=node.provenance.last_contained_offset,
        epoch=node.provenance.last_contained_epoch,
        timestamp_ms=node.provenance.timestamp_ms,
        leader_id=node.leader_id,
        broker=None
        if life is None
        else pb.BrokerLife(state=life.state, epoch=life.epoch, is_fenced=life.is_fenced),
    )


def progress_message(broker: BrokerProgress) -> pb.BrokerProgress:
    registration = broker.registration
    return pb.BrokerProgress(
        broker_id=registration.id,
        standing=_STANDINGS[broker.standing],
        epoch=registration.epoch,
        endpoints=[
            pb.BrokerEndpoint(name=each.name, host=each.host, port=each.port)
            for each in registration.end_points
        ],
        rack=registration.rack,
        applied_offset=broker.applied_offset,
        lag=broker.lag,
        silent_ms=broker.silent_ms,
        directories=[each.bytes for each in registration.log_dirs],
    )
