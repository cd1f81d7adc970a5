"""RaftNode: one replica of the quorum, as inputs in and one ordered `Ready` out.

    node.step(now_ms, input)        as often as things happen
    ready = node.take_ready(now_ms) once per turn; carry it out in order, arm one timer for `deadline_ms`

`step` takes an input in; `take_ready` lets time-outs fire, sends what is due, closes the open batch and hands all of
it over. So everything that arrives in one turn of the driver's loop shares one batch, one flush and one answer to each
waiting follower. Nothing here reads a clock or has a random source of its own.
"""

from collections.abc import Iterator, Sequence
from typing import assert_never

from kquorum.raft import dispatch, elections, membership
from kquorum.raft.batches import Accumulator
from kquorum.raft.config import QuorumConfig
from kquorum.raft.elections import defers_to_rival, votes_wanted
from kquorum.raft.errors import NotLeaderError
from kquorum.raft.follower import fetching
from kquorum.raft.follower.fetching import next_fetch_at_ms
from kquorum.raft.follower.snapshot_fetching import handle_snapshot_event
from kquorum.raft.full_disk import handle_writes_paused
from kquorum.raft.inputs import (
    Input,
    LogFlushed,
    LogStartAdvanced,
    QuorumStateWritten,
    ReadRequested,
    RequestFailed,
    RequestReceived,
    ResignRequested,
    ResponseReceived,
    ShutdownRequested,
    SnapshotPieceWritten,
    SnapshotReceived,
    SnapshotRefused,
    SnapshotWritten,
    TimeAdvanced,
    WritesPaused,
)
from kquorum.raft.leader import turn
from kquorum.raft.leader.fetch_handler import answer_displaced_fetches
from kquorum.raft.leader.leadership_transfer import (
    begin_shutdown,
    handle_resign,
    poll_handed_over,
    poll_resigned,
)
from kquorum.raft.leader.majority import handle_read, is_asked_for
from kquorum.raft.log_index import LogIndex
from kquorum.raft.messages import (
    NO_LEADER,
)
from kquorum.raft.ports import LogSummary, QuorumAt, RandomSource
from kquorum.raft.ready import LeaderAndEpoch, Outbox, QuorumState, Ready, VotersChanged
from kquorum.raft.recovery import enter_first_role, leader_confirmations_wanted, maybe_become_whole
from kquorum.raft.replica import Replica
from kquorum.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
    deadline_of,
    name_of,
)
from kquorum.raft.voters import Endpoint, VoterHistory, VoterSet
from kquorum.wire.compression import CompressionCodec

# A turn may pass through this many roles (a sole voter: unattached, prospective, candidate, leader) and no more.
MAX_ROLES_PER_TURN = 6


class RaftNode:
    def __init__(
        self,
        config: QuorumConfig,
        voters: VoterSet,
        log: LogSummary,
        state: QuorumState | None,
        random_source: RandomSource,
        now_ms: int,
        codec: CompressionCodec = CompressionCodec.NONE,
    ) -> None:
        """`voters` is the static configuration's, empty for a dynamic quorum; `log` and `state` are what the stores
        recovered, all of it durable. Raises ValueError for a bad config."""
        problems = config.problems()
        if problems:
            raise ValueError("; ".join(problems))
        accumulator = Accumulator(config.max_batch_bytes, codec)
        history = VoterHistory.of(voters, log.quorum_records)
        self._replica = Replica(
            config, history, LogIndex(log), state or QuorumState(), random_source, accumulator
        )
        self._reported_high_watermark = -1
        self._reported_voters: VotersChanged | None = None
        enter_first_role(self._replica, now_ms)
        self._built_at_ms: int | None = now_ms
        # The role that waits for its election state to be on the disk, and since when.
        self._role_to_write: tuple[Role, int] | None = None

    # What a state machine may ask (raft.ports.RaftPort)

    @property
    def node_id(self) -> int:
        return self._replica.config.node_id

    @property
    def leader_id(self) -> int:
        return self._replica.leader_id

    @property
    def leader_epoch(self) -> int:
        return self._replica.epoch

    @property
    def high_watermark(self) -> int:
        return self._replica.high_watermark

    @property
    def log_end_offset(self) -> int:
        """Where the next proposal will begin, proposals that are not in a batch yet included."""
        if isinstance(self._replica.role, Leader):
            return self._replica.accumulator.next_offset
        return self._replica.log.log_end_offset

    @property
    def role(self) -> str:
        return name_of(self._replica.role)

    @property
    def replica(self) -> Replica:
        """For invariants, status displays and tests; not to be changed from outside."""
        return self._replica

    @property
    def voters(self) -> VoterSet:
        return self._replica.voters

    @property
    def kraft_version(self) -> int:
        return self._replica.voter_history.kraft_version

    def quorum_at(self, end_offset: int) -> QuorumAt:
        history = self._replica.voter_history
        return QuorumAt(history.voters_at(end_offset - 1), history.kraft_version_at(end_offset - 1))

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        return self._replica.endpoint_of(node_id)

    def propose(self, now_ms: int, leader_epoch: int, values: Sequence[bytes]) -> int:
        leader = self._leader_of(leader_epoch)
        if leader.transfer is not None:
            # What is proposed now would keep the successor from catching up.
            raise NotLeaderError(leader.transfer.target_id, leader_epoch)
        return self._replica.accumulator.add(values, now_ms)

    def upgrade_kraft_version(
        self, now_ms: int, leader_epoch: int, kraft_version: int, *, validate_only: bool = False
    ) -> str | None:
        leader = self._leader_of(leader_epoch)
        return membership.upgrade_kraft_version(
            self._replica, leader, now_ms, kraft_version, validate_only=validate_only
        )

    def _leader_of(self, leader_epoch: int) -> Leader:
        role = self._replica.role
        if not isinstance(role, Leader) or leader_epoch != self._replica.epoch:
            raise NotLeaderError(self.leader_id, self._replica.epoch)
        return role

    def resign(self, now_ms: int, leader_epoch: int) -> None:
        self.step(now_ms, ResignRequested(leader_epoch))

    # Inputs

    def step(self, now_ms: int, event: Input) -> None:
        replica = self._replica
        match event:
            case RequestReceived(request_id, request):
                dispatch.handle_request(replica, now_ms, request_id, request)
            case ResponseReceived(correlation_id, source_id, response):
                dispatch.handle_response(replica, now_ms, correlation_id, source_id, response)
            case RequestFailed(correlation_id, source_id, reason):
                dispatch.handle_failure(replica, now_ms, correlation_id, source_id, reason)
            case LogFlushed(end_offset, truncations):
                replica.log.flushed(end_offset, truncations)
            case ResignRequested(leader_epoch):
                handle_resign(replica, now_ms, leader_epoch)
            case ShutdownRequested():
                begin_shutdown(replica, now_ms)
            case ReadRequested(read_id):
                handle_read(replica, read_id)
            case WritesPaused(is_paused):
                handle_writes_paused(replica, now_ms, is_paused=is_paused)
            case (
                SnapshotReceived()
                | SnapshotPieceWritten()
                | SnapshotRefused()
                | SnapshotWritten()
                | LogStartAdvanced()
            ):
                handle_snapshot_event(replica, now_ms, event)
            case QuorumStateWritten():
                self._state_written(now_ms)
            case TimeAdvanced():
                pass
            case _:
                assert_never(event)

    def _state_written(self, now_ms: int) -> None:
        """What the role says to others leaves only now, so that its time begins now. Were the disk's time part of it, a
        candidate with a slow disk would give up before any voter could have answered, and do so again and again."""
        if self._role_to_write is None:
            return
        role, since_ms = self._role_to_write
        self._role_to_write = None
        if self._replica.role is role:
            put_off_deadline(role, now_ms - since_ms)

    # Output

    def take_ready(self, now_ms: int) -> Ready:
        replica = self._replica
        if self._built_at_ms is not None:
            # The process may have taken long to come up since; its first deadline counts from now.
            put_off_deadline(replica.role, now_ms - self._built_at_ms)
            self._built_at_ms = None
        maybe_become_whole(replica, now_ms)
        for _ in range(MAX_ROLES_PER_TURN):
            role = replica.role
            self._poll(now_ms)
            if replica.role is role:
                break
        else:
            raise AssertionError(f"still changing roles after {MAX_ROLES_PER_TURN}: {self.role}")
        answer_displaced_fetches(replica)
        poll_handed_over(replica, now_ms)
        outbox, replica.outbox = replica.outbox, Outbox()
        self._role_to_write = None if outbox.quorum_state is None else (replica.role, now_ms)
        return Ready(
            truncate_to=outbox.truncate_to,
            append=tuple(outbox.append),
            snapshot_chunks=tuple(outbox.snapshot_chunks),
            load_snapshot=outbox.load_snapshot,
            # The missing election state is what tells a replica that crashes now that it must not vote yet.
            quorum_state=None if replica.has_lost_its_state else outbox.quorum_state,
            requests=tuple(outbox.requests),
            responses=tuple(outbox.responses),
            high_watermark=self._take_high_watermark(),
            leader=self._take_leader(),
            voters_changed=self._take_voters(),
            reads=tuple(outbox.reads),
            has_caught_up=outbox.has_caught_up,
            role_changes=tuple(outbox.role_changes),
            deadline_ms=next_deadline_ms(replica, now_ms),
            is_shut_down=self._is_shut_down(),
        )

    def _poll(self, now_ms: int) -> None:
        replica, role = self._replica, self._replica.role
        match role:
            case Leader():
                turn.poll_leader(replica, role, now_ms)
            case Follower():
                fetching.poll_follower(replica, role, now_ms)
            case Unattached():
                fetching.poll_unattached(replica, role, now_ms)
            case Prospective() | Candidate():
                elections.poll_nominee(replica, role, now_ms)
            case Resigned():
                poll_resigned(replica, role, now_ms)
            case _:
                assert_never(role)

    def _take_high_watermark(self) -> int | None:
        if self._replica.high_watermark <= self._reported_high_watermark:
            return None
        self._reported_high_watermark = self._replica.high_watermark
        return self._reported_high_watermark

    def _take_voters(self) -> VotersChanged | None:
        last, voters, kraft_version = self._reported_voters, self.voters, self.kraft_version
        if last is not None and last.voters is voters and last.kraft_version == kraft_version:
            return None
        self._reported_voters = VotersChanged(voters, kraft_version)
        return self._reported_voters

    def _take_leader(self) -> LeaderAndEpoch | None:
        """The leader, when it changed. This replica reports its own leadership only once a record of its epoch is
        committed, so that a state machine never decides on a log whose end it has not seen (KAFKA-15345). It is taken
        back while the leader hands over, and reported again if the hand-over fails."""
        replica = self._replica
        leader_id = replica.leader_id
        role = replica.role
        must_wait = isinstance(role, Leader) and (
            replica.high_watermark < role.announced_from or role.transfer is not None
        )
        if must_wait or isinstance(role, Resigned):
            leader_id = NO_LEADER
        announced = replica.announced
        if announced.leader_id == leader_id and announced.epoch == replica.epoch:
            return None
        replica.announced = LeaderAndEpoch(leader_id, replica.epoch)
        return replica.announced

    def _is_shut_down(self) -> bool:
        """A leader that leaves stays until another replica leads: its vote may be needed (rule R12.9). The
        driver sets the bound."""
        replica = self._replica
        if not replica.is_shutting_down:
            return False
        if replica.awaits_successor:
            return replica.leader_id not in (NO_LEADER, replica.config.node_id)
        return not isinstance(replica.role, Resigned)


# When a replica must be looked at again, if nothing happens before


def next_deadline_ms(replica: Replica, now_ms: int) -> int | None:
    """The earliest moment at which `take_ready` has something to do; always after `now_ms`.

    A deadline that has passed and led to nothing would make the driver spin (KAFKA-17751), so what cannot
    be acted upon now is not asked for.
    """
    own = deadline_of(replica.role)
    candidates = [] if own is None or _is_idle(replica) else [own]
    candidates.extend(_sends_due_ms(replica, now_ms))
    if replica.handed_over is not None:
        candidates.append(replica.handed_over.deadline_ms)
    return max(min(candidates), now_ms + 1) if candidates else None


def put_off_deadline(role: Role, late_by_ms: int) -> None:
    """A replica that could not speak for so long has not been waiting for the others, nor they for it."""
    match role:
        case Follower():
            # A leader that has left meanwhile has said when to stand, and its successor wastes no time.
            role.fetch_deadline_ms += 0 if role.leader_left else late_by_ms
        case Leader():
            role.check_quorum_deadline_ms += late_by_ms
        case Prospective() | Candidate() | Resigned():
            role.election_deadline_ms += late_by_ms
        case Unattached():
            if role.election_deadline_ms is not None:
                role.election_deadline_ms += late_by_ms
        case _:
            assert_never(role)


def _is_idle(replica: Replica) -> bool:
    """A replica that shuts down does not act on its role's time-out any more."""
    return replica.is_shutting_down and not isinstance(replica.role, Leader)


def _sends_due_ms(replica: Replica, now_ms: int) -> Iterator[int]:
    role, connections = replica.role, replica.connections
    match role:
        case Leader():
            for voter_id in replica.other_voters:
                is_asked = role.reads and is_asked_for(role, voter_id)
                due_ms = 0 if is_asked else role.begin_epoch_due_ms.get(voter_id, 0)
                yield max(due_ms, connections.ready_at_ms(voter_id))
            if role.change is not None:
                yield role.change.deadline_ms
            if role.transfer is not None:
                yield role.transfer.deadline_ms
            yield from role.parked.deadlines_ms(now_ms)
        case Prospective(stands_from_ms=int(stands_from_ms)) if defers_to_rival(replica, role, now_ms):
            yield stands_from_ms
        case Prospective() | Candidate():
            yield from (connections.ready_at_ms(voter_id) for voter_id in votes_wanted(replica, role))
        case Resigned():
            yield from (connections.ready_at_ms(voter_id) for voter_id in role.unacknowledged)
        case Follower() | Unattached():
            if isinstance(role, Follower) and not replica.is_shutting_down:
                yield from (
                    connections.ready_at_ms(voter_id)
                    for voter_id in leader_confirmations_wanted(replica, role)
                )
            fetch_at_ms = next_fetch_at_ms(replica)
            if fetch_at_ms is not None and not replica.is_shutting_down:
                yield fetch_at_ms
