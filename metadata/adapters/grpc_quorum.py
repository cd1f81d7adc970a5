"""The `Quorum` service: states, handing over leadership, and the history of elections as this node saw it."""

from collections.abc import AsyncGenerator, Iterable, Iterator
from itertools import islice
from typing import Protocol, TypeVar

import grpc

from metadata.adapters.grpc_broker_access import Context, MemberGate
from metadata.adapters.grpc_members import MembersCalls, MembersSource
from metadata.adapters.grpc_source import LogUnreadable, NotTheLeader, SliceTurns
from metadata.adapters.state_messages import reports_message
from metadata.state_comparison import StateComparison
from raft.elections_history import LeaderChangeAt, RoleEvent
from raft.messages import DescribeQuorumResponse, ReplicaStatus
from wire.errors import DecodeError
from wire.proto import quorum_pb2 as pb
from wire.proto.quorum_pb2_grpc import QuorumServicer
from wire.protocol.api_keys import ApiKey

# Of one turn of the loop, some milliseconds each: a note is a line of JSON, for a change two batches are read.
_EVENTS_AT_ONCE = 128
_CHANGES_AT_ONCE = 16
T = TypeVar("T")


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
        gate: MemberGate | None = None,
    ) -> None:
        """Without `members` the calls that tell of nodes and brokers are not served."""
        self._source = source
        self._slices = slices
        self.gate = gate
        self.members = members

    async def TransferLeadership(  # noqa: N802
        self, request: pb.TransferLeadershipRequest, context: Context
    ) -> pb.TransferLeadershipResponse:
        await self.admit(context, ApiKey.ELECT_LEADERS)
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
        await self.admit(context, ApiKey.DESCRIBE_QUORUM)
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
        await self.admit(context, ApiKey.DESCRIBE_QUORUM)
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
