"""A quorum of cores in one process: no disk, no network, no clock; flushes and messages arrive at once.

The same messages can be passed by `BareLeader` and `BareFollower`, which decide nothing: they are the floor of what
Python asks for building, passing and telling apart such messages, and so the limit that the core is measured against.
"""

from collections import deque
from collections.abc import Sequence
from random import Random
from typing import Protocol
from uuid import UUID

from kquorum.raft.config import QuorumConfig
from kquorum.raft.inputs import Input, LogFlushed, RequestReceived, ResponseReceived, TimeAdvanced
from kquorum.raft.messages import FetchRequest, FetchResponse, LogSlice, Response
from kquorum.raft.node import RaftNode
from kquorum.raft.ports import LogSummary
from kquorum.raft.ready import OutboundRequest, OutboundResponse, Ready
from kquorum.raft.voters import ReplicaKey, Voter, VoterSet
from kquorum.wire.log_batch import LogBatch, build_batch

CLUSTER_ID = "benchmark-cluster-id00"
START_MS = 1_700_000_000_000
MAX_WAIT_MS, MAX_BYTES = 500, 8 * 1024 * 1024
# One millisecond passes in so many rounds, about as many as fit into one: deadlines move as they do in production.
ROUNDS_PER_MS = 8
# How much time passes at once while the replicas wait for an election.
STRIDE_MS = 20


class Core(Protocol):
    """The part of `RaftNode` which a driver turns."""

    def step(self, now_ms: int, event: Input) -> None: ...

    def take_ready(self, now_ms: int) -> Ready: ...

    def propose(self, now_ms: int, leader_epoch: int, values: Sequence[bytes]) -> int: ...


def key_of(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, UUID(int=node_id))


def new_node(node_id: int, voters: int) -> RaftNode:
    """One of `voters` static voters with the default times."""
    config = QuorumConfig(
        node_id=node_id, directory_id=UUID(int=node_id), cluster_id=CLUSTER_ID, can_be_voter=True
    )
    members = VoterSet.of(*(Voter(ReplicaKey(voter_id)) for voter_id in range(1, voters + 1)))
    return RaftNode(config, members, LogSummary(), None, Random(node_id), START_MS)


class Pump:
    """Carries out what the cores ask for, one turn an event: every step is followed by its `take_ready`."""

    def __init__(self, cores: dict[int, Core]) -> None:
        self.cores = cores
        self.now_ms = START_MS
        self.steps = 0
        self.committed: dict[int, int] = dict.fromkeys(cores, -1)
        self.correlation_ids: dict[int, int] = {}
        self._events: deque[tuple[int, Input]] = deque()
        self._waiting: dict[int, tuple[int, int]] = {}
        self._next_request_id = 0
        self._newest = b""

    def turn(self, node_id: int) -> None:
        ready = self.cores[node_id].take_ready(self.now_ms)
        if ready.append:
            self._newest = b"".join(batch.data for batch in ready.append)
            self._events.append((node_id, LogFlushed(ready.append[-1].next_offset, 0)))
        for request in ready.requests:
            self._send(node_id, request)
        for response in ready.responses:
            self._respond(node_id, response)
        if ready.high_watermark is not None:
            self.committed[node_id] = ready.high_watermark

    def run(self) -> None:
        """Deliver until nothing is under way; Fetches that wait for records stay parked."""
        while self._events:
            node_id, event = self._events.popleft()
            self.steps += 1
            self.cores[node_id].step(self.now_ms, event)
            self.turn(node_id)

    def advance(self, milliseconds: int) -> None:
        """Let time pass for all."""
        self.now_ms += milliseconds
        self._events.extend((node_id, TimeAdvanced()) for node_id in self.cores)
        self.run()

    def _send(self, node_id: int, outbound: OutboundRequest) -> None:
        self._next_request_id += 1
        self._waiting[self._next_request_id] = (node_id, outbound.correlation_id)
        self.correlation_ids[node_id] = outbound.correlation_id
        received = RequestReceived(self._next_request_id, outbound.request)
        self._events.append((outbound.destination_id, received))

    def _respond(self, node_id: int, outbound: OutboundResponse) -> None:
        source_id, correlation_id = self._waiting.pop(outbound.request_id)
        response = with_records(outbound.response, self._newest)
        self._events.append((source_id, ResponseReceived(correlation_id, node_id, response)))


def with_records(response: Response, newest: bytes) -> Response:
    """A slice of the log becomes bytes: the newest batch, since every follower has all before it."""
    if not isinstance(response, FetchResponse) or not isinstance(response.records, LogSlice):
        return response
    return FetchResponse(
        leader_id=response.leader_id,
        leader_epoch=response.leader_epoch,
        high_watermark=response.high_watermark,
        log_start_offset=response.log_start_offset,
        records=newest,
    )


class CoreQuorum:
    """`voters` cores with a leader, each follower's Fetch parked there."""

    def __init__(self, voters: int) -> None:
        self.nodes = {node_id: new_node(node_id, voters) for node_id in range(1, voters + 1)}
        self.pump = Pump(dict(self.nodes))
        while not any(node.role == "leader" for node in self.nodes.values()):
            self.pump.advance(STRIDE_MS)
        self.leader = next(node for node in self.nodes.values() if node.role == "leader")
        while any(node.role != "follower" for node in self.nodes.values() if node is not self.leader):
            self.pump.advance(STRIDE_MS)

    def rounds(self, count: int, values: Sequence[bytes]) -> None:
        """Propose, commit and make known to every follower `count` batches, one after the other."""
        pump, leader, epoch = self.pump, self.leader, self.leader.leader_epoch
        for number in range(count):
            if number % ROUNDS_PER_MS == 0:
                pump.now_ms += 1
            leader.propose(pump.now_ms, epoch, values)
            pump.turn(leader.node_id)
            pump.run()
        assert set(pump.committed.values()) == {leader.log_end_offset}, (
            "not every batch was committed everywhere"
        )


class BareLeader:
    """Says what a leader says to `followers` followers, without looking at what it is asked."""

    def __init__(self, followers: int, data: bytes) -> None:
        self._followers = followers
        self._data = data
        self._end_offset = 0
        self._proposed = False
        self._fetches = 0
        self._parked: list[int] = []
        self._answers: list[int] = []

    def propose(self, now_ms: int, leader_epoch: int, values: Sequence[bytes]) -> int:  # noqa: ARG002
        self._proposed = True
        self._end_offset += 1
        return self._end_offset - 1

    def step(self, now_ms: int, event: Input) -> None:  # noqa: ARG002
        if isinstance(event, RequestReceived):
            # The first Fetch of each follower acknowledges and is answered with the high watermark, the second waits.
            self._fetches += 1
            waits = self._fetches > self._followers
            (self._parked if waits else self._answers).append(event.request_id)

    def take_ready(self, now_ms: int) -> Ready:  # noqa: ARG002
        append: tuple[LogBatch, ...] = ()
        records: LogSlice | bytes = b""
        if self._proposed:
            end_offset, self._proposed, self._fetches = self._end_offset, False, 0
            append = (LogBatch(end_offset - 1, end_offset - 1, 1, False, self._data),)
            self._answers, self._parked = self._parked, []
            records = LogSlice(end_offset - 1, MAX_BYTES)
        answers, self._answers = self._answers, []
        return Ready(
            append=append,
            responses=tuple(OutboundResponse(request_id, self._answer(records)) for request_id in answers),
            high_watermark=self._end_offset,
        )

    def _answer(self, records: LogSlice | bytes) -> FetchResponse:
        return FetchResponse(
            leader_id=1, leader_epoch=1, high_watermark=self._end_offset, log_start_offset=0, records=records
        )


class BareFollower:
    """Says what a follower says, taking whatever it gets for the next batch."""

    def __init__(self, node_id: int, data: bytes) -> None:
        self._key = key_of(node_id)
        self._data = data
        self._end_offset = 0
        self._correlation_id = 0
        self._fetches = True
        self._appends = False

    def propose(self, now_ms: int, leader_epoch: int, values: Sequence[bytes]) -> int:  # noqa: ARG002
        raise AssertionError("followers propose nothing")

    def step(self, now_ms: int, event: Input) -> None:  # noqa: ARG002
        if isinstance(event, ResponseReceived):
            assert isinstance(event.response, FetchResponse)
            self._appends = bool(event.response.records)
            self._fetches = not self._appends
        elif isinstance(event, LogFlushed):
            self._fetches = True

    def take_ready(self, now_ms: int) -> Ready:  # noqa: ARG002
        append: tuple[LogBatch, ...] = ()
        requests: tuple[OutboundRequest, ...] = ()
        if self._appends:
            append = (LogBatch(self._end_offset, self._end_offset, 1, False, self._data),)
            self._end_offset += 1
            self._appends = False
        if self._fetches:
            self._correlation_id += 1
            requests = (OutboundRequest(self._correlation_id, 1, self._request()),)
            self._fetches = False
        return Ready(append=append, requests=requests, high_watermark=self._end_offset)

    def _request(self) -> FetchRequest:
        return fetch_request(self._key, 1, self._end_offset, 1, self._end_offset)


def fetch_request(
    replica: ReplicaKey, epoch: int, fetch_offset: int, last_epoch: int, high_watermark: int
) -> FetchRequest:
    return FetchRequest(
        cluster_id=CLUSTER_ID,
        replica=replica,
        current_leader_epoch=epoch,
        fetch_offset=fetch_offset,
        last_fetched_epoch=last_epoch,
        max_wait_ms=MAX_WAIT_MS,
        max_bytes=MAX_BYTES,
        high_watermark=high_watermark,
    )


class BareQuorum:
    """The messages of a `CoreQuorum` without the logic behind them; `data` is the batch that is always sent."""

    def __init__(self, voters: int, values: Sequence[bytes]) -> None:
        data = build_batch(0, 1, START_MS, [(None, value) for value in values]).data
        self._leader = BareLeader(voters - 1, data)
        followers = {node_id: BareFollower(node_id, data) for node_id in range(2, voters + 1)}
        self.pump = Pump({1: self._leader, **followers})
        for node_id in followers:
            self.pump.turn(node_id)
        self.pump.run()

    def rounds(self, count: int, values: Sequence[bytes]) -> None:
        for _ in range(count):
            self._leader.propose(self.pump.now_ms, 1, values)
            self.pump.turn(1)
            self.pump.run()
