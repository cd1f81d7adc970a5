"""CreateTopics and AlterPartition, through the controller."""

from collections import Counter
from typing import Any
from uuid import UUID

import pytest

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.image.configs import TOPIC, ConfigResource
from kquorum.metadata.image.directories import MIGRATING, UNASSIGNED
from kquorum.snapshots.bootstrap import bootstrap_records
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.topics import PartitionRecord, TopicRecord
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.uuids import ZERO_UUID
from tests.support.api_calls import Values
from tests.support.controller_world import World, assigned, topic
from tests.support.metadata.topic_worlds import limit_mutations, ready


class TestCreate:
    @pytest.mark.parametrize("version", [2, 4, 7])
    def test_old_versions_make_the_same_topic(self, version: int) -> None:
        world = ready()
        asked = [topic("a", num_partitions=2, replication_factor=3), topic("bad name")]
        answer = world.ask(ApiKey.CREATE_TOPICS, version, topics=asked, timeout=1000, validate_only=False)
        codes = {entry.name: entry.error_code for entry in answer.topics}
        assert codes == {"a": ErrorCode.none, "bad name": ErrorCode.invalid_topic_exception}
        assert len(world.controller.image.topics.by_name["a"].partitions) == 2

    def test_answer_tells_all_configs_in_effect(self) -> None:
        world = ready(node_configs={"log.retention.hours": "2"})
        own = [{"name": "cleanup.policy", "value": "compact"}, {"name": "cleanup.policy", "value": "delete"}]
        entry = world.create(topic("a", configs=own))["a"]
        configs = {each.name: each for each in entry.configs}
        assert list(configs) == sorted(configs)
        assert len(configs) > 20
        told = {name: (configs[name].value, configs[name].config_source) for name in configs}
        assert told["cleanup.policy"] == ("delete", 1)
        assert told["retention.ms"] == ("7200000", 4)
        assert told["segment.bytes"] == ("1073741824", 5)
        assert not any(each.read_only or each.is_sensitive for each in entry.configs)
        plain = world.create({"name": "b"})["b"].configs
        assert {each.name: each.config_source for each in plain}["cleanup.policy"] == 5

    def test_dry_run_answers_as_if_it_were_made(self) -> None:
        asked = topic("a", num_partitions=3, replication_factor=2)
        planned = ready().create(asked, {"name": "bad name"}, validate_only=True)
        made = ready().create(asked, {"name": "bad name"})
        assert ZERO_UUID not in (planned["a"].topic_id, made["a"].topic_id)
        planned["a"].topic_id = made["a"].topic_id
        assert planned == made

    @pytest.mark.parametrize("validate_only", [True, False])
    def test_quota_lets_one_topic_pass_and_refuses_the_next(self, validate_only: bool) -> None:
        world = ready()
        limit_mutations(world)
        entries = world.create(
            topic("a", num_partitions=50), topic("b", num_partitions=1), validate_only=validate_only
        )
        assert entries["a"].error_code is ErrorCode.none
        assert entries["b"].error_code is ErrorCode.throttling_quota_exceeded
        assert set(world.controller.image.topics.by_name) == (set() if validate_only else {"a"})

    def test_who_is_not_up_is_no_member_of_the_isr(self) -> None:
        world = ready(0, 1, 2)
        world.heartbeat(2, want_fence=True)
        world.heartbeat(1, want_shut_down=True)
        world.create(assigned("a", (1, 0, 2)))
        state = world.partition("a")
        assert (state.replicas, state.isr, state.leader) == ((1, 0, 2), (0,), 0)
        entry = world.create(assigned("b", (1, 2)))["b"]
        assert entry.error_code is ErrorCode.invalid_replica_assignment
        assert "fenced or in controlled shutdown" in entry.error_message

    def test_records_of_a_topic_in_order(self) -> None:
        world = ready()
        start = world.raft.log_end_offset
        configs = [{"name": "retention.ms", "value": "1000"}]
        answer = world.create(topic("a", num_partitions=2, replication_factor=3, configs=configs))["a"]
        _note, made, config, first, second = world.raft.records(start)
        assert made == TopicRecord(name="a", topic_id=answer.topic_id)
        assert config == ConfigRecord(
            resource_type=TOPIC, resource_name="a", name="retention.ms", value="1000"
        )
        assert isinstance(first, PartitionRecord)
        assert isinstance(second, PartitionRecord)
        assert (first.leader, first.leader_epoch, first.partition_epoch) == (first.replicas[0], 0, 0)
        assert set(first.replicas) == set(first.isr) == {0, 1, 2}
        assert first.directories == tuple(UUID(int=10_000 + replica) for replica in first.replicas)
        assert (answer.num_partitions, answer.replication_factor) == (2, 3)
        image = world.controller.committed_image
        assert image.configs.value(ConfigResource(TOPIC, "a"), "retention.ms") == "1000"

    def test_defaults_come_from_the_config(self) -> None:
        world = ready(num_partitions=4, default_replication_factor=2)
        answer = world.create({"name": "a", "num_partitions": -1, "replication_factor": -1})["a"]
        assert (answer.num_partitions, answer.replication_factor) == (4, 2)

    @pytest.mark.parametrize(
        ("changes", "error"),
        [
            ({"name": ""}, ErrorCode.invalid_topic_exception),
            ({"name": "."}, ErrorCode.invalid_topic_exception),
            ({"name": ".."}, ErrorCode.invalid_topic_exception),
            ({"name": "a" * 250}, ErrorCode.invalid_topic_exception),
            ({"name": "white space"}, ErrorCode.invalid_topic_exception),
            ({"name": "naïve"}, ErrorCode.invalid_topic_exception),
            ({"name": "line\n"}, ErrorCode.invalid_topic_exception),
            ({"name": "__cluster_metadata"}, ErrorCode.invalid_request),
            ({"name": "known"}, ErrorCode.topic_already_exists),
            ({"name": "x.y"}, ErrorCode.invalid_topic_exception),
            ({"name": "a", "num_partitions": 0}, ErrorCode.invalid_partitions),
            ({"name": "a", "num_partitions": -2}, ErrorCode.invalid_partitions),
            ({"name": "a", "replication_factor": 0}, ErrorCode.invalid_replication_factor),
            ({"name": "a", "replication_factor": 4}, ErrorCode.invalid_replication_factor),
            ({"name": "a", "configs": [{"name": "k", "value": None}]}, ErrorCode.invalid_config),
            ({"name": "a", "configs": [{"name": "", "value": "v"}]}, ErrorCode.invalid_config),
            (assigned("a", (0, 1)) | {"num_partitions": 1}, ErrorCode.invalid_request),
            (assigned("a", (0, 1)) | {"replication_factor": 2}, ErrorCode.invalid_request),
            (assigned("a", (0, 0)), ErrorCode.invalid_replica_assignment),
            (assigned("a", (0, 9)), ErrorCode.invalid_replica_assignment),
            (assigned("a", (0, 1), (0,)), ErrorCode.invalid_replica_assignment),
            (assigned("a", ()), ErrorCode.invalid_replica_assignment),
        ],
    )
    def test_refusals(self, changes: dict[str, Any], error: ErrorCode) -> None:
        world = ready()
        world.create({"name": "known"}, {"name": "x_y"})
        start = world.raft.log_end_offset
        entry = world.create(topic(**changes))[changes["name"]]
        assert entry.error_code is error
        assert entry.error_message
        assert world.raft.records(start) == []

    def test_partition_indexes_must_be_consecutive(self) -> None:
        world = ready()
        gap = assigned("a", (0,), (1,))
        gap["assignments"][1]["partition_index"] = 2
        twice = assigned("b", (0,), (1,))
        twice["assignments"][1]["partition_index"] = 0
        answers = world.create(gap, twice)
        assert {each.error_code for each in answers.values()} == {ErrorCode.invalid_replica_assignment}

    def test_one_bad_topic_does_not_stop_the_others(self) -> None:
        world = ready()
        answers = world.create({"name": "good"}, {"name": "bad name"}, {"name": "fine"})
        assert [answers[name].error_code for name in ("good", "fine")] == [ErrorCode.none] * 2
        assert set(world.controller.committed_image.topics.by_name) == {"good", "fine"}

    def test_name_given_twice_is_refused_once(self) -> None:
        world = ready()
        answer = world.ask(ApiKey.CREATE_TOPICS, 7, topics=[topic("a"), topic("b"), topic("a")], timeout=1)
        errors = {entry.name: entry.error_code for entry in answer.topics}
        assert errors == {"a": ErrorCode.invalid_request, "b": ErrorCode.none}
        assert len(answer.topics) == 2

    def test_names_that_collide_within_one_request(self) -> None:
        answers = ready().create({"name": "a.b"}, {"name": "a_b"})
        assert answers["a.b"].error_code is ErrorCode.none
        assert answers["a_b"].error_code is ErrorCode.invalid_topic_exception
        assert "collides with existing topic: a.b" in answers["a_b"].error_message

    def test_collision_ends_with_the_topic(self) -> None:
        world = ready()
        world.create({"name": "a.b"})
        world.delete("a.b")
        assert world.create({"name": "a_b"})["a_b"].error_code is ErrorCode.none

    def test_dry_run_answers_and_writes_nothing(self) -> None:
        world = ready()
        answer = world.create({"name": "a", "num_partitions": 3}, validate_only=True)["a"]
        assert (answer.error_code, answer.num_partitions) == (ErrorCode.none, 3)
        assert world.controller.image.topics.is_empty

    def test_request_beyond_one_batch_is_refused_whole(self) -> None:
        world = ready(max_records_per_batch=100)
        answers = world.create({"name": "a", "num_partitions": 60}, {"name": "b", "num_partitions": 60})
        assert {entry.error_code for entry in answers.values()} == {ErrorCode.policy_violation}
        answers = world.create({"name": "huge", "num_partitions": 2**31 - 1})
        assert answers["huge"].error_code is ErrorCode.policy_violation
        assert world.controller.image.topics.is_empty
        assert world.create({"name": "fits", "num_partitions": 99})["fits"].error_code is ErrorCode.none

    def test_no_broker_is_up(self) -> None:
        world = World().lead()
        world.register(0)
        answer = world.create({"name": "a"}, assigned("b", (0,)))
        assert answer["a"].error_code is ErrorCode.invalid_replication_factor
        assert answer["b"].error_code is ErrorCode.invalid_replica_assignment

    def test_fenced_broker_gets_a_replica_and_no_place_in_the_isr(self) -> None:
        world = ready()
        world.heartbeat(2, want_fence=True)
        world.create(assigned("a", (2, 0)), {"name": "b", "replication_factor": 3})
        assert (world.partition("a").isr, world.partition("a").leader) == ((0,), 0)
        assert set(world.partition("b").isr) == {0, 1}

    def test_broker_with_several_directories_chooses_itself(self) -> None:
        world = World().lead()
        world.add_brokers(0, log_dirs=[UUID(int=700), UUID(int=701)])
        world.create(assigned("a", (0,)))
        assert world.partition("a").directories == (UNASSIGNED,)

    def test_old_level_writes_partitions_without_directories(self) -> None:
        world = World(ControllerConfig(bootstrap_records=bootstrap_records(14, {}))).lead().add_brokers(0)
        world.create(assigned("a", (0,)))
        record = world.raft.records()[-1]
        assert isinstance(record, PartitionRecord)
        assert record.directories == ()
        assert world.partition("a").directories == (MIGRATING,)

    def test_a_thousand_topics_are_spread_evenly(self) -> None:
        world = ready(*range(6))
        for start in range(0, 1000, 100):
            names = [f"t{number}" for number in range(start, start + 100)]
            world.create(*[topic(name, num_partitions=3, replication_factor=3) for name in names])
        leaders: Counter[int] = Counter()
        replicas: Counter[int] = Counter()
        for each in world.controller.committed_image.topics.by_id.values():
            for _, state in each.partitions.items():
                leaders[state.leader] += 1
                replicas.update(state.replicas)
        for counts, mean in ((leaders, 500), (replicas, 1500)):
            assert set(counts) == set(range(6))
            assert all(abs(count - mean) < mean * 0.02 for count in counts.values()), counts


class TestAlterPartition:
    @staticmethod
    def alter(world: World, isr: tuple[int, ...], broker_id: int = 0, **changes: Any) -> Values:
        known = world.controller.image.cluster.brokers
        members = [
            {"broker_id": member, "broker_epoch": known[member].epoch if member in known else -1}
            for member in isr
        ]
        state = world.partition("a")
        partition = {
            "partition_index": 0,
            "leader_epoch": state.leader_epoch,
            "partition_epoch": state.partition_epoch,
            "leader_recovery_state": 0,
            "new_isr_with_epochs": members,
            **changes,
        }
        topic_id = world.controller.image.topics.by_name["a"].id
        answer = world.ask(
            ApiKey.ALTER_PARTITION,
            3,
            broker_id=broker_id,
            broker_epoch=known[broker_id].epoch,
            topics=[{"topic_id": topic_id, "partitions": [partition]}],
        )
        entry: Values = answer.topics[0].partitions[0]
        return entry

    @staticmethod
    def ready() -> World:
        world = ready()
        world.create(assigned("a", (0, 1, 2)))
        return world

    def test_shrink_and_expand(self) -> None:
        world = self.ready()
        entry = self.alter(world, (0, 2))
        assert (entry.error_code, entry.isr, entry.partition_epoch) == (ErrorCode.none, (0, 2), 1)
        entry = self.alter(world, (0, 2, 1))
        assert (entry.isr, entry.leader_epoch, entry.partition_epoch) == ((0, 2, 1), 0, 2)
        assert world.partition("a").isr == (0, 2, 1)

    def test_unchanged_isr_writes_nothing(self) -> None:
        world = self.ready()
        end = world.raft.log_end_offset
        entry = self.alter(world, (0, 1, 2))
        assert (entry.error_code, entry.partition_epoch) == (ErrorCode.none, 0)
        assert world.raft.log_end_offset == end

    @pytest.mark.parametrize(
        ("isr", "changes", "error"),
        [
            ((0,), {"partition_index": 1}, ErrorCode.unknown_topic_or_partition),
            ((0,), {"leader_epoch": 1}, ErrorCode.not_controller),
            ((0,), {"partition_epoch": 1}, ErrorCode.not_controller),
            ((0,), {"leader_epoch": -1}, ErrorCode.fenced_leader_epoch),
            ((0,), {"partition_epoch": -1}, ErrorCode.invalid_update_version),
            ((1,), {"broker_id": 1}, ErrorCode.invalid_request),
            ((1, 2), {}, ErrorCode.invalid_request),
            ((0, 0), {}, ErrorCode.invalid_request),
            ((0, 7), {}, ErrorCode.invalid_request),
            ((0,), {"leader_recovery_state": 1}, ErrorCode.invalid_request),
            (
                (0,),
                {"new_isr_with_epochs": [{"broker_id": 0, "broker_epoch": 1}]},
                ErrorCode.ineligible_replica,
            ),
        ],
    )
    def test_refusals(self, isr: tuple[int, ...], changes: dict[str, Any], error: ErrorCode) -> None:
        world = self.ready()
        entry = self.alter(world, isr, **changes)
        assert entry.error_code is error
        assert world.partition("a").isr == (0, 1, 2)

    def test_fenced_broker_cannot_join(self) -> None:
        world = self.ready()
        world.heartbeat(2, want_fence=True)
        assert self.alter(world, (0, 1, 2)).error_code is ErrorCode.ineligible_replica

    def test_unknown_topic_and_stale_broker(self) -> None:
        world = self.ready()
        epoch = world.controller.image.cluster.brokers[0].epoch
        partition = {
            "partition_index": 0,
            "leader_epoch": 0,
            "partition_epoch": 0,
            "new_isr_with_epochs": [{"broker_id": 0, "broker_epoch": -1}],
        }
        topics = [{"topic_id": UUID(int=5), "partitions": [partition]}]
        values = {"broker_id": 0, "topics": topics}
        answer = world.ask(ApiKey.ALTER_PARTITION, 3, broker_epoch=epoch, **values)
        assert answer.topics[0].partitions[0].error_code is ErrorCode.unknown_topic_id
        answer = world.ask(ApiKey.ALTER_PARTITION, 3, broker_epoch=epoch + 1, **values)
        assert (answer.error_code, answer.topics) == (ErrorCode.stale_broker_epoch, ())

    def test_old_request_without_broker_epochs(self) -> None:
        world = self.ready()
        partition = {"partition_index": 0, "leader_epoch": 0, "partition_epoch": 0, "new_isr": (0, 1)}
        topic_id = world.controller.image.topics.by_name["a"].id
        answer = world.ask(
            ApiKey.ALTER_PARTITION,
            2,
            broker_id=0,
            broker_epoch=world.controller.image.cluster.brokers[0].epoch,
            topics=[{"topic_id": topic_id, "partitions": [partition]}],
        )
        assert answer.topics[0].partitions[0].isr == (0, 1)
