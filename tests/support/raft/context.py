"""A replica under test and the rest of the quorum played by the test: speak the protocol, look at what comes out."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from kquorum.raft.config import QuorumConfig
from kquorum.raft.inputs import (
    FailureReason,
    Input,
    LogFlushed,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    TimeAdvanced,
)
from kquorum.raft.messages import (
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
from kquorum.raft.node import RaftNode
from kquorum.raft.ports import LogSummary
from kquorum.raft.ready import LeaderAndEpoch, OutboundRequest, QuorumState, Ready
from kquorum.raft.voters import QuorumRecord, ReplicaKey, Voter, VoterSet
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch, build_batch

CLUSTER_ID = "test-cluster"
LOCAL = 1


class LowestRandomSource:
    """Always the smallest number, so that every timeout is known: no jitter at all."""

    def randint(self, low: int, high: int) -> int:
        return low


def key_of(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, UUID(int=node_id))


class RaftContext:
    """One `RaftNode` with id 1 among static voters; flushes happen when the test says so, or at once.

    `quorum_records` is what log and bootstrap checkpoint say of the voters; further keywords go into `QuorumConfig`.
    """

    def __init__(
        self,
        voters: Sequence[int] = (1, 2, 3),
        log: Sequence[LogBatch] = (),
        state: QuorumState | None = None,
        auto_flush: bool = True,
        quorum_records: Sequence[QuorumRecord] = (),
        **config: Any,
    ) -> None:
        self.now_ms = 10_000
        self.log = list(log)
        self.quorum_records = tuple(quorum_records)
        self.auto_flush = auto_flush
        self.truncations = 0
        self.state = state
        self.requests: list[OutboundRequest] = []
        self.responses: dict[int, Response] = {}
        self.leaders: list[LeaderAndEpoch] = []
        self.last_ready = Ready()
        identity: dict[str, Any] = {
            "node_id": LOCAL,
            "directory_id": UUID(int=LOCAL),
            "cluster_id": CLUSTER_ID,
        }
        self.config = QuorumConfig(**{**identity, "can_be_voter": LOCAL in voters, **config})
        voter_set = VoterSet.of(*(Voter(ReplicaKey(voter)) for voter in voters))
        self.node = RaftNode(
            self.config, voter_set, self._summary(), state, LowestRandomSource(), self.now_ms
        )
        self._next_request_id = 0
        self.turn()

    def _summary(self) -> LogSummary:
        epochs: list[tuple[int, int]] = []
        for batch in self.log:
            if not epochs or batch.leader_epoch > epochs[-1][0]:
                epochs.append((batch.leader_epoch, batch.base_offset))
        return LogSummary(0, self.log_end_offset, tuple(epochs), quorum_records=self.quorum_records)

    @property
    def log_end_offset(self) -> int:
        return self.log[-1].next_offset if self.log else 0

    # Driving

    def turn(self) -> Ready:
        ready = self.node.take_ready(self.now_ms)
        self.carry_out(ready)
        if self.auto_flush and (ready.append or ready.truncate_to is not None):
            return self.flush()
        return ready

    def carry_out(self, ready: Ready) -> None:
        if ready.truncate_to is not None:
            while self.log and self.log[-1].next_offset > ready.truncate_to:
                self.log.pop()
            self.truncations += 1
        self.log.extend(ready.append)
        if ready.quorum_state is not None:
            self.state = ready.quorum_state
        self.requests.extend(ready.requests)
        self.responses.update({out.request_id: out.response for out in ready.responses})
        if ready.leader is not None:
            self.leaders.append(ready.leader)
        self.last_ready = ready

    def feed(self, event: Input) -> Ready:
        self.node.step(self.now_ms, event)
        return self.turn()

    def flush(self) -> Ready:
        return self.feed(LogFlushed(self.log_end_offset, self.truncations))

    def advance(self, ms: int) -> Ready:
        self.now_ms += ms
        return self.feed(TimeAdvanced())

    @property
    def last_request_id(self) -> int:
        """Of the last `receive`, to find a parked answer in `responses`."""
        return self._next_request_id

    @property
    def standing(self) -> tuple[str, int, int]:
        """Role, epoch and leader: most tests look at all three."""
        return self.node.role, self.node.leader_epoch, self.node.leader_id

    def receive(self, request: Request) -> Any:
        """The answer, or None while it is parked."""
        self._next_request_id += 1
        self.feed(RequestReceived(self._next_request_id, request))
        return self.responses.get(self._next_request_id)

    def receive_without_a_turn(self, request: Request) -> None:
        """It arrives while the driver waits for the disk."""
        self._next_request_id += 1
        self.node.step(self.now_ms, RequestReceived(self._next_request_id, request))

    def answer(self, outbound: OutboundRequest, response: Response) -> Ready:
        return self.feed(ResponseReceived(outbound.correlation_id, outbound.destination_id, response))

    def fail(self, outbound: OutboundRequest, reason: FailureReason = FailureReason.DISCONNECTED) -> Ready:
        return self.feed(RequestFailed(outbound.correlation_id, outbound.destination_id, reason))

    def sent(self, kind: type) -> list[OutboundRequest]:
        """Requests of this kind since the last call of this method; the others are forgotten."""
        found = [outbound for outbound in self.requests if isinstance(outbound.request, kind)]
        self.requests.clear()
        return found

    # Common courses

    def become_candidate(self) -> list[OutboundRequest]:
        """Time out and win the pre-vote; answers the vote requests of the new epoch."""
        self.advance(max(self.config.fetch_timeout_ms, self.config.election_timeout_ms))
        for outbound in self.sent(VoteRequest):
            self.answer(outbound, VoteResponse(leader_epoch=self.node.leader_epoch, vote_granted=True))
        return self.sent(VoteRequest)

    def become_leader(self) -> int:
        """Win an election with the first voter's grant; answers the epoch."""
        outbound = self.become_candidate()[0]
        self.answer(outbound, VoteResponse(leader_epoch=self.node.leader_epoch, vote_granted=True))
        assert self.node.role == "leader"
        return self.node.leader_epoch

    def follow(self, leader_id: int, epoch: int) -> OutboundRequest:
        """Be told of a leader; answers the first Fetch that it gets."""
        self.begin(leader_id, epoch)
        return self.sent(FetchRequest)[-1]

    def begin(self, leader_id: int, epoch: int, **fields: Any) -> BeginQuorumEpochResponse:
        request = BeginQuorumEpochRequest(
            cluster_id=CLUSTER_ID, leader_id=leader_id, leader_epoch=epoch, **fields
        )
        response = self.receive(request)
        assert isinstance(response, BeginQuorumEpochResponse)
        return response

    def end(self, leader_id: int, epoch: int, *preferred: int) -> EndQuorumEpochResponse:
        """The leader leaves, and names its successors."""
        candidates = tuple(key_of(candidate) for candidate in preferred)
        request = EndQuorumEpochRequest(
            cluster_id=CLUSTER_ID, leader_id=leader_id, leader_epoch=epoch, preferred_candidates=candidates
        )
        response = self.receive(request)
        assert isinstance(response, EndQuorumEpochResponse)
        return response

    def describe(self) -> DescribeQuorumResponse:
        response = self.receive(DescribeQuorumRequest())
        assert isinstance(response, DescribeQuorumResponse)
        return response

    def ask_for_pre_vote(self, candidate: int, epoch: int, **fields: Any) -> VoteResponse:
        response = self.receive(replace(self.vote_request(candidate, epoch, pre_vote=True), **fields))
        assert isinstance(response, VoteResponse)
        return response

    def ask_for_vote(self, candidate: int, epoch: int, **fields: Any) -> VoteResponse:
        response = self.receive(replace(self.vote_request(candidate, epoch), **fields))
        assert isinstance(response, VoteResponse)
        return response

    def vote(self, outbound: OutboundRequest, granted: bool = True, leader_id: int = -1) -> Ready:
        """Answer a request for a vote in its own epoch."""
        assert isinstance(outbound.request, VoteRequest)
        epoch = outbound.request.replica_epoch
        return self.answer(
            outbound, VoteResponse(leader_id=leader_id, leader_epoch=epoch, vote_granted=granted)
        )

    def vote_request(self, candidate: int, epoch: int, *, pre_vote: bool = False) -> VoteRequest:
        last_epoch = self.log[-1].leader_epoch if self.log else 0
        return VoteRequest(
            cluster_id=CLUSTER_ID,
            replica_epoch=epoch,
            candidate=key_of(candidate),
            voter=key_of(LOCAL),
            last_offset=self.log_end_offset,
            last_offset_epoch=last_epoch,
            pre_vote=pre_vote,
        )

    def fetch(
        self, replica_id: int, offset: int, last_epoch: int, known_high_watermark: int = -1
    ) -> FetchRequest:
        return FetchRequest(
            cluster_id=CLUSTER_ID,
            replica=key_of(replica_id),
            current_leader_epoch=self.node.leader_epoch,
            fetch_offset=offset,
            last_fetched_epoch=last_epoch,
            max_wait_ms=500,
            max_bytes=1_000_000,
            high_watermark=known_high_watermark,
        )

    def fetched(
        self, *batches: LogBatch, high_watermark: int = -1, diverging: OffsetAndEpoch | None = None
    ) -> Response:
        """What the followed leader answers."""
        return FetchResponse(
            leader_id=self.node.leader_id,
            leader_epoch=self.node.leader_epoch,
            high_watermark=high_watermark,
            log_start_offset=0,
            diverging=diverging,
            records=b"".join(batch.data for batch in batches),
        )


def batch(base_offset: int, epoch: int, count: int = 1) -> LogBatch:
    return build_batch(base_offset, epoch, 1, [(None, b"value")] * count)
