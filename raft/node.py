"""RaftNode: one replica of the quorum, as inputs in and one ordered `Ready` out.

    node.step(now_ms, input)        as often as things happen
    ready = node.take_ready(now_ms) once per turn; carry it out in order, arm one timer for `deadline_ms`

`step` digests what was heard; `take_ready` lets time-outs fire, sends what is due, closes the open batch and
hands all of it over. So everything that arrives in one turn of the driver's loop shares one batch, one flush
and one answer to each waiting follower. Nothing here reads a clock or rolls dice of its own.
"""

from collections.abc import Sequence
from typing import assert_never

from kio.schema.errors import ErrorCode

from raft import elections, following, leadership
from raft.accumulator import Accumulator
from raft.config import QuorumConfig
from raft.describe import describe_quorum
from raft.errors import NotLeaderError
from raft.inputs import (
    FailureReason,
    Input,
    LogFlushed,
    RequestFailed,
    RequestReceived,
    ResignRequested,
    ResponseReceived,
    ShutdownRequested,
    TimeAdvanced,
)
from raft.log_index import LogIndex
from raft.messages import (
    MAX_EPOCH,
    NO_LEADER,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    Request,
    Response,
    VoteRequest,
    VoteResponse,
)
from raft.ports import Dice, LogSummary
from raft.ready import LeaderAndEpoch, QuorumState, Ready
from raft.replica import Outbox, Replica
from raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached, name_of
from raft.startup import enter_first_role
from raft.timers import next_deadline_ms
from raft.voters import VoterSet
from wire.compression import CompressionCodec

# A turn may pass through this many roles (a sole voter: unattached, prospective, candidate, leader) and no more.
MAX_ROLES_PER_TURN = 6


class RaftNode:
    def __init__(
        self,
        config: QuorumConfig,
        voters: VoterSet,
        log: LogSummary,
        state: QuorumState | None,
        dice: Dice,
        now_ms: int,
        codec: CompressionCodec = CompressionCodec.NONE,
    ) -> None:
        """`log` and `state` are what the stores recovered, all of it durable; raises ValueError for a bad config."""
        problems = config.problems()
        if problems:
            raise ValueError("; ".join(problems))
        accumulator = Accumulator(config.max_batch_bytes, codec)
        self._replica = Replica(config, voters, LogIndex(log), state or QuorumState(), dice, accumulator)
        self._told_high_watermark = -1
        enter_first_role(self._replica, now_ms)

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

    def propose(self, now_ms: int, leader_epoch: int, values: Sequence[bytes]) -> int:
        if not isinstance(self._replica.role, Leader) or leader_epoch != self._replica.epoch:
            raise NotLeaderError(self.leader_id, self._replica.epoch)
        return self._replica.accumulator.add(values, now_ms)

    def resign(self, now_ms: int, leader_epoch: int) -> None:
        self.step(now_ms, ResignRequested(leader_epoch))

    # Inputs

    def step(self, now_ms: int, event: Input) -> None:
        replica = self._replica
        match event:
            case RequestReceived(request_id, request):
                self._handle_request(now_ms, request_id, request)
            case ResponseReceived(correlation_id, source_id, response):
                self._handle_response(now_ms, correlation_id, source_id, response)
            case RequestFailed(correlation_id, source_id, reason):
                self._handle_failure(now_ms, correlation_id, source_id, reason)
            case LogFlushed(end_offset, truncations):
                replica.log.flushed(end_offset, truncations)
            case ResignRequested(leader_epoch):
                if isinstance(replica.role, Leader) and leader_epoch == replica.epoch:
                    leadership.resign(replica, now_ms, "the controller asked for it")
            case ShutdownRequested():
                replica.is_shutting_down = True
                if isinstance(replica.role, Leader) and replica.other_voters:
                    leadership.resign(replica, now_ms, "shutdown")
                elif isinstance(replica.role, Prospective | Candidate):
                    # It must not win now, announce itself, and be gone.
                    replica.role.is_withdrawn = True
            case TimeAdvanced():
                pass
            case _:
                assert_never(event)

    def _handle_request(self, now_ms: int, request_id: int, request: Request) -> None:
        replica = self._replica
        match request:
            case FetchRequest():
                leadership.handle_fetch(replica, now_ms, request_id, request)
            case VoteRequest():
                replica.respond(request_id, elections.handle_vote(replica, now_ms, request))
            case BeginQuorumEpochRequest():
                replica.respond(request_id, elections.handle_begin_quorum_epoch(replica, now_ms, request))
            case EndQuorumEpochRequest():
                replica.respond(request_id, elections.handle_end_quorum_epoch(replica, now_ms, request))
            case DescribeQuorumRequest():
                replica.respond(request_id, describe_quorum(replica, now_ms))
            case _:
                assert_never(request)

    def _handle_response(self, now_ms: int, correlation_id: int, source_id: int, response: Response) -> None:
        replica = self._replica
        if not replica.connections.completed(source_id, correlation_id):
            return
        self._fetch_is_over(source_id)
        if replica.silent_leader is not None and replica.silent_leader.leader_id == source_id:
            replica.silent_leader = None
        if not self._take_leader_from(now_ms, source_id, response):
            return
        match response:
            case FetchResponse():
                following.handle_fetch_response(replica, now_ms, source_id, response)
            case VoteResponse():
                elections.handle_vote_response(replica, now_ms, source_id, response)
            case BeginQuorumEpochResponse():
                leadership.handle_begin_quorum_epoch_response(replica, now_ms, source_id)
            case EndQuorumEpochResponse():
                leadership.handle_end_quorum_epoch_response(replica, source_id, response)
            case DescribeQuorumResponse():
                raise AssertionError("the core never asks for a description")
            case _:
                assert_never(response)

    def _take_leader_from(self, now_ms: int, source_id: int, response: Response) -> bool:
        """What every response is looked at for first; answers whether its own handler should see it.

        Its epoch may be newer, it may name the leader that was looked for, and it may be an error, after which
        the peer is left alone for the back-off (kraft-semantics A13, common reply logic).
        """
        replica = self._replica
        if response.is_top_level or not replica.epoch <= response.leader_epoch <= MAX_EPOCH:
            replica.connections.back_off(source_id, now_ms)
            return False
        if response.leader_epoch > replica.epoch:
            self._enter_newer_epoch(now_ms, response)
            return False
        if following.learns_leader(replica, source_id, response.leader_id, response.leader_epoch):
            replica.become_follower(
                replica.epoch, response.leader_id, now_ms, f"node {source_id} named the leader"
            )
            if not isinstance(response, FetchResponse) or source_id != response.leader_id:
                return False
        if response.error is not ErrorCode.none:
            replica.connections.back_off(source_id, now_ms)
            return False
        return True

    def _enter_newer_epoch(self, now_ms: int, response: Response) -> None:
        replica = self._replica
        epoch, leader_id = response.leader_epoch, response.leader_id
        if not elections.may_be_leader(replica, leader_id):
            replica.become_unattached(epoch, now_ms, "a peer is in a newer epoch")
        else:
            replica.become_follower(epoch, leader_id, now_ms, "a peer named the leader of a newer epoch")

    def _handle_failure(
        self, now_ms: int, correlation_id: int, source_id: int, reason: FailureReason
    ) -> None:
        replica = self._replica
        if not replica.connections.completed(source_id, correlation_id):
            return
        self._fetch_is_over(source_id)
        replica.connections.back_off(source_id, now_ms)
        following.handle_fetch_failure(replica, source_id)
        if reason is FailureReason.UNSUPPORTED_VERSION and isinstance(replica.role, Prospective):
            replica.become_candidate(now_ms, f"node {source_id} does not know pre-votes")

    def _fetch_is_over(self, source_id: int) -> None:
        if self._replica.fetch_destination == source_id:
            self._replica.fetch_destination = None

    # Output

    def take_ready(self, now_ms: int) -> Ready:
        replica = self._replica
        for _ in range(MAX_ROLES_PER_TURN):
            role = replica.role
            self._poll(now_ms)
            if replica.role is role:
                break
        else:
            raise AssertionError(f"still changing roles after {MAX_ROLES_PER_TURN}: {self.role}")
        leadership.answer_displaced_fetches(replica)
        outbox, replica.outbox = replica.outbox, Outbox()
        return Ready(
            truncate_to=outbox.truncate_to,
            append=tuple(outbox.append),
            quorum_state=outbox.quorum_state,
            requests=tuple(outbox.requests),
            responses=tuple(outbox.responses),
            high_watermark=self._take_high_watermark(),
            leader=self._take_leader(),
            role_changes=tuple(outbox.role_changes),
            deadline_ms=next_deadline_ms(replica, now_ms),
            is_shut_down=self._is_shut_down(),
        )

    def _poll(self, now_ms: int) -> None:
        replica, role = self._replica, self._replica.role
        match role:
            case Leader():
                leadership.poll_leader(replica, role, now_ms)
            case Follower():
                following.poll_follower(replica, role, now_ms)
            case Unattached():
                following.poll_unattached(replica, role, now_ms)
            case Prospective() | Candidate():
                elections.poll_nominee(replica, role, now_ms)
            case Resigned():
                leadership.poll_resigned(replica, role, now_ms)
            case _:
                assert_never(role)

    def _take_high_watermark(self) -> int | None:
        if self._replica.high_watermark <= self._told_high_watermark:
            return None
        self._told_high_watermark = self._replica.high_watermark
        return self._told_high_watermark

    def _take_leader(self) -> LeaderAndEpoch | None:
        """The leader, when it changed. This replica's own leadership is told only once a record of its epoch is
        committed, so that a state machine never decides on a log whose end it has not seen (KAFKA-15345)."""
        replica = self._replica
        leader_id = replica.leader_id
        role = replica.role
        is_unproven = isinstance(role, Leader) and replica.high_watermark <= role.epoch_start_offset
        if is_unproven or isinstance(role, Resigned):
            leader_id = NO_LEADER
        current = LeaderAndEpoch(leader_id, replica.epoch)
        if current == replica.announced:
            return None
        replica.announced = current
        return current

    def _is_shut_down(self) -> bool:
        """A leader that leaves stays until another replica leads; the driver sets the bound."""
        replica = self._replica
        if not replica.is_shutting_down:
            return False
        return not isinstance(replica.role, Resigned)
