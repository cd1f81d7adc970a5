"""Atomic changes that no batch holds (KIP-868), limits of one operation, and what happens to half of one."""

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.loader import MetadataLoader
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.features import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
)
from kquorum.wire.metadata_records.topics import PartitionRecord
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.controller_world import (
    SESSION_MS,
    World,
    assigned,
    audit_notes,
    kinds,
    topic,
)
from tests.support.metadata.large_writes import PARTITIONS, SMALL_BATCH, send_large, small_world


def has_topic(world: World, name: str = "large") -> tuple[bool, bool]:
    """In what decisions are made on, and in what readers see."""
    controller = world.controller
    return (
        name in controller.image.topics.by_name,
        name in controller.committed_image.topics.by_name,
    )


def test_a_change_larger_than_a_batch_is_one_transaction_that_begins_with_its_note() -> None:
    world = small_world()
    start = world.raft.log_end_offset
    send_large(world)
    records = world.raft.records(start)
    assert isinstance(records[0], BeginTransactionRecord)
    assert isinstance(records[-1], EndTransactionRecord)
    carrier = records[1]
    assert isinstance(carrier, NoOpRecord)
    assert audit_notes(carrier)[0].covered_records == len(records) - 3
    assert sum(isinstance(record, PartitionRecord) for record in records) == PARTITIONS
    batches = [batch for batch in world.raft.batches if batch.base_offset >= start]
    assert len(batches) > 2
    assert all(len(batch.data) <= SMALL_BATCH for batch in batches)


def test_nothing_of_it_is_seen_or_answered_before_its_end_is_committed() -> None:
    world = small_world()
    answers = send_large(world)
    later = world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("later")], timeout=1000)
    count = len(world.raft.batches) - world.raft.committed
    offset = world.controller.committed_image.provenance.last_contained_offset
    for _ in range(count - 2):
        world.commit(1)
        assert has_topic(world) == (True, False)
        assert answers == []
        assert world.controller.committed_image.provenance.last_contained_offset == offset
    world.commit(1)
    assert has_topic(world) == (True, True)
    assert answers[0].topics[0].error_code is ErrorCode.none
    assert later == []
    world.commit(1)
    assert later


def test_a_fence_that_one_batch_does_not_hold_is_one_transaction_with_its_changes() -> None:
    """Kafka's leaders must not learn of the smaller ISRs before they learn of the fence."""
    world = small_world(metadata_max_idle_interval_ms=0).add_brokers(1)
    for name in "abcde":
        world.create(assigned(name, *[(0, 1)] * 8))
    start = world.raft.log_end_offset
    world.now_ms += SESSION_MS - 1
    world.heartbeat(1)
    world.now_ms += 2
    world.controller.handle_time(world.now_ms)
    assert kinds(world, start) == [
        "BeginTransactionRecord",
        *["PartitionChangeRecord"] * 40,
        "BrokerRegistrationChangeRecord",
        "EndTransactionRecord",
    ]
    seen = world.controller.committed_image
    assert len(world.raft.batches) > world.raft.committed + 1
    while world.raft.committed < len(world.raft.batches) - 1:
        world.commit(1)
        assert world.controller.committed_image is seen
    world.commit()
    image = world.controller.committed_image
    assert image.cluster.brokers[0].fenced
    assert not image.topics.is_leading_any(0)


def test_standbys_make_the_same_image_of_it() -> None:
    world = small_world()
    send_large(world)
    world.commit()
    loader = MetadataLoader()
    loader.handle_commit(world.raft.batches)
    assert loader.image == world.controller.committed_image


def test_it_shares_batches_with_what_comes_before_and_after() -> None:
    world = small_world()
    world.raft.is_grouping = True
    world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("before")], timeout=1000)
    send_large(world)
    world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("after")], timeout=1000)
    world.commit()
    assert set(world.controller.committed_image.topics.by_name) == {"before", "large", "after"}
    loader = MetadataLoader()
    loader.handle_commit(world.raft.batches)
    assert loader.image == world.controller.committed_image


def test_a_leader_lost_in_the_middle_leaves_the_end_to_the_next_one() -> None:
    world = small_world()
    answers = send_large(world)
    world.commit(2)
    world.follow(1, 2)
    assert answers[0].topics[0].error_code is ErrorCode.not_controller
    assert has_topic(world) == (False, False)
    world.commit()
    assert has_topic(world) == (True, True), "all of it had reached the others"


def test_half_of_it_is_aborted_by_the_next_controller() -> None:
    world = small_world()
    send_large(world)
    world.commit(2)
    world.follow(1, 2)
    world.raft.truncate_uncommitted()
    world.lead(3)
    assert isinstance(world.raft.records()[-1], AbortTransactionRecord)
    world.commit()
    assert has_topic(world) == (False, False)
    assert world.create({"name": "large"})["large"].error_code is ErrorCode.none
    loader = MetadataLoader()
    loader.handle_commit(world.raft.batches)
    assert loader.image == world.controller.committed_image


def test_half_of_it_behind_other_proposals_of_the_same_batch_is_aborted_alone() -> None:
    """The first batch holds a whole proposal and the beginning of the transaction."""
    world = small_world()
    world.raft.is_grouping = True
    world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("before")], timeout=1000)
    send_large(world)
    waiting = world.raft.waiting
    world.raft.waiting = waiting[: len(waiting) // 2]
    world.commit()
    assert has_topic(world, "before") == (True, True)
    assert has_topic(world) == (True, False)
    world.follow(1, 2)
    world.raft.is_grouping = False
    world.lead(3)
    world.commit()
    assert set(world.controller.committed_image.topics.by_name) == {"before"}
    loader = MetadataLoader()
    loader.handle_commit(world.raft.batches)
    assert loader.image == world.controller.committed_image


def test_fencing_and_no_ops_stand_behind_it() -> None:
    world = small_world()
    start = world.raft.log_end_offset
    send_large(world)
    world.advance(20_000)
    records = world.raft.records(start)
    end = next(i for i, record in enumerate(records) if isinstance(record, EndTransactionRecord))
    inside = {type(record).__name__ for record in records[2:end]}
    assert inside == {"TopicRecord", "PartitionRecord"}
    assert any(type(record).__name__ == "NoOpRecord" for record in records[end:])


def test_below_the_level_of_transactions_it_is_refused_whole() -> None:
    world = small_world(level=12)
    start = world.raft.log_end_offset
    answers = send_large(world)
    entry = answers[0].topics[0]
    assert entry.error_code is ErrorCode.policy_violation
    assert "2000 bytes" in entry.error_message
    assert "metadata.version 12" in entry.error_message
    assert world.raft.records(start) == []
    assert has_topic(world) == (False, False)


def test_a_record_that_no_batch_holds_is_refused_by_name() -> None:
    world = small_world()
    start = world.raft.log_end_offset
    topics = [
        topic(
            "a", configs=[{"name": "follower.replication.throttled.replicas", "value": "0:1," * 999 + "0:1"}]
        )
    ]
    answers = world.send(ApiKey.CREATE_TOPICS, 7, topics=topics, timeout=1000)
    entry = answers[0].topics[0]
    assert entry.error_code is ErrorCode.policy_violation
    assert "ConfigRecord" in entry.error_message
    assert world.raft.records(start) == []


def test_as_many_records_as_one_operation_may_make_and_one_more() -> None:
    world = World(ControllerConfig(max_records_per_batch=21)).lead().add_brokers(0)
    assert world.create({"name": "fits", "num_partitions": 20})["fits"].error_code is ErrorCode.none
    start = world.raft.log_end_offset
    refused = world.create({"name": "large", "num_partitions": 21})["large"]
    assert refused.error_code is ErrorCode.policy_violation
    assert world.raft.records(start) == []


def test_the_topics_of_one_operation_share_its_records() -> None:
    world = World(ControllerConfig(max_records_per_batch=40)).lead().add_brokers(0)
    world.create(topic("a"), topic("b"))
    start = world.raft.log_end_offset
    asked = [topic(name, num_partitions=19) for name in ("c", "d", "e")]
    words = "Topic '{}' makes the request too large: it would need more records than one batch holds."
    for answer in world.create(*asked).values():
        assert answer.error_code is ErrorCode.policy_violation
        assert answer.error_message == words.format("e")
    grown = [{"name": name, "count": 22, "assignments": None} for name in "ab"]
    values = {"timeout_ms": 1000, "validate_only": False}
    for answer in world.ask(ApiKey.CREATE_PARTITIONS, 3, topics=grown, **values).results:
        assert answer.error_code is ErrorCode.policy_violation
        assert answer.error_message == words.format("b")
    assert world.raft.records(start) == []
    assert world.create(*asked[:2])["d"].error_code is ErrorCode.none
