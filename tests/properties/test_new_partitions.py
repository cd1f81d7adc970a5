"""New partitions decided by columns against those decided one by one: same log, same image, same answers."""

import random
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.controller import Controller
from kquorum.metadata.controller.topics import new_partitions
from kquorum.metadata.image import loading
from kquorum.metadata.image.cluster import BrokerRegistration
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.metadata.image.records import broker_record
from kquorum.metadata.loader import MetadataLoader
from kquorum.raft.batches import BATCH_HEADER_BYTES, RECORD_OVERHEAD_BYTES
from kquorum.raft.errors import RecordBatchTooLargeError
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records import configs, features, topics
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.schema import MetadataRecord
from tests.support.api_calls import Values
from tests.support.bulk_worlds import SEEDS, changed, partition_of, replayed
from tests.support.controller_world import CLUSTER_ID, NODE_ID, FakeRaft, SeededRandomSource, World

LEVELS = [4, 5, 6, 7, 11, 13, 16, 17, 21, 23, 25, 30]
NAMES = ["a", "b", "c.d", "c_d", "old", "older", "-no/name"]
OLD = {"old": UUID(int=1 << 120), "older": UUID(int=77)}
FEW_AND_MANY = [1, 2, 15, 16, 17, 40, 90]
NEVER = 1 << 30


class LimitedRaft(FakeRaft):
    """Refuses batches that are too large, as the replica does."""

    def __init__(self, max_batch_bytes: int) -> None:
        super().__init__()
        self._max_batch_bytes = max_batch_bytes

    def propose(self, now_ms: int, leader_epoch: int, values: Any) -> int:
        size = BATCH_HEADER_BYTES + sum(len(value) + RECORD_OVERHEAD_BYTES for value in values)
        if size > self._max_batch_bytes:
            raise RecordBatchTooLargeError(f"{size} bytes")
        return super().propose(now_ms, leader_epoch, values)


def cluster_records(random_source: random.Random, level: int) -> list[MetadataRecord]:
    """Brokers of all kinds, two topics with partitions of all kinds, perhaps a quota."""
    records: list[MetadataRecord] = [
        features.FeatureLevelRecord(name="metadata.version", feature_level=level)
    ]
    racks = random_source.choice([[None], ["r"], ["r", "s"], ["r", "s", "t"], [None, "r", "s", "t", "u"]])
    for broker_id in range(random_source.choice([1, 3, 6, 9])):
        directories = tuple(
            UUID(int=900 + 10 * broker_id + each) for each in range(random_source.choice([0, 1, 1, 2]))
        )
        log_dirs = directories if level >= 17 else ()
        broker = BrokerRegistration(
            id=broker_id,
            epoch=broker_id,
            incarnation_id=UUID(int=broker_id + 1),
            rack=random_source.choice(racks),
            fenced=random_source.randrange(5) == 0,
            in_controlled_shutdown=level >= 7 and random_source.randrange(9) == 0,
            log_dirs=log_dirs,
            cordoned_log_dirs=log_dirs[: random_source.choice([0, 0, 1, 2])] if level >= 30 else None,
        )
        records.append(broker_record(broker))
    for name, topic_id in OLD.items():
        records.append(topics.TopicRecord(name=name, topic_id=topic_id))
        records += [
            partition_of(random_source, topic_id, each, 3, level)
            for each in range(random_source.choice([1, 20]))
        ]
    if random_source.randrange(2):
        alice = configs.EntityData(entity_type="user", entity_name="alice")
        quota = configs.ClientQuotaRecord(
            entity=(alice,),
            key="controller_mutation_rate",
            value=random_source.choice([0.5, 5.0]),
            remove=False,
        )
        records.append(quota)
    return records


def replica_lists(random_source: random.Random, count: int) -> list[tuple[int, ...]]:
    """Lawful ones, mostly."""
    brokers = list(range(random_source.choice([1, 3, 6])))
    factor = random_source.randint(1, len(brokers))
    lists = [tuple(random_source.sample(brokers, factor)) for _ in range(count)]
    if lists and random_source.randrange(3) == 0:
        place = random_source.randrange(count)
        lists[place] = random_source.choice([(), (0, 0), (99,), (-1,), (*lists[place], 5), lists[place][:1]])
    return lists


def new_topic(random_source: random.Random) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "name": random_source.choice(NAMES),
        "num_partitions": random_source.choice([*FEW_AND_MANY, *FEW_AND_MANY, -1, 0]),
        "replication_factor": random_source.choice([1, 1, 2, 2, 3, 4, -1, 0]),
        "assignments": (),
        "configs": random_source.choice([(), (), ({"name": "retention.ms", "value": "5"},)]),
    }
    if random_source.randrange(10) == 0:
        asked["configs"] = ({"name": "retention.ms", "value": random_source.choice(["much", None])},)
    if random_source.randrange(3) == 0:
        lists = replica_lists(random_source, random_source.choice(FEW_AND_MANY))
        ids = list(range(len(lists)))
        if random_source.randrange(4) == 0:
            random_source.shuffle(ids)
        if random_source.randrange(8) == 0:
            ids[random_source.randrange(len(ids))] = random_source.choice([0, 5, 500])
        asked["assignments"] = [
            {"partition_index": each, "broker_ids": members} for each, members in zip(ids, lists, strict=True)
        ]
        asked |= {"num_partitions": -1, "replication_factor": -1} if random_source.randrange(9) else {}
    return asked


def growth(random_source: random.Random) -> dict[str, Any]:
    count = random_source.choice([*FEW_AND_MANY, 110])
    more = None
    if random_source.randrange(2):
        more = [{"broker_ids": members} for members in replica_lists(random_source, count)]
    added = (
        count if more is None or random_source.randrange(9) == 0 else count + random_source.choice([1, 20])
    )
    return {"name": random_source.choice([*OLD, *OLD, "a", "b"]), "count": added, "assignments": more}


Asked = tuple[ApiKey, int, dict[str, Any]]


def some_requests(random_source: random.Random) -> list[Asked]:
    requests: list[Asked] = []
    for _ in range(random_source.randint(1, 4)):
        values: dict[str, Any] = {"validate_only": random_source.randrange(6) == 0}
        if random_source.randrange(3):
            values |= {
                "topics": [new_topic(random_source) for _ in range(random_source.randint(1, 4))],
                "timeout": 1000,
            }
            requests.append((ApiKey.CREATE_TOPICS, random_source.choice([2, 4, 5, 6, 7]), values))
        else:
            values |= {
                "topics": [growth(random_source) for _ in range(random_source.randint(1, 3))],
                "timeout_ms": 1000,
            }
            requests.append((ApiKey.CREATE_PARTITIONS, random_source.choice([1, 2, 3]), values))
    return requests


@dataclass(frozen=True)
class Outcome:
    answers: list[Values]
    log: list[bytes]
    images: list[MetadataImage]
    led: dict[int, int]
    seen: list[tuple[dict[UUID, list[int]], int]]
    state_hash: int
    last_note_hash: bytes
    records: list[MetadataRecord]


def outcome_of(seed: int, worth_columns: int) -> Outcome:
    random_source = random.Random(seed)
    level = random_source.choice(LEVELS)
    first = replayed(MetadataImage.empty(), cluster_records(random_source, level))
    image = first.apply(Provenance(last_contained_offset=-1))
    config = ControllerConfig(
        metadata_max_idle_interval_ms=0,
        num_partitions=random_source.choice([1, 30]),
        default_replication_factor=random_source.choice([1, 2]),
        max_records_per_batch=random_source.choice([10_000, 10_000, 60]),
        max_batch_bytes=random_source.choice([1 << 20, 1 << 20, 3000, 300]),
    )
    world = World(config)
    world.raft = LimitedRaft(config.max_batch_bytes)
    world.controller = Controller(config, world.raft, SeededRandomSource(seed), CLUSTER_ID, image)
    world.raft.leader_id, world.raft.leader_epoch = NODE_ID, 1
    world.controller.handle_leader_change(world.now_ms, NODE_ID, 1)
    active = world.controller._active
    assert active is not None
    if level < 7 and random_source.randrange(2):
        active.liveness.begin_controlled_shutdown(random_source.choice(list(image.cluster.brokers)), 0)
    seen: list[tuple[dict[UUID, list[int]], int]] = []
    world.controller.publishers.append(lambda _, delta: seen.append((changed(delta), delta.record_count)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(new_partitions, "WORTH_COLUMNS", worth_columns)
        patch.setattr(loading, "WORTH_COLUMNS", worth_columns)
        answers = [world.ask(key, version, **values) for key, version, values in some_requests(random_source)]
    loader = MetadataLoader(image)
    loader.handle_commit(world.raft.batches)
    return Outcome(
        answers=answers,
        log=[batch.data for batch in world.raft.batches],
        images=[world.controller.image, world.controller.committed_image, loader.image],
        led=dict(world.controller.image.topics.led_counts),
        seen=seen,
        state_hash=world.controller.state_hash,
        last_note_hash=world.controller._timeline.derived.last_note_hash,
        records=world.raft.records(),
    )


def check(seed: int) -> None:
    one_by_one = outcome_of(seed, NEVER)
    assert one_by_one.images[0].topics == one_by_one.images[2].topics
    for worth_columns in (1, 16):
        by_columns = outcome_of(seed, worth_columns)
        assert by_columns.answers == one_by_one.answers
        assert by_columns.log == one_by_one.log
        assert by_columns == one_by_one


@given(SEEDS)
@settings(deadline=None, max_examples=60)
def test_columns_make_what_one_by_one_is_made(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@given(SEEDS)
@settings(deadline=None, max_examples=1500)
def test_many_columns_make_what_one_by_one_is_made(seed: int) -> None:
    check(seed)


def test_these_requests_come_to_what_there_is() -> None:
    """Else the comparison above would say little."""
    outcomes = [outcome_of(seed, 16) for seed in range(80)]
    kinds = {type(record) for outcome in outcomes for record in outcome.records}
    assert {features.BeginTransactionRecord, features.NoOpRecord, topics.PartitionRecord} <= kinds
    entries = [
        entry
        for outcome in outcomes
        for answer in outcome.answers
        for entry in (*getattr(answer, "topics", ()), *getattr(answer, "results", ()))
    ]
    assert {entry.error_code for entry in entries} >= {
        ErrorCode.none,
        ErrorCode.invalid_replica_assignment,
        ErrorCode.invalid_replication_factor,
        ErrorCode.policy_violation,
        ErrorCode.throttling_quota_exceeded,
        ErrorCode.invalid_partitions,
        ErrorCode.invalid_config,
        ErrorCode.topic_already_exists,
    }
    made = [
        record
        for outcome in outcomes
        for record in outcome.records
        if isinstance(record, topics.PartitionRecord)
    ]
    assert any(len(record.isr) < len(record.replicas) for record in made)
    assert {len(record.directories) > 0 for record in made} == {True, False}


def test_a_partition_of_more_replicas_than_the_columns_have_room_for_is_written_all_the_same() -> None:
    brokers = [
        broker_record(BrokerRegistration(id=each, epoch=1, incarnation_id=UUID(int=each + 1), fenced=False))
        for each in range(130)
    ]
    level = features.FeatureLevelRecord(name="metadata.version", feature_level=25)
    image = replayed(MetadataImage.empty(), [level, *brokers]).apply(Provenance(last_contained_offset=-1))
    for factor in (126, 127, 130):
        world = World(ControllerConfig(metadata_max_idle_interval_ms=0), image=image).lead()
        asked = {"name": "t", "num_partitions": 20, "replication_factor": factor}
        answer = world.create({**asked, "assignments": (), "configs": ()})["t"]
        assert (answer.num_partitions, answer.replication_factor) == (20, factor)
        made = [each for each in world.raft.records() if isinstance(each, topics.PartitionRecord)]
        assert [len(set(record.replicas)) for record in made] == [factor] * 20
        states = dict(world.controller.committed_image.topics.by_name["t"].partitions.items())
        assert [state.replicas for state in states.values()] == [record.replicas for record in made]
