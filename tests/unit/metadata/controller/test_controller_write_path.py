"""When answers are given, what readers see, and what is left when leadership is lost."""

from uuid import UUID

import pytest

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.quorum.activation import LogUnsupported
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.loader import MetadataLoader
from kquorum.snapshots.bootstrap import bootstrap_records
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.features import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
)
from kquorum.wire.metadata_records.topics import TopicRecord
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.record_frame import encode_record
from tests.support.controller_world import NODE_ID, World, topic
from tests.support.image_records import image_records


def state_of(image: MetadataImage) -> list[str]:
    return [repr(record) for record in image_records(image)]


def test_empty_log_gets_bootstrap_records_in_one_transaction() -> None:
    world = World().lead()
    assert world.raft.records() == [
        BeginTransactionRecord(name="Bootstrap records"),
        FeatureLevelRecord(name="metadata.version", feature_level=25),
        FeatureLevelRecord(name="group.version", feature_level=1),
        FeatureLevelRecord(name="transaction.version", feature_level=2),
        EndTransactionRecord(),
    ]
    assert len(world.raft.batches) == 2
    assert world.controller.committed_image.metadata_version == 1
    world.commit()
    assert world.controller.committed_image.metadata_version == 25


def test_bootstrap_below_transactions_is_one_plain_batch() -> None:
    config = ControllerConfig(bootstrap_records=bootstrap_records(8, {}))
    world = World(config).lead()
    assert world.raft.records() == [FeatureLevelRecord(name="metadata.version", feature_level=8)]


def test_bootstrap_is_not_repeated_in_later_epochs() -> None:
    world = World().lead()
    world.commit()
    world.follow(1, 2)
    world.lead(3)
    assert sum(isinstance(record, FeatureLevelRecord) for record in world.raft.records()) == 3


def test_open_bootstrap_transaction_is_aborted_and_written_again() -> None:
    world = World()
    values = [BeginTransactionRecord(name="Bootstrap records"), *bootstrap_records(20, {})]
    world.raft.append(world.now_ms, [(None, encode_record(record)) for record in values])
    world.lead(2)
    written = world.raft.records(start_offset=2)
    assert written[0] == AbortTransactionRecord(reason="Controller failover")
    assert isinstance(written[1], BeginTransactionRecord)
    world.commit()
    assert world.controller.committed_image.metadata_version == 25


def test_open_transaction_of_the_last_controller_is_aborted() -> None:
    world = World().lead()
    world.commit()
    world.follow(1, 2)
    lost = [BeginTransactionRecord(name="x"), FeatureLevelRecord(name="group.version", feature_level=0)]
    world.raft.append(world.now_ms, [(None, encode_record(record)) for record in lost])
    world.commit()
    world.lead(3)
    assert world.raft.records()[-1] == AbortTransactionRecord(reason="Controller failover")
    world.commit()
    assert world.controller.committed_image.features.finalized["group.version"] == 1
    world.add_brokers(0)


def test_answer_is_held_until_its_records_are_committed() -> None:
    world = World().lead().add_brokers(0)
    answers = world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("a")], timeout=1000)
    assert answers == []
    assert "a" in world.controller.image.topics.by_name
    assert "a" not in world.controller.committed_image.topics.by_name
    world.commit()
    assert answers[0].topics[0].error_code is ErrorCode.none
    assert "a" in world.controller.committed_image.topics.by_name


def test_answers_come_in_order_each_with_its_own_commit() -> None:
    world = World().lead().add_brokers(0)
    first = world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("a")], timeout=1000)
    second = world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("b")], timeout=1000)
    world.commit(1)
    assert first
    assert not second
    assert set(world.controller.committed_image.topics.by_name) == {"a"}
    world.commit(1)
    assert second


def test_answer_without_records_waits_for_what_it_tells_of() -> None:
    world = World().lead().add_brokers(0)
    world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("a")], timeout=1000)
    refused = world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("a")], timeout=1000)
    assert refused == [], "that 'a' exists is not known to be true yet"
    world.commit()
    assert refused[0].topics[0].error_code is ErrorCode.topic_already_exists


def test_losing_leadership_reverts_to_the_committed_state_and_refuses_who_waits() -> None:
    world = World().lead().add_brokers(0)
    before = state_of(world.controller.committed_image)
    created = world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("a"), topic("b")], timeout=1000)
    heard = world.send_heartbeat(0)
    world.follow(1, 2)
    assert [entry.error_code for entry in created[0].topics] == [ErrorCode.not_controller] * 2
    assert heard[0].error_code is ErrorCode.not_controller
    assert state_of(world.controller.image) == before
    assert not world.controller.is_active


def test_proposal_that_survives_its_leader_is_loaded_like_any_other() -> None:
    world = World().lead().add_brokers(0)
    world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("a")], timeout=1000)
    world.follow(1, 2)
    assert "a" not in world.controller.image.topics.by_name
    world.commit()
    assert "a" in world.controller.committed_image.topics.by_name


def test_proposal_that_is_truncated_never_was() -> None:
    world = World().lead().add_brokers(0)
    world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("a")], timeout=1000)
    world.follow(1, 2)
    world.raft.truncate_uncommitted()
    world.lead(3)
    assert world.create({"name": "a"})["a"].error_code is ErrorCode.none


def test_refused_proposal_refuses_the_request_and_those_before_it() -> None:
    world = World().lead().add_brokers(0)
    waiting = world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("a")], timeout=1000)
    world.raft.is_deposed = True
    refused = world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("b")], timeout=1000)
    assert waiting[0].topics[0].error_code is ErrorCode.not_controller
    assert refused[0].topics[0].error_code is ErrorCode.not_controller
    assert world.controller.next_deadline_ms() is None


def test_standby_refuses_writes_and_names_no_false_leader() -> None:
    world = World()
    answer = world.send(ApiKey.UNREGISTER_BROKER, 0, broker_id=1)[0]
    assert answer.error_code is ErrorCode.not_controller
    world.follow(7, 1)
    answer = world.send(ApiKey.UNREGISTER_BROKER, 0, broker_id=1)[0]
    assert "node 7" in answer.error_message


def test_standby_that_replays_the_log_has_the_leaders_image() -> None:
    world = World().lead().add_brokers(0, 1, 2)
    world.create({"name": "a", "num_partitions": 6, "replication_factor": 3}, {"name": "b"})
    world.advance(20_000)
    world.delete("b")
    world.commit()
    loader = MetadataLoader()
    loader.handle_commit(world.raft.batches)
    assert loader.image == world.controller.committed_image
    assert world.controller.committed_image == world.controller.image


def test_committed_images_are_published_with_their_deltas() -> None:
    world = World()
    seen: list[tuple[int, int]] = []
    world.controller.publishers.append(
        lambda image, delta: seen.append((image.provenance.last_contained_offset, len(delta.changed_brokers)))
    )
    world.lead()
    assert seen == []
    world.commit()
    world.register(0)
    assert seen == [(0, 0), (5, 0), (6, 1)]


def test_proposals_that_share_a_batch_are_committed_together() -> None:
    world = World().lead().add_brokers(0)
    seen: list[tuple[int, bool]] = []
    world.controller.publishers.append(
        lambda image, _delta: seen.append((len(image.topics.by_id), image.provenance.is_batch_aligned))
    )
    world.raft.is_grouping = True
    first = world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("a")], timeout=1000)
    second = world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("b")], timeout=1000)
    batches = len(world.raft.batches)
    world.commit()
    assert len(world.raft.batches) == batches + 1
    assert seen == [(1, False), (2, True)], "an image that ends inside a batch must not become a snapshot"
    assert [answers[0].topics[0].error_code for answers in (first, second)] == [ErrorCode.none] * 2
    loader = MetadataLoader()
    loader.handle_commit(world.raft.batches)
    assert loader.image == world.controller.committed_image


def test_no_op_is_written_at_each_interval_while_active() -> None:
    world = World(ControllerConfig(metadata_max_idle_interval_ms=500)).lead()
    world.commit()
    start = world.raft.log_end_offset
    world.advance(2600)
    assert world.raft.records(start) == [NoOpRecord()] * 5
    world.follow(1, 2)
    end = world.raft.log_end_offset
    world.advance(2600)
    assert world.raft.log_end_offset == end


def test_no_op_waits_for_a_metadata_version_that_knows_it() -> None:
    world = World(ControllerConfig(bootstrap_records=bootstrap_records(4, {}))).lead()
    end = world.raft.log_end_offset
    world.advance(5000)
    assert world.raft.log_end_offset == end


def test_leading_a_newer_epoch_starts_over() -> None:
    world = World().lead().add_brokers(0)
    waiting = world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("a")], timeout=1000)
    world.raft.truncate_uncommitted()
    world.lead(2)
    assert waiting[0].topics[0].error_code is ErrorCode.not_controller
    assert world.controller.is_active
    assert world.create({"name": "a"})["a"].error_code is ErrorCode.none


def test_describe_cluster_is_answered_by_standbys_from_what_is_committed() -> None:
    world = World().lead()
    registered = world.send(
        ApiKey.CONTROLLER_REGISTRATION,
        0,
        controller_id=NODE_ID,
        incarnation_id=None,
        zk_migration_ready=False,
        listeners=[{"name": "CONTROLLER", "host": "c", "port": 9093, "security_protocol": 0}],
        features=(),
    )
    assert registered == []
    world.commit()
    world.follow(8, 2)
    values = {"include_cluster_authorized_operations": False, "include_fenced_brokers": False}
    answer = world.send(ApiKey.DESCRIBE_CLUSTER, 2, endpoint_type=2, **values)[0]
    assert answer.controller_id == 8
    assert [(each.broker_id, each.port) for each in answer.brokers] == [(NODE_ID, 9093)]
    wrong = world.send(ApiKey.DESCRIBE_CLUSTER, 2, endpoint_type=1, **values)[0]
    assert wrong.error_code is ErrorCode.mismatched_endpoint_type


def test_a_log_of_records_without_metadata_version_is_not_written_into() -> None:
    """Kafka before 3.3 wrote such logs; whichever node leads them decides nothing."""
    world = World()
    record = TopicRecord(name="orders", topic_id=UUID(int=1))
    world.raft.append(world.now_ms, [(None, encode_record(record))])
    with pytest.raises(LogUnsupported, match=r"older than 3\.3"):
        world.lead()
    assert world.raft.records() == [record]
