"""A replica under test and the rest of the quorum played by the test: speak the protocol, look at what comes out."""

from collections.abc import Sequence
from uuid import UUID

from raft.batches import LogBatch, OffsetAndEpoch, build_batch
from raft.config import QuorumConfig
from raft.inputs import (
    FailureReason,
    Input,
    LogFlushed,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    TimeAdvanced,
)
from raft.messages import (
    BeginQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    Request,
    Response,
    VoteRequest,
    VoteResponse,
)
from raft.node import RaftNode
from raft.ports import LogSummary
from raft.ready import OutboundRequest, QuorumState, Ready
from raft.voters import ReplicaKey, Voter, VoterSet

CLUSTER_ID = "test-cluster"
LOCAL = 1


class LowDice:
    """Always the smallest number, so that every timeout is known: no jitter at all."""

    def randint(self, low: int, high: int) -> int:
        return low


def key_of(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, UUID(int=node_id))


class RaftContext:
    """One `RaftNode` with id 1 among static voters; flushes happen when the test says so, or at once."""

    def __init__(
        self,
        voters: Sequence[int] = (1, 2, 3),
        log: Sequence[LogBatch] = (),
        state: QuorumState | None = None,
        auto_flush: bool = True,
    ) -> None:
        self.now_ms = 10_000
        self.log = list(log)
        self.auto_flush = auto_flush
        self.truncations = 0
        self.state = state
        self.requests: list[OutboundRequest] = []
        self.responses: dict[int, Response] = {}
        self.last_ready = Ready()
        self.config = QuorumConfig(
            node_id=LOCAL, directory_id=UUID(int=LOCAL), cluster_id=CLUSTER_ID, can_be_voter=LOCAL in voters
        )
        voter_set = VoterSet.of(*(Voter(ReplicaKey(voter)) for voter in voters))
        self.node = RaftNode(self.config, voter_set, self._summary(), state, LowDice(), self.now_ms)
        self._next_request_id = 0
        self.turn()

    def _summary(self) -> LogSummary:
        epochs: list[tuple[int, int]] = []
        for batch in self.log:
            if not epochs or batch.leader_epoch > epochs[-1][0]:
                epochs.append((batch.leader_epoch, batch.base_offset))
        return LogSummary(0, self.log_end_offset, tuple(epochs))

    @property
    def log_end_offset(self) -> int:
        return self.log[-1].next_offset if self.log else 0

    # Driving

    def turn(self) -> Ready:
        ready = self.node.take_ready(self.now_ms)
        if ready.truncate_to is not None:
            while self.log and self.log[-1].next_offset > ready.truncate_to:
                self.log.pop()
            self.truncations += 1
        self.log.extend(ready.append)
        if ready.quorum_state is not None:
            self.state = ready.quorum_state
        self.requests.extend(ready.requests)
        self.responses.update({out.request_id: out.response for out in ready.responses})
        self.last_ready = ready
        if self.auto_flush and (ready.append or ready.truncate_to is not None):
            return self.flush()
        return ready

    def feed(self, event: Input) -> Ready:
        self.node.step(self.now_ms, event)
        return self.turn()

    def flush(self) -> Ready:
        return self.feed(LogFlushed(self.log_end_offset, self.truncations))

    def advance(self, ms: int) -> Ready:
        self.now_ms += ms
        return self.feed(TimeAdvanced())

    def receive(self, request: Request) -> Response | None:
        """The answer, or None while it is parked."""
        self._next_request_id += 1
        self.feed(RequestReceived(self._next_request_id, request))
        return self.responses.get(self._next_request_id)

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
        self.advance(self.config.fetch_timeout_ms)
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
        self.receive(BeginQuorumEpochRequest(cluster_id=CLUSTER_ID, leader_id=leader_id, leader_epoch=epoch))
        return self.sent(FetchRequest)[-1]

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
