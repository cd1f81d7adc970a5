"""One replica alone: the others are played from a script that was written before the clock starts.

Beside the core stands the bare replica of `_core_quorum`, which is driven through the same script.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks._core_quorum import (
    ROUNDS_PER_MS,
    BareFollower,
    BareLeader,
    Core,
    CoreQuorum,
    fetch_request,
    key_of,
)
from kquorum.raft.inputs import Input, LogFlushed, RequestReceived, ResponseReceived
from kquorum.raft.messages import FetchResponse
from kquorum.raft.node import RaftNode
from kquorum.wire.log_batch import build_batch
from kquorum.wire.metadata_records.features import ProducerIdsRecord
from kquorum.wire.record_frame import encode_record

VALUE = encode_record(ProducerIdsRecord(broker_id=1, broker_epoch=7, next_producer_id=1_000_000))


@dataclass(frozen=True, slots=True)
class Size:
    """Of one measurement: `rounds` batches, the best of `repeats`."""

    rounds: int
    repeats: int

    @property
    def milliseconds(self) -> int:
        """How much time passes for the replicas in one repeat."""
        return -(-self.rounds // ROUNDS_PER_MS)


def lead(core: Core, epoch: int, now_ms: int, rounds: Sequence[Sequence[Input]]) -> float:
    """Seconds for a leader to propose one record a round and to serve the round's inputs, a turn each."""
    start = time.process_time()
    for number, inputs in enumerate(rounds):
        if number % ROUNDS_PER_MS == 0:
            now_ms += 1
        core.propose(now_ms, epoch, (VALUE,))
        core.take_ready(now_ms)
        for event in inputs:
            core.step(now_ms, event)
            core.take_ready(now_ms)
    return time.process_time() - start


def leader_script(offset: int, epoch: int, followers: Sequence[int], rounds: int) -> list[list[Input]]:
    """A round: the flush, then every follower acknowledges, then every follower asks for more and is parked."""
    script: list[list[Input]] = []
    request_id = offset * 2 * len(followers)
    for end_offset in range(offset + 1, offset + rounds + 1):
        inputs: list[Input] = [LogFlushed(end_offset, 0)]
        for known in (end_offset - 1, end_offset):
            for follower in followers:
                request_id += 1
                request = fetch_request(key_of(follower), epoch, end_offset, epoch, known)
                inputs.append(RequestReceived(request_id, request))
        script.append(inputs)
    return script


class LeaderAlone:
    """A leader of so many voters, and the bare one beside it."""

    def __init__(self, voters: int, size: Size) -> None:
        quorum = CoreQuorum(voters)
        self.node = quorum.leader
        self.now_ms = quorum.pump.now_ms
        self.followers = [node_id for node_id in quorum.nodes if node_id != self.node.node_id]
        self.bare = BareLeader(len(self.followers), b"")
        self.size = size

    def _script(self) -> list[list[Input]]:
        return leader_script(
            self.node.log_end_offset, self.node.leader_epoch, self.followers, self.size.rounds
        )

    @property
    def steps_per_round(self) -> int:
        """The turn that takes the proposal along, the flush, and two Fetches of each follower."""
        return 2 + 2 * len(self.followers)

    def run_core(self) -> float:
        script = self._script()
        seconds = lead(self.node, self.node.leader_epoch, self.now_ms, script)
        self.now_ms += self.size.milliseconds
        assert self.node.high_watermark == self.node.log_end_offset, "not every record was committed"
        return seconds

    def run_bare(self) -> float:
        return lead(self.bare, 1, self.now_ms, self._script())


def follow(
    core: Core, leader_id: int, correlation_id: int, now_ms: int, answers: Sequence[FetchResponse]
) -> tuple[float, int]:
    """Seconds to append the batches of these answers, a turn for each answer and each flush; the last Fetch's id."""
    start = time.process_time()
    for number, answer in enumerate(answers):
        if number % ROUNDS_PER_MS == 0:
            now_ms += 1
        core.step(now_ms, ResponseReceived(correlation_id, leader_id, answer))
        end_offset = core.take_ready(now_ms).append[0].next_offset
        core.step(now_ms, LogFlushed(end_offset, 0))
        correlation_id = core.take_ready(now_ms).requests[0].correlation_id
    return time.process_time() - start, correlation_id


class FollowerAlone:
    """A follower that is handed one batch of one record after the other, and the bare one beside it."""

    steps_per_round = 2

    def __init__(self, size: Size) -> None:
        quorum = CoreQuorum(3)
        self.leader: RaftNode = quorum.leader
        self.node = next(node for node in quorum.nodes.values() if node is not self.leader)
        self.now_ms = quorum.pump.now_ms
        self.correlation_id = quorum.pump.correlation_ids[self.node.node_id]
        self.bare = BareFollower(self.node.node_id, b"")
        self.bare_id = 0
        self.size = size

    def _answers(self) -> list[FetchResponse]:
        start, epoch = self.node.log_end_offset, self.leader.leader_epoch
        return [
            FetchResponse(
                leader_id=self.leader.node_id,
                leader_epoch=epoch,
                high_watermark=offset,
                log_start_offset=0,
                records=build_batch(offset, epoch, self.now_ms, [(None, VALUE)]).data,
            )
            for offset in range(start, start + self.size.rounds)
        ]

    def run_core(self) -> float:
        answers, end_offset = self._answers(), self.node.log_end_offset + self.size.rounds
        seconds, self.correlation_id = follow(
            self.node, self.leader.node_id, self.correlation_id, self.now_ms, answers
        )
        self.now_ms += self.size.milliseconds
        assert self.node.log_end_offset == end_offset, "not every batch was taken"
        return seconds

    def run_bare(self) -> float:
        seconds, self.bare_id = follow(self.bare, 1, self.bare_id, self.now_ms, self._answers())
        return seconds
