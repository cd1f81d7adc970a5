"""The `Quorum` service: the replicas' states, leadership transfer, the history of elections as this node saw it, and
the nodes and brokers: what each serves, and how far it follows the log.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Protocol, TypeVar

import grpc

from kquorum.metadata.grpc.access import Context
from kquorum.metadata.grpc.source import LogUnreadable, NotTheLeader
from kquorum.metadata.grpc.turns import SliceTurns
from kquorum.metadata.image.image import Provenance
from kquorum.metadata.members import BrokerProgress, BrokerStanding, Waited, waited_for
from kquorum.metadata.state_hash.comparison import StateComparison, reports_message
from kquorum.raft.elections_history import LeaderChangeAt, RoleEvent
from kquorum.raft.messages import DescribeQuorumResponse, ReplicaStatus
from kquorum.wire.errors import DecodeError
from kquorum.wire.proto import quorum_pb2 as pb
from kquorum.wire.proto.quorum_pb2_grpc import QuorumServicer

# Of one turn of the loop, some milliseconds each: a note is a line of JSON, for a change two batches are read.
_EVENTS_AT_ONCE: Final = 128
_CHANGES_AT_ONCE: Final = 16
WAIT_TIMEOUT_MS: Final = 10_000
LONGEST_WAIT_MS: Final = 600_000
LOOK_EVERY_S: Final = 0.02
_STANDINGS: Final = {
    BrokerStanding.FENCED: pb.FENCED,
    BrokerStanding.ACTIVE: pb.ACTIVE,
    BrokerStanding.IN_CONTROLLED_SHUTDOWN: pb.IN_CONTROLLED_SHUTDOWN,
}

T = TypeVar("T")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderSpace:
    """The file system of a folder; `fault` says why it is not known."""

    path: str
    total_bytes: int = 0
    usable_bytes: int = 0
    total_inodes: int = 0
    usable_inodes: int = 0
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """A node's machine, as its process sees it; -1 for no limit, or for what is not known."""

    now_ms: int
    version: str
    open_files: int
    max_open_files: int
    folders: tuple[FolderSpace, ...]


class MembersSource(Protocol):
    """A node, as these calls use it; all of it belongs to the node's event loop."""

    def describe_node(self) -> NodeStatus: ...

    async def host_facts(self) -> HostFacts: ...

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
    """Mixed into the servicer of `Quorum`."""

    members: MembersSource | None = None

    async def DescribeNode(  # noqa: N802
        self,
        request: pb.DescribeNodeRequest,
        context: Context,
    ) -> pb.DescribeNodeResponse:
        source = await self._members(context)
        host = await source.host_facts() if request.with_host else None
        return node_message(source.describe_node(), host)

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


def node_message(node: NodeStatus, host: HostFacts | None = None) -> pb.DescribeNodeResponse:
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
        host=None if host is None else _host_message(host),
    )


def _host_message(host: HostFacts) -> pb.HostFacts:
    return pb.HostFacts(
        now_ms=host.now_ms,
        version=host.version,
        open_files=host.open_files,
        max_open_files=host.max_open_files,
        folders=[
            pb.FolderSpace(
                path=each.path,
                total_bytes=each.total_bytes,
                usable_bytes=each.usable_bytes,
                total_inodes=each.total_inodes,
                usable_inodes=each.usable_inodes,
                fault=each.fault,
            )
            for each in host.folders
        ],
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


class TransferRefused(Exception):
    """The leader goes on leading; the text says why."""


class QuorumSource(Protocol):
    """A node's replica, as the service uses it; every call belongs to the node's event loop."""

    @property
    def node_id(self) -> int: ...

    @property
    def leader_epoch(self) -> int: ...

    @property
    def states(self) -> StateComparison: ...

    async def describe_quorum(self) -> DescribeQuorumResponse:
        """As this node knows it; raises NotTheLeader when the node ends meanwhile."""
        ...

    async def transfer_leadership(self, target_id: int) -> None:
        """Returns once the target leads. Raises NotTheLeader; or TransferRefused, also where it was not elected."""
        ...

    def role_events(self) -> Iterable[RoleEvent]:
        """What this node noted, read as it is asked for."""
        ...

    def leader_changes(self, from_epoch: int) -> Iterator[LeaderChangeAt]:
        """Those of the committed log, ascending, read as they are asked for; raises LogUnreadable or DecodeError."""
        ...


class QuorumService(MembersCalls, QuorumServicer):
    def __init__(
        self,
        source: QuorumSource,
        slices: SliceTurns,
        members: MembersSource | None = None,
    ) -> None:
        """Without `members` the calls that tell of nodes and brokers are not served."""
        self._source = source
        self._slices = slices
        self.members = members

    async def TransferLeadership(  # noqa: N802
        self, request: pb.TransferLeadershipRequest, context: Context
    ) -> pb.TransferLeadershipResponse:
        leader_epoch = self._source.leader_epoch
        try:
            await self._source.transfer_leadership(request.target_id)
        except (NotTheLeader, TransferRefused) as refusal:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(refusal))
        return pb.TransferLeadershipResponse(leader_id=self._source.node_id, leader_epoch=leader_epoch)

    async def DescribeQuorum(  # noqa: N802
        self,
        request: pb.DescribeQuorumRequest,  # noqa: ARG002 - gRPC's signature
        context: Context,
    ) -> pb.DescribeQuorumResponse:
        try:
            found = await self._source.describe_quorum()
        except NotTheLeader as refusal:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(refusal))
            raise
        voters = [replica_message(status, is_voter=True) for status in found.current_voters]
        return pb.DescribeQuorumResponse(
            node_id=self._source.node_id,
            leader_id=found.leader_id,
            leader_epoch=found.leader_epoch,
            high_watermark=found.high_watermark,
            states=reports_message(self._source.states),
            replicas=[*voters, *(replica_message(status, is_voter=False) for status in found.observers)],
        )

    async def GetElections(  # noqa: N802
        self, request: pb.GetElectionsRequest, context: Context
    ) -> pb.GetElectionsResponse:
        response = pb.GetElectionsResponse(node_id=self._source.node_id)
        try:
            async for events in self._in_slices(self._source.role_events(), _EVENTS_AT_ONCE):
                response.events.extend(
                    event_message(event) for event in events if event.epoch >= request.from_epoch
                )
            changes = self._source.leader_changes(request.from_epoch)
            async for some in self._in_slices(changes, _CHANGES_AT_ONCE):
                response.leader_changes.extend(map(change_message, some))
        except (LogUnreadable, DecodeError) as error:
            await context.abort(grpc.StatusCode.DATA_LOSS, str(error))
        return response

    async def _in_slices(self, items: Iterable[T], count: int) -> AsyncGenerator[list[T]]:
        """A long history is read between the node's other work, and in turn with what other clients read."""
        left = iter(items)
        while True:
            async with self._slices:
                some = list(islice(left, count))
            if not some:
                return
            yield some


def replica_message(status: ReplicaStatus, *, is_voter: bool) -> pb.QuorumReplica:
    return pb.QuorumReplica(
        replica_id=status.replica_id,
        directory_id=status.directory_id.bytes,
        is_voter=is_voter,
        log_end_offset=status.log_end_offset,
        last_fetch_timestamp_ms=status.last_fetch_timestamp_ms,
        last_caught_up_timestamp_ms=status.last_caught_up_timestamp_ms,
    )


def event_message(event: RoleEvent) -> pb.RoleEvent:
    return pb.RoleEvent(
        timestamp_ms=event.timestamp_ms, role=event.role, epoch=event.epoch, cause=event.cause
    )


def change_message(change: LeaderChangeAt) -> pb.LeaderChange:
    return pb.LeaderChange(
        offset=change.offset,
        epoch=change.epoch,
        leader_id=change.leader_id,
        timestamp_ms=change.timestamp_ms,
        voters=change.voters,
        granting_voters=change.granting_voters,
        previous_ms=change.previous_ms,
    )


def history_of(
    response: pb.GetElectionsResponse,
) -> tuple[tuple[RoleEvent, ...], tuple[LeaderChangeAt, ...]]:
    """An answer of GetElections, as the merge takes it."""
    events = tuple(
        RoleEvent(
            node_id=response.node_id,
            timestamp_ms=event.timestamp_ms,
            role=event.role,
            epoch=event.epoch,
            cause=event.cause,
        )
        for event in response.events
    )
    changes = tuple(
        LeaderChangeAt(
            offset=change.offset,
            epoch=change.epoch,
            leader_id=change.leader_id,
            timestamp_ms=change.timestamp_ms,
            voters=tuple(change.voters),
            granting_voters=tuple(change.granting_voters),
            previous_ms=change.previous_ms if change.HasField("previous_ms") else None,
        )
        for change in response.leader_changes
    )
    return events, changes
