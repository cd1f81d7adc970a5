"""A Fetch of a session looks at the partitions that something happened to, and tells all there is."""

from copy import copy
from random import Random
from typing import Any

import pytest

from kquorum.broker.fetch import sessions
from kquorum.broker.replica.partition import Partition
from kquorum.metadata.authorizer.access import Access
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, RemoveTopicRecord
from tests.support.broker.data_world import BROKER, Asked, DataWorld
from tests.support.broker.disk_logs import records_in
from tests.support.images import partition_record, topic_id, topic_records

TOPIC, NUMBER, PARTITIONS = "many", 9, 20
FOLLOWER = 2


class Reads:
    """Counts the partitions that are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        for name in ("read", "read_as_follower"):
            self._count(monkeypatch, name)

    def _count(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        plain = getattr(Partition, name)

        def counted(*given: Any, **more: Any) -> Any:
            self.count += 1
            return plain(*given, **more)

        monkeypatch.setattr(Partition, name, counted)

    def taken(self) -> int:
        count, self.count = self.count, 0
        return count


class Reader:
    """A consumer or a follower of all partitions, with what it was told of each."""

    def __init__(self, world: DataWorld, *, is_follower: bool = False) -> None:
        self.world = world
        self.is_follower = is_follower
        self.offsets = [0] * PARTITIONS
        self.high_watermarks = [-1] * PARTITIONS
        self.log_starts = [-1] * PARTITIONS
        self.errors: dict[int, ErrorCode] = {}
        self.session_id = self.epoch = 0
        self._changed = set(range(PARTITIONS))

    def send(self, *, max_wait_ms: int = 0, max_bytes: int = 100_000, min_bytes: int = 1) -> Asked:
        named = sorted(self._changed) if self.epoch else range(PARTITIONS)
        partitions = tuple(
            FetchPartition(partition=each, fetch_offset=self.offsets[each], partition_max_bytes=1_000)
            for each in named
        )
        topics = (FetchTopic(topic_id=topic_id(NUMBER), partitions=partitions),) if partitions else ()
        replica = ReplicaState(replica_id=FOLLOWER, replica_epoch=-1) if self.is_follower else ReplicaState()
        request = FetchRequest(
            replica_state=replica,
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=topics,
        )
        self._changed.clear()
        asked = self.world.ask(request, 18)
        self.world.settle()
        return asked

    def take(self, asked: Asked) -> list[int]:
        """Which partitions the answer names."""
        answer: FetchResponse = asked.answer
        assert answer.error_code is ErrorCode.none
        self.session_id, self.epoch = answer.session_id, self.epoch + 1
        named = []
        for topic in answer.responses:
            for each in topic.partitions:
                index = each.partition_index
                named.append(index)
                self.errors.pop(index, None)
                if each.error_code is not ErrorCode.none:
                    self.errors[index] = each.error_code
                    continue
                self.high_watermarks[index] = each.high_watermark
                self.log_starts[index] = each.log_start_offset
                found = records_in(bytes(each.records or b""))
                if found:
                    self.offsets[index] = found[-1].offset + 1
                    self._changed.add(index)
        return sorted(named)

    def fetch(self, **how: int) -> list[int]:
        return self.take(self.send(**how))

    def catch_up(self) -> None:
        while self.fetch():
            pass


@pytest.fixture
def world() -> DataWorld:
    made = DataWorld()
    replicas = (BROKER, FOLLOWER)
    made.change(
        *topic_records(NUMBER, TOPIC, *(partition_record(NUMBER, n, replicas) for n in range(PARTITIONS)))
    )
    while made.replicas.next_deadline_ms() == 0:
        made.replicas.tick(made.now_ms)
    made.settle()
    return made


def replicated(world: DataWorld, index: int, *values: str) -> None:
    world.append(*values, index=index, topic=TOPIC)
    partition = world.partition(index, TOPIC)
    partition.read_as_follower(world.now_ms, FOLLOWER, partition.log.log_end_offset, max_bytes=1)
    world.settle()


def test_partitions_at_rest_are_not_read(world: DataWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(world)
    reader.catch_up()
    reads = Reads(monkeypatch)
    assert reader.fetch() == []
    assert reads.taken() == 0
    replicated(world, 7, "x")
    reads.taken()
    assert reader.fetch() == [7]
    assert reads.taken() == 1
    assert reader.fetch() == []
    assert reads.taken() == 1, "it was named: its reader has come to the end"
    assert reader.fetch() == []
    assert reads.taken() == 0


def test_a_fetch_that_waits_is_woken_by_a_partition_that_was_not_read_for_it(
    world: DataWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(world)
    reader.catch_up()
    reads = Reads(monkeypatch)
    asked = reader.send(max_wait_ms=500)
    assert asked.is_waiting
    assert len(world.plane.waits) == 1
    replicated(world, 3, "x")
    assert not asked.is_waiting
    assert reader.take(asked) == [3]
    assert reader.offsets[3] == 1
    assert reads.taken() <= 3
    assert len(world.plane.waits) == 0
    # Bytes are counted over several partitions.
    asked = reader.send(max_wait_ms=500, min_bytes=120)
    replicated(world, 4, "x")
    assert asked.is_waiting
    replicated(world, 5, "y" * 60)
    assert reader.take(asked) == [4, 5]


def test_what_does_not_fit_into_an_answer_comes_with_the_next(world: DataWorld) -> None:
    reader = Reader(world)
    reader.catch_up()
    for index in (2, 5, 8):
        replicated(world, index, "x" * 100)
    told: list[int] = []
    for _ in range(3):
        before = list(reader.offsets)
        reader.fetch(max_bytes=1)
        told += [index for index in range(PARTITIONS) if reader.offsets[index] > before[index]]
    assert sorted(told) == [2, 5, 8]


def test_a_partition_whose_records_are_not_taken_comes_again(world: DataWorld) -> None:
    """The reader names no new offset."""
    reader = Reader(world)
    reader.catch_up()
    replicated(world, 2, "x")
    for _ in range(3):
        asked = reader.send()
        assert [each.partition_index for each in asked.answer.responses[0].partitions] == [2]
        reader.epoch += 1


def test_the_metadata_make_all_due(world: DataWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(world)
    reader.catch_up()
    reads = Reads(monkeypatch)
    world.change(PartitionChangeRecord(partition_id=1, topic_id=topic_id(NUMBER), isr=(BROKER,)))
    assert reader.fetch() == []
    assert reads.taken() == PARTITIONS
    assert reader.fetch() == []
    assert reads.taken() == 0
    world.change(RemoveTopicRecord(topic_id=topic_id(NUMBER)))
    assert reader.fetch() == list(range(PARTITIONS))
    assert reader.fetch() == list(range(PARTITIONS)), "each answer has the error"
    assert len(reader.errors) == PARTITIONS


def test_a_right_that_is_taken_away_is_noticed(world: DataWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(world)
    reader.catch_up()
    monkeypatch.setattr(Access, "allows_on_topic", lambda *_given: False)
    world.services.cache.swap(_with_other_security(world.image))
    assert reader.fetch() == list(range(PARTITIONS))
    assert set(reader.errors.values()) == {ErrorCode.topic_authorization_failed}


def _with_other_security(image: Any) -> Any:
    changed = copy(image)
    changed.security = copy(image.security)
    return changed


def test_all_are_looked_at_now_and_then(world: DataWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retention moves the start of a log without an event."""
    reader = Reader(world)
    replicated(world, 6, "x", "y")
    reader.catch_up()
    world.partition(6, TOPIC).log.advance_log_start_offset(1)
    reads = Reads(monkeypatch)
    world.now_ms += sessions.ALL_DUE_EVERY_MS
    assert reader.fetch() == [6]
    assert reads.taken() == PARTITIONS
    assert reader.log_starts[6] == 1


def test_what_a_session_forgets_is_looked_at_no_more(world: DataWorld) -> None:
    reader = Reader(world)
    reader.catch_up()
    forgotten = (ForgottenTopic(topic_id=topic_id(NUMBER), partitions=(3,)),)
    request = FetchRequest(
        session_id=reader.session_id, session_epoch=reader.epoch, forgotten_topics_data=forgotten
    )
    reader.take(world.ask(request, 18))
    replicated(world, 3, "x")
    replicated(world, 4, "x")
    assert reader.fetch() == [4]


def test_records_that_come_between_a_reading_and_its_end_are_told(
    world: DataWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reading of many partitions takes several turns of the loop."""
    reader = Reader(world)
    reader.catch_up()
    world.change(PartitionChangeRecord(partition_id=1, topic_id=topic_id(NUMBER), isr=(BROKER,)))
    plain = Partition.read

    def read(partition: Partition, *given: Any, **more: Any) -> Any:
        if (
            partition.topic_partition.partition == PARTITIONS - 1
            and not reader.world.partition(0, TOPIC).log.log_end_offset
        ):
            replicated(world, 0, "late")
        return plain(partition, *given, **more)

    monkeypatch.setattr(Partition, "read", read)
    assert reader.fetch() == []
    assert reader.fetch() == [0]


class TestFollowers:
    def test_a_follower_at_rest_stays_in_sync_as_long_as_it_fetches(
        self, world: DataWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Records may come at any moment: it had everything a moment before."""
        monkeypatch.setattr(sessions, "ALL_DUE_EVERY_MS", 10**9)
        reader = Reader(world, is_follower=True)
        reader.catch_up()
        partition = world.partition(4, TOPIC)
        for _ in range(100):
            world.now_ms += 500
            reader.fetch()
        world.append("x", index=4, topic=TOPIC)
        assert partition.lagging_members(world.now_ms) == frozenset()
        world.now_ms += 29_000
        assert partition.lagging_members(world.now_ms) == frozenset()
        world.now_ms += 2_000
        assert partition.lagging_members(world.now_ms) == {FOLLOWER}

    def test_a_follower_that_fetches_no_more_lags_with_the_next_records(self, world: DataWorld) -> None:
        reader = Reader(world, is_follower=True)
        reader.catch_up()
        world.now_ms += 60_000
        world.append("x", index=4, topic=TOPIC)
        assert world.partition(4, TOPIC).lagging_members(world.now_ms) == {FOLLOWER}

    def test_a_follower_that_fetches_other_partitions_and_not_this_one_lags(self, world: DataWorld) -> None:
        """It does not take its records: its session goes on, and the partition is due all the while."""
        reader = Reader(world, is_follower=True)
        reader.catch_up()
        world.append("x", index=4, topic=TOPIC)
        for _ in range(62):
            world.now_ms += 500
            asked = reader.send()
            assert asked.answer.error_code is ErrorCode.none
            reader.epoch += 1
        assert world.partition(4, TOPIC).lagging_members(world.now_ms) == {FOLLOWER}

    def test_a_follower_out_of_the_isr_is_counted_with_each_fetch(
        self, world: DataWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What the controller refused is proposed again with the next."""
        world.change(PartitionChangeRecord(partition_id=4, topic_id=topic_id(NUMBER), isr=(BROKER,)))
        reader = Reader(world, is_follower=True)
        reader.catch_up()
        reads = Reads(monkeypatch)
        for _ in range(3):
            reader.fetch()
            assert reads.taken() == 1


class History:
    """What happens to the partitions while a reader fetches."""

    def __init__(self, world: DataWorld, seed: int) -> None:
        self.world = world
        self.random = Random(seed)

    def happen(self) -> None:
        index = self.random.randrange(PARTITIONS)
        match self.random.randrange(6):
            case 0 | 1:
                replicated(self.world, index, "x" * self.random.randrange(200))
            case 2:
                self.world.append("y", index=index, topic=TOPIC)
            case 3:
                partition = self.world.partition(index, TOPIC)
                partition.delete_records(self.random.randint(0, partition.log.high_watermark))
                self.world.settle()
            case 4:
                self.world.pass_time(self.random.choice((1, 100, 600)))


def read_to_the_end(reader: Reader) -> None:
    """A reader below the start of a log goes on there."""
    for _ in range(200):
        for index in range(PARTITIONS):
            start = reader.world.partition(index, TOPIC).log.log_start_offset
            if reader.offsets[index] < start:
                reader.offsets[index] = start
                reader._changed.add(index)
        if not reader.fetch() and not reader._changed:
            return


@pytest.mark.parametrize("is_follower", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_any_history_tells_the_reader_what_there_is(world: DataWorld, seed: int, is_follower: bool) -> None:
    """Fetches wait and are woken; answers are full; at last the reader knows what there is, and gets it at once."""
    history, reader = History(world, seed), Reader(world, is_follower=is_follower)
    reader.catch_up()
    waiting: Asked | None = None
    for _ in range(150):
        history.happen()
        if waiting is not None and not waiting.is_waiting:
            reader.take(waiting)
            waiting = None
        if waiting is None and history.random.random() < 0.7:
            max_bytes = history.random.choice((1, 300, 100_000))
            waiting = reader.send(max_wait_ms=500, max_bytes=max_bytes)
    if waiting is not None:
        world.pass_time(1_000)
        reader.take(waiting)
    read_to_the_end(reader)
    logs = [world.partition(index, TOPIC).log for index in range(PARTITIONS)]
    ends = [log.log_end_offset if is_follower else log.high_watermark for log in logs]
    assert reader.offsets == ends
    assert reader.high_watermarks == [log.high_watermark for log in logs]
    assert reader.log_starts == [log.log_start_offset for log in logs]
    asked = reader.send(max_wait_ms=500)
    assert asked.is_waiting
    replicated(world, 0, "now")
    assert reader.take(asked) == [0]
