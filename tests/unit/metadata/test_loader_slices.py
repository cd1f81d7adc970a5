"""A batch of very many records is applied in slices; the image, its hash and the publications are those of one go."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any
from uuid import UUID

import pytest

from kquorum.broker.metadata_cache.cache import MetadataCache
from kquorum.broker.state_machine import BrokerStateMachine
from kquorum.metadata import loader as loader_module
from kquorum.metadata.image import topics as topics_delta
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.topics import TopicsDelta
from kquorum.metadata.loader import RECORDS_AT_ONCE, MetadataLoader
from kquorum.metadata.state_hash import image_hash
from kquorum.metadata.state_hash.image_hash import hash_of_image
from kquorum.metadata.state_hash.partition_hash import hash_of_rows
from kquorum.raft.adapters.delivery import CommitFeed
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_batch import LogBatch, build_batch
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.features import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, PartitionRecord, TopicRecord
from kquorum.wire.record_batch import write_batch
from kquorum.wire.record_frame import encode_record
from kquorum.wire.schema import MetadataRecord
from tests.support.memory_log import MemoryLog

AT_ONCE = 100
TOPICS = 7


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader_module, "RECORDS_AT_ONCE", AT_ONCE)
    monkeypatch.setattr(topics_delta, "MUCH_PENDING", 3 * AT_ONCE)
    monkeypatch.setattr(image_hash, "_ROWS_AT_ONCE", 50)


def topic_id(number: int) -> UUID:
    return UUID(int=900 + number)


def partition(number: int, index: int, **changes: Any) -> PartitionRecord:
    values: dict[str, Any] = {"replicas": (1, 2, 3), "isr": (1, 2), "leader": 1, "leader_epoch": 1} | changes
    return PartitionRecord(partition_id=index, topic_id=topic_id(number), **values)


def config(number: int) -> ConfigRecord:
    return ConfigRecord(resource_type=2, resource_name=f"t{number % TOPICS}", name=f"k{number}", value="v")


def some_records(random_source: Random) -> Iterator[MetadataRecord]:
    """Topics, their partitions, and whatever may happen to them; long runs of one kind, and others in between."""
    for number in range(TOPICS):
        yield TopicRecord(name=f"t{number}", topic_id=topic_id(number))
        for index in range(80):
            yield partition(
                number, index, **({"adding_replicas": (3,)} if random_source.random() < 0.02 else {})
            )
            if random_source.random() < 0.02:
                yield config(random_source.randrange(1000))
    for _ in range(12):
        number = random_source.randrange(TOPICS)
        for index in random_source.sample(range(80), random_source.randint(1, 80)):
            yield PartitionChangeRecord(
                topic_id=topic_id(number), partition_id=index, isr=tuple(random_source.sample((1, 2, 3), 2))
            )
        for _ in range(random_source.choice((0, 0, 250))):
            yield config(random_source.randrange(1000))


def batches_of(
    records: Sequence[MetadataRecord], codec: CompressionCodec = CompressionCodec.NONE, size: int = 10**6
) -> list[LogBatch]:
    values = [(None, encode_record(record)) for record in records]
    return [
        build_batch(start, 3, 1000 + start, values[start : start + size], codec=codec)
        for start in range(0, len(values), size)
    ]


class Listening:
    def __init__(self) -> None:
        self.loader = MetadataLoader()
        self.published: list[tuple[MetadataImage, int, Any]] = []
        self.loader.publishers.append(self._hear)

    def _hear(self, delta: MetadataDelta, image: MetadataImage) -> None:
        changed = {key: sorted(ids) for key, ids in delta.changed_topics.items()}
        told = (changed, delta.created_topic_ids, delta.deleted_topic_ids, delta.record_count)
        self.published.append((image, self.loader.state_hash, told))

    def load_in_slices(self, batches: Sequence[LogBatch]) -> int:
        """How many slices there were."""
        count = 0
        for batch in batches:
            is_done = False
            while not is_done:
                before = self.loader.image, self.loader.state_hash, len(self.published)
                is_done = self.loader.handle_slice([batch])
                count += 1
                if len(self.published) == before[2]:
                    assert (self.loader.image, self.loader.state_hash) == before[:2]
        return count


def assert_same(one: Listening, other: Listening) -> None:
    assert one.published == other.published
    assert one.loader.image == other.loader.image
    assert one.loader.state_hash == other.loader.state_hash == hash_of_image(one.loader.image)
    assert one.loader.transaction_start_offset == other.loader.transaction_start_offset


def deliver_all(machine: BrokerStateMachine, batches: Sequence[LogBatch], *counts: list[int]) -> int:
    """Turn by turn, each with a new entry in `counts`; answers the topics of the one image that is published, at the
    end."""
    log = MemoryLog()
    log.append(batches)
    seen: list[int] = []
    machine.observers.append(lambda _now_ms, _delta, image: seen.append(len(image.topics.by_id)))
    feed = CommitFeed(log, machine, node_id=1, applied_offset=0)
    feed.advance(batches[-1].next_offset)
    while feed.has_more:
        assert not seen
        for each in counts:
            each.append(0)
        feed.deliver(0)
    (published,) = seen
    return published


@pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.LZ4])
@pytest.mark.parametrize("seed", range(3))
def test_slices_make_what_one_go_makes(
    monkeypatch: pytest.MonkeyPatch, seed: int, codec: CompressionCodec, small_slices: None
) -> None:
    batches = batches_of(list(some_records(Random(seed))), codec)
    sliced = Listening()
    assert sliced.load_in_slices(batches) > 10
    assert len(sliced.published) == 1
    monkeypatch.undo()
    whole = Listening()
    assert batches[0].next_offset < 10 * RECORDS_AT_ONCE
    monkeypatch.setattr(loader_module, "RECORDS_AT_ONCE", 10**6)
    for batch in batches:
        whole.loader.handle_commit([batch])
    assert_same(sliced, whole)


@pytest.mark.parametrize("end", [EndTransactionRecord(), AbortTransactionRecord()])
@pytest.mark.parametrize("size", [10**6, 450])
def test_a_transaction_in_slices(
    monkeypatch: pytest.MonkeyPatch, end: MetadataRecord, size: int, small_slices: None
) -> None:
    records = list(some_records(Random(9)))
    records.insert(len(records) - 20, end)
    records.insert(330, BeginTransactionRecord(name="t"))
    batches = batches_of(records, size=size)
    sliced = Listening()
    sliced.load_in_slices(batches)
    monkeypatch.undo()
    monkeypatch.setattr(loader_module, "RECORDS_AT_ONCE", 10**6)
    whole = Listening()
    faults: list[Any] = []
    whole.loader._on_fault = sliced.loader._on_fault = faults.append
    for batch in batches:
        whole.loader.handle_commit([batch])
    assert_same(sliced, whole)


def test_records_that_are_not_plain_are_read_in_slices_too(small_slices: None) -> None:
    """A key, which no leader of KRaft writes, makes a record unlike the others."""
    values = [
        (b"k" if number % 90 == 0 else None, encode_record(config(number))) for number in range(5 * AT_ONCE)
    ]
    sliced, whole = Listening(), Listening()
    assert sliced.load_in_slices([build_batch(0, 3, 1000, values)]) >= 6
    whole.loader.handle_commit([build_batch(0, 3, 1000, values)])
    assert_same(sliced, whole)


def test_what_is_left_over_behind_the_records_is_an_error(small_slices: None) -> None:
    values = [(None, encode_record(config(number))) for number in range(3 * AT_ONCE)]
    data = bytearray(write_batch(base_offset=0, leader_epoch=3, timestamp_ms=1, records=values))
    data[57:61] = (len(values) - 1).to_bytes(4)
    data[23:27] = (len(values) - 2).to_bytes(4)
    batch = LogBatch(0, len(values) - 2, 3, is_control=False, data=bytes(data))
    listening = Listening()
    with pytest.raises(DecodeError, match="bytes are left"):
        listening.load_in_slices([batch])
    assert not listening.published


def test_a_snapshot_in_the_middle_of_a_batch_drops_it(small_slices: None) -> None:
    batch = batches_of([config(number) for number in range(5 * AT_ONCE)])[0]
    ahead, behind = Listening(), Listening()
    ahead.loader.handle_commit([batch])
    for _ in range(3):
        assert not behind.loader.handle_slice([batch])
    behind.loader.handle_snapshot(ahead.loader.image)
    more = build_batch(batch.next_offset, 3, 9000, [(None, encode_record(config(7_777)))])
    for each in (ahead, behind):
        each.loader.handle_commit([more])
    assert behind.loader.image == ahead.loader.image
    assert behind.loader.state_hash == ahead.loader.state_hash


def test_no_turn_of_a_follower_replays_more_than_a_thousand_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """A valid batch may hold hundreds of thousands of records."""
    turns = [0]
    replay, replay_together = MetadataLoader._replay, MetadataLoader._replay_together

    def counted(self: MetadataLoader, record: MetadataRecord, offset: int) -> None:
        turns[-1] += 1
        replay(self, record, offset)

    def counted_together(self: MetadataLoader, records: Any) -> Any:
        others = replay_together(self, records)
        turns[-1] += len(records) - len(others)
        return others

    monkeypatch.setattr(MetadataLoader, "_replay", counted)
    monkeypatch.setattr(MetadataLoader, "_replay_together", counted_together)
    records: list[MetadataRecord] = [TopicRecord(name="t0", topic_id=topic_id(0))]
    records += [partition(0, index) for index in range(6_000)]
    records += [config(number) for number in range(6_000)]
    machine = BrokerStateMachine(MetadataCache())
    assert deliver_all(machine, batches_of(records), turns) == 1
    assert max(turns) <= RECORDS_AT_ONCE
    assert sum(turns) == len(records)


def test_what_is_replayed_one_by_one_is_put_into_its_tables_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of a partition that has just changed is no matter for columns."""
    topics, size = 60, 100
    machine = BrokerStateMachine(MetadataCache())
    made: list[MetadataRecord] = []
    for number in range(topics):
        made.append(TopicRecord(name=f"t{number}", topic_id=topic_id(number)))
        made += [partition(number, index) for index in range(size)]
    (batch,) = batches_of(made)
    machine.handle_commit(0, [batch])
    turns = [0]
    settle = TopicsDelta._settle

    def counted(self: TopicsDelta, topic_ids: Sequence[UUID]) -> None:
        turns[-1] += sum(len(self._pending[each]) for each in topic_ids)
        settle(self, topic_ids)

    monkeypatch.setattr(TopicsDelta, "_settle", counted)
    changes = [
        encode_record(PartitionChangeRecord(topic_id=topic_id(number), partition_id=index, isr=(1, isr)))
        for index in range(size)
        for number in range(topics)
        for isr in (2, 3)
    ]
    long = build_batch(batch.next_offset, 3, 2000, [(None, value) for value in changes])
    while not machine.handle_commit_slice(0, [long]):
        turns.append(0)
    assert sum(turns) >= topics * size
    assert max(turns) <= RECORDS_AT_ONCE + size


@pytest.mark.parametrize("size", [10**6, 90])
def test_what_is_pending_is_put_into_its_tables_before_it_is_much(size: int, small_slices: None) -> None:
    """In a batch, and in a transaction over many: at its end all of it would be one turn's work."""
    records: list[MetadataRecord] = [BeginTransactionRecord(name="t")]
    for number in range(40):
        records.append(TopicRecord(name=f"t{number}", topic_id=topic_id(number)))
        # One by one: partitions with a reassignment are no matter for columns.
        records += [partition(number, index, adding_replicas=(3,)) for index in range(50)]
    loader = MetadataLoader()
    most = 0
    for batch in batches_of(records, size=size):
        while not loader.handle_slice([batch]):
            most = max(most, loader._delta.topics._pending_count)
        most = max(most, loader._delta.topics._pending_count)
    assert topics_delta.MUCH_PENDING <= most <= topics_delta.MUCH_PENDING + 2 * AT_ONCE


@pytest.mark.parametrize("size", [90, 450])
def test_a_transaction_over_small_batches_is_published_in_slices(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """No batch is long, but the End is work for all of them; many topics come into one image of the topics."""
    monkeypatch.setattr(topics_delta, "MUCH_PENDING", 2_000)
    monkeypatch.setattr(image_hash, "_ROWS_AT_ONCE", 50_000)
    turns = [0]
    images = [0]
    put, hashed = TopicsDelta._settle_rows, hash_of_rows

    def counted_put(self: TopicsDelta, tables: Sequence[tuple[UUID, Any]]) -> None:
        turns[-1] += len(tables)
        images[-1] += 1
        put(self, tables)

    def counted_hash(rows: Sequence[Any]) -> int:
        turns[-1] += len(rows)
        return hashed(rows)

    monkeypatch.setattr(TopicsDelta, "_settle_rows", counted_put)
    monkeypatch.setattr(image_hash, "hash_of_rows", counted_hash)
    records: list[MetadataRecord] = [BeginTransactionRecord(name="t")]
    topics = 2_500
    for number in range(topics):
        records += [TopicRecord(name=f"t{number}", topic_id=topic_id(number)), partition(number, 0)]
    records.append(EndTransactionRecord())
    machine = BrokerStateMachine(MetadataCache())
    assert deliver_all(machine, batches_of(records, size=size), turns, images) == topics
    assert sum(turns) == 2 * topics
    assert max(turns) <= RECORDS_AT_ONCE
    assert max(images) <= 2
    assert machine.state_hash == hash_of_image(machine.image)


def test_small_changes_of_long_resources_are_hashed_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """The records have few bytes, but the hash of a resource is over all that it has: issue 18, F8-5."""
    resources, long = 300, "1:1," * 8_000
    log = MemoryLog()
    names = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
    made = [
        ConfigRecord(resource_type=2, resource_name=f"t{number}", name=name, value=f"{number}:1,{long}")
        for number in range(resources)
        for name in names
    ]
    changes = [
        ConfigRecord(resource_type=2, resource_name=f"t{number}", name="retention.ms", value="7")
        for number in range(resources)
    ]
    log.append(batches_of([*made, *changes], size=50))
    machine = BrokerStateMachine(MetadataCache())
    feed = CommitFeed(log, machine, node_id=1, applied_offset=0)
    turns: list[int] = []

    def deliver(records: int) -> None:
        feed.advance(records)
        while feed.has_more:
            turns.append(0)
            feed.deliver(0)

    deliver(len(made))
    turns.clear()
    hash_of = image_hash._map_entry

    def counted(kind: str, key: object, values: Any) -> int:
        turns[-1] += sum(map(len, values.values()))
        return hash_of(kind, key, values)

    monkeypatch.setattr(image_hash, "_map_entry", counted)
    deliver(len(made) + resources)
    assert sum(turns) > 2 * resources * 2 * len(long)
    assert max(turns) < sum(turns) / 5
    assert machine.state_hash == hash_of_image(machine.image)
