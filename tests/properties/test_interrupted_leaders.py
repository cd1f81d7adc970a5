"""Leaders that are interrupted anywhere, above all between the batches of one transaction.

What they proposed is committed in pieces, truncated in part, and taken up by the next leader: the same node, a new one
that replays the log, or one that begins with a snapshot, taken perhaps while the transaction was open. Batches are
small and shared (the replica's own accumulator), so most of the large changes are transactions.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.controller import Controller
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.loader import MetadataLoader
from kquorum.metadata.log_check.audit_chain import AuditChain, AuditFault
from kquorum.metadata.snapshot import LoadedSnapshot
from kquorum.metadata.state_hash.image_hash import hash_of_image
from kquorum.raft.batches import Accumulator
from kquorum.raft.errors import NotLeaderError
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.features import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from kquorum.wire.metadata_records.topics import TopicRecord
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.api_calls import Values
from tests.support.controller_world import CLUSTER_ID, FakeRaft, SeededRandomSource, World, topic

SEEDS = range(32)
PHASES = 5
OTHER_NODE = 7
LEADER_CHANGE = (b"\0\0\0\2", b"\0\0\0")


class InterruptedRaft(FakeRaft):
    """Proposals share batches until they are drained; after `proposals_left` the node leads no longer."""

    def __init__(self, random: Random, max_batch_bytes: int) -> None:
        super().__init__()
        self.proposals_left: int | None = None
        self._random = random
        self._max_batch_bytes = max_batch_bytes
        self._accumulator: Accumulator | None = None

    @property
    def stored_end_offset(self) -> int:
        return self.batches[-1].next_offset if self.batches else 0

    @property
    def log_end_offset(self) -> int:
        return self._accumulator.next_offset if self._accumulator else self.stored_end_offset

    def begin(self) -> None:
        self.is_deposed, self.proposals_left = False, None
        self._renew()

    def end(self) -> None:
        self.drain(0)
        self._accumulator = None

    def propose(self, now_ms: int, leader_epoch: int, values: Sequence[bytes]) -> int:
        if self.proposals_left is not None:
            self.proposals_left -= 1
            self.is_deposed |= self.proposals_left < 0
        if self.is_deposed or leader_epoch != self.leader_epoch or self.leader_id != self.node_id:
            raise NotLeaderError(self.leader_id, self.leader_epoch)
        assert self._accumulator is not None
        return self._accumulator.add(values, now_ms)

    def drain(self, now_ms: int) -> None:
        del now_ms
        if self._accumulator is not None:
            self.batches += self._accumulator.drain()

    def append(
        self, now_ms: int, records: Sequence[tuple[bytes | None, bytes | None]], *, control: bool = False
    ) -> None:
        self.end()
        super().append(now_ms, records, control=control)
        self._renew()

    def _renew(self) -> None:
        codec = self._random.choice((CompressionCodec.NONE, CompressionCodec.LZ4))
        self._accumulator = Accumulator(self._max_batch_bytes, codec)
        self._accumulator.begin(self.leader_epoch, self.stored_end_offset)


class InterruptedRun:
    """One log and the leaders that write it, one after the other."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        batch_bytes = self.random.choice((1500, 2000, 3000))
        self.config = ControllerConfig(max_batch_bytes=batch_bytes)
        self.raft = InterruptedRaft(self.random, batch_bytes)
        self.world = self._node()
        self.answers: list[tuple[str, list[Values]]] = []
        self.epoch = 0
        self.lead()
        self.world.add_brokers(1, 2)

    def _node(self) -> World:
        world = World(self.config)
        world.raft = self.raft
        world.controller = Controller(self.config, self.raft, SeededRandomSource(), CLUSTER_ID)
        return world

    def lead(self) -> None:
        self.epoch += 1
        self.raft.leader_id, self.raft.leader_epoch = self.raft.node_id, self.epoch
        self.world.commit()
        self.raft.begin()
        self.raft.append(self.world.now_ms, [LEADER_CHANGE], control=True)
        self.world.controller.handle_leader_change(self.world.now_ms, self.raft.node_id, self.epoch)
        self.world.commit()

    def decide_something(self, name: str) -> None:
        world, random = self.world, self.random
        if random.random() < 0.1:
            self.raft.proposals_left = random.randint(0, 3)
        match random.choice(("create", "create", "create", "delete", "note", "time", "control", "commit")):
            case "create":
                size = random.choice((1, 2, 9, 30, 45))
                asked = [topic(name, num_partitions=size)]
                self.answers.append((name, world.send(ApiKey.CREATE_TOPICS, 7, topics=asked, timeout=1000)))
            case "delete":
                named = [{"name": each, "topic_id": None} for each in world.controller.image.topics.by_name]
                world.send(ApiKey.DELETE_TOPICS, 6, topics=named[:1], timeout=1000)
            case "note":
                request = ControllerRequest(api_key=ApiKey.ADD_RAFT_VOTER, api_version=0, body=None)
                world.controller.note_change(world.now_ms, request, "add voter 5")
            case "time":
                world.now_ms += 600
                world.controller.handle_time(world.now_ms)
            case "control" if world.controller.is_active:
                self.raft.append(world.now_ms, [LEADER_CHANGE], control=True)
            case _:
                self.commit_some()

    def commit_some(self) -> None:
        self.raft.drain(0)
        left = len(self.raft.batches) - self.raft.committed
        if left:
            self.world.commit(self.random.randint(1, left))

    def lose(self) -> None:
        """Others lead, who have only a part of what was proposed, and perhaps commit some of that."""
        if self.random.random() < 0.8:
            self.commit_some()
        self.raft.end()
        self.epoch += 1
        self.world.follow(OTHER_NODE, self.epoch)
        left = len(self.raft.batches) - self.raft.committed
        kept = self.random.randint(0, left)
        del self.raft.batches[self.raft.committed + kept :]
        if self.random.random() < 0.5:
            self.commit_some()

    def replayed(self) -> MetadataLoader:
        """What a node makes of the committed log that has always followed."""
        loader = MetadataLoader()
        for batch in self.raft.batches[: self.raft.committed]:
            loader.handle_commit([batch])
        return loader

    def change_node(self, follower: MetadataLoader) -> None:
        """Another node leads next: one that replays the log, or begins with a snapshot of the follower's state."""
        self.world = self._node()
        controller, start = self.world.controller, 0
        if follower.image.provenance.is_batch_aligned and self.random.random() < 0.6:
            state = LoadedSnapshot(follower.image, follower.last_audit_note)
            controller.handle_snapshot(0, state)
            end = follower.image.end_offset
            start = (
                next((i for i, each in enumerate(self.raft.batches) if each.base_offset >= end), None) or 0
            )
            start = len(self.raft.batches) if self.raft.batches[-1].next_offset <= end else start
        while start < len(self.raft.batches):
            count = self.random.randint(1, 4)
            controller.handle_commit(0, self.raft.batches[start : start + count])
            start += count
        self.raft.committed = len(self.raft.batches)

    def check_as(self, follower: MetadataLoader) -> None:
        loader: Any = self.world.controller._timeline.loader
        assert loader.image == follower.image
        assert loader.state_hash == follower.state_hash == hash_of_image(follower.image)
        assert loader.last_audit_note == follower.last_audit_note
        assert loader.transaction_start_offset == follower.transaction_start_offset
        assert self.world.controller.image is self.world.controller.committed_image

    def run(self) -> None:
        for phase in range(PHASES):
            for number in range(self.random.randint(1, 6)):
                self.decide_something(f"t{phase}-{number}")
            self.lose()
            assert all(len(answers) == 1 for _, answers in self.answers), "each is answered once, and by now"
            follower = self.replayed()
            self.check_as(follower)
            if self.random.random() < 0.6:
                self.change_node(follower)
            self.lead()


def audit_faults(raft: FakeRaft) -> list[AuditFault]:
    faults: list[AuditFault] = []
    chain = AuditChain(faults.append)
    chain.begin(None)
    for batch in raft.batches:
        if not batch.is_control:
            chain.take("log", 0, batch.records)
    return faults


@pytest.fixture(scope="module")
def runs() -> list[InterruptedRun]:
    made = [InterruptedRun(seed) for seed in SEEDS]
    for run in made:
        run.run()
    return made


def test_every_node_makes_the_same_state_of_what_is_left(runs: list[InterruptedRun]) -> None:
    """Also checked after each loss, within the runs."""
    for run in runs:
        follower = MetadataLoader()
        follower.handle_commit(run.raft.batches)
        run.check_as(follower)
        assert follower.transaction_start_offset is None


def test_the_chain_of_notes_is_whole(runs: list[InterruptedRun]) -> None:
    assert [audit_faults(run.raft) for run in runs] == [[]] * len(runs)


def topics_created(raft: FakeRaft) -> set[str]:
    """By name; one may have gone again in the batch it came with. What was aborted never was."""
    created: set[str] = set()
    held_back: set[str] = set()
    for record in raft.records():
        match record:
            case TopicRecord():
                held_back.add(record.name)
            case BeginTransactionRecord() | EndTransactionRecord():
                created |= held_back
                held_back = set()
            case AbortTransactionRecord():
                held_back = set()
    return created | held_back


def test_what_was_answered_as_created_is_in_the_log(runs: list[InterruptedRun]) -> None:
    for run in runs:
        codes = {name: answers[0].topics[0].error_code for name, answers in run.answers}
        assert {name for name, code in codes.items() if code is ErrorCode.none} <= topics_created(run.raft)


def test_the_runs_cover_enough(runs: list[InterruptedRun]) -> None:
    kinds = [type(record) for run in runs for record in run.raft.records()]
    assert kinds.count(AbortTransactionRecord) > 5
    assert kinds.count(EndTransactionRecord) > len(runs) + 20
