"""ElectLeaders, and what the controller does for leaders unasked."""

from typing import Any
from uuid import UUID

import numpy as np
import pytest

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.partitions.elect_leaders import (
    Found,
    electable_preferred,
    leaderless,
    leaderless_with_active_replica,
    without_preferred_leader,
)
from kquorum.metadata.image.cluster import BrokerRegistration, ClusterImage
from kquorum.metadata.image.partition_state import NO_LEADER, RECOVERING, PartitionState
from kquorum.metadata.image.partitions import table_of
from kquorum.metadata.image.topics import TopicImage
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.controller_world import World, assigned, topic

PREFERRED, UNCLEAN = 0, 1
UNCLEAN_ALLOWED = [{"name": "unclean.leader.election.enable", "value": "true"}]


def ready(*broker_ids: int, **config: Any) -> World:
    config = {"metadata_max_idle_interval_ms": 0, "broker_session_timeout_ms": 10**9, **config}
    return World(ControllerConfig(**config)).lead().add_brokers(*(broker_ids or range(5)))


def elect(
    world: World, kind: int, partitions: dict[str, tuple[int, ...]] | None, version: int = 2
) -> dict[tuple[str, int], ErrorCode]:
    wanted = (
        None
        if partitions is None
        else [{"topic": name, "partitions": ids} for name, ids in partitions.items()]
    )
    answer = world.ask(
        ApiKey.ELECT_LEADERS, version, election_type=kind, topic_partitions=wanted, timeout=1000
    )
    assert answer.error_code is ErrorCode.none
    return {
        (each.topic, one.partition_id): one.error_code
        for each in answer.replica_election_results
        for one in each.partition_result
    }


def report_isr(world: World, name: str, partition_id: int, *isr: int) -> None:
    state, brokers = world.partition(name, partition_id), world.controller.image.cluster.brokers
    partition = {
        "partition_index": partition_id,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
        "leader_recovery_state": 0,
        "new_isr_with_epochs": [{"broker_id": each, "broker_epoch": -1} for each in isr],
    }
    topics = [{"topic_id": world.controller.image.topics.by_name[name].id, "partitions": [partition]}]
    answer = world.ask(
        ApiKey.ALTER_PARTITION,
        3,
        broker_id=state.leader,
        broker_epoch=brokers[state.leader].epoch,
        topics=topics,
    )
    assert answer.topics[0].partitions[0].error_code is ErrorCode.none


def fence(world: World, *broker_ids: int) -> None:
    for broker_id in broker_ids:
        world.heartbeat(broker_id, want_fence=True)
        world.advance(0)
        world.commit()


def unfence(world: World, *broker_ids: int) -> None:
    for broker_id in broker_ids:
        world.heartbeat(broker_id)


class TestPreferred:
    @staticmethod
    def imbalanced(**config: Any) -> World:
        """Broker 1 was away: of partitions 0 and 2, others lead; in partition 0 it is in sync again."""
        world = ready(**config)
        world.create(assigned("foo", (1, 2, 3), (2, 3, 4), (1, 3, 4)))
        fence(world, 1)
        unfence(world, 1)
        report_isr(world, "foo", 0, 2, 3, 1)
        return world

    @pytest.mark.parametrize("version", [0, 1, 2])
    def test_each_partition_gets_an_answer(self, version: int) -> None:
        world = self.imbalanced()
        start = world.raft.log_end_offset
        answers = elect(world, PREFERRED, {"foo": (0, 1, 2, 3), "bar": (0,)}, version)
        assert answers == {
            ("foo", 0): ErrorCode.none,
            ("foo", 1): ErrorCode.election_not_needed,
            ("foo", 2): ErrorCode.preferred_leader_not_available,
            ("foo", 3): ErrorCode.unknown_topic_or_partition,
            ("bar", 0): ErrorCode.unknown_topic_or_partition,
        }
        _note, change = world.raft.records(start)
        topic_id = world.controller.image.topics.by_name["foo"].id
        assert change == PartitionChangeRecord(topic_id=topic_id, partition_id=0, leader=1)
        assert (world.partition("foo", 0).leader, world.partition("foo", 2).leader) == (1, 3)

    def test_all_partitions(self) -> None:
        world = self.imbalanced()
        assert elect(world, PREFERRED, None) == {
            ("foo", 0): ErrorCode.none,
            ("foo", 2): ErrorCode.preferred_leader_not_available,
        }
        assert world.partition("foo", 0).leader == 1

    def test_partition_named_twice_is_elected_once(self) -> None:
        world = self.imbalanced()
        start = world.raft.log_end_offset
        assert elect(world, PREFERRED, {"foo": (0, 0)}) == {("foo", 0): ErrorCode.none}
        assert len(world.raft.records(start)) == 2

    def test_never_loses_data(self) -> None:
        world = ready(1, 2, 3)
        world.create(assigned("foo", (1, 2, 3)))
        fence(world, 2, 3, 1)
        unfence(world, 2)
        assert elect(world, PREFERRED, {"foo": (0,)}) == {
            ("foo", 0): ErrorCode.preferred_leader_not_available
        }
        assert (world.partition("foo").leader, world.partition("foo").isr) == (NO_LEADER, (1,))

    def test_of_too_many_partitions_none_is_elected(self) -> None:
        world = ready(max_records_per_batch=5)
        for name, count in (("a", 3), ("b", 1), ("c", 2)):
            world.create(assigned(name, *[(1, 2)] * count))
        fence(world, 1)
        unfence(world, 1)
        for name, count in (("a", 3), ("b", 1), ("c", 2)):
            for partition_id in range(count):
                report_isr(world, name, partition_id, 2, 1)
        answer = world.ask(ApiKey.ELECT_LEADERS, 2, election_type=0, topic_partitions=None, timeout=1)
        assert answer.error_code is ErrorCode.policy_violation
        assert world.partition("b").leader == 2


class TestUnclean:
    @pytest.mark.parametrize("partitions", [None, {"foo": (0, 1, 2)}])
    def test_only_without_a_leader(self, partitions: dict[str, tuple[int, ...]] | None) -> None:
        world = ready()
        world.create(assigned("foo", (1, 2, 3), (2, 3, 4), (0, 2, 1)))
        fence(world, 2, 3, 1)
        others = {} if partitions is None else dict.fromkeys((("foo", 1), ("foo", 2)), ErrorCode(84))
        assert ErrorCode(84) is ErrorCode.election_not_needed
        start = world.raft.log_end_offset
        answers = elect(world, UNCLEAN, partitions)
        assert answers == {("foo", 0): ErrorCode.eligible_leaders_not_available, **others}
        assert world.raft.records(start) == []
        unfence(world, 2)
        answers = elect(world, UNCLEAN, partitions)
        assert answers == {("foo", 0): ErrorCode.none, **others}
        state = world.partition("foo", 0)
        assert (state.leader, state.isr, state.leader_recovery_state) == (2, (2,), RECOVERING)
        assert (world.partition("foo", 1).leader, world.partition("foo", 2).leader) == (4, 0)

    def test_unknown_kind(self) -> None:
        world = ready()
        asked = [{"topic": "a", "partitions": (0,)}]
        answer = world.ask(ApiKey.ELECT_LEADERS, 2, election_type=2, topic_partitions=asked, timeout=1)
        assert answer.error_code is ErrorCode.invalid_request
        [result] = answer.replica_election_results[0].partition_result
        assert result.error_code is ErrorCode.invalid_request
        assert "Unknown election type 2" in result.error_message

    def test_nothing_asked(self) -> None:
        assert elect(ready(), UNCLEAN, {}) == {}


class TestPeriodic:
    def test_balancing(self) -> None:
        world = TestPreferred.imbalanced(leader_imbalance_check_interval_seconds=10)
        world.advance(9_999)
        assert world.partition("foo", 0).leader == 2
        world.advance(1)
        assert world.partition("foo", 0).leader == 1
        assert world.partition("foo", 2).leader == 3
        report_isr(world, "foo", 2, 3, 4, 1)
        world.advance(10_000)
        assert world.partition("foo", 2).leader == 1

    def test_balancing_switched_off(self) -> None:
        world = TestPreferred.imbalanced(auto_leader_rebalance_enable=False)
        world.advance(3_600_000)
        assert world.partition("foo", 0).leader == 2

    def test_balancing_goes_on_at_once_while_there_is_more(self) -> None:
        world = ready(1, 2, leader_imbalance_check_interval_seconds=10)
        world.create(topic("a", num_partitions=2300, replication_factor=2))
        world.send_heartbeat(1, want_fence=True)
        world.advance(1)
        world.commit()
        assert world.controller.image.cluster.brokers[1].fenced
        unfence(world, 1)
        changes = [
            {
                "partition_index": each,
                "leader_epoch": world.partition("a", each).leader_epoch,
                "partition_epoch": world.partition("a", each).partition_epoch,
                "leader_recovery_state": 0,
                "new_isr_with_epochs": [{"broker_id": one, "broker_epoch": -1} for one in (2, 1)],
            }
            for each in range(2300)
        ]
        brokers = world.controller.image.cluster.brokers
        topic_id = world.controller.image.topics.by_name["a"].id
        topics = [{"topic_id": topic_id, "partitions": changes}]
        world.ask(ApiKey.ALTER_PARTITION, 3, broker_id=2, broker_epoch=brokers[2].epoch, topics=topics)
        batches = len(world.raft.batches)
        world.advance(10_000)
        sizes = [len(batch.records) for batch in world.raft.batches[batches:]]
        assert sizes == [1000, 150]
        table = world.controller.image.topics.by_name["a"].partitions
        assert bool((table.leaders == table.replicas[:, 0]).all())

    @pytest.mark.parametrize("allowed", [True, False])
    def test_unclean_elections(self, allowed: bool) -> None:
        """A topic whose config changes while it has no leader gets one at the next turn."""
        world = ready(unclean_leader_election_interval_ms=5_000)
        world.create(assigned("a", (1, 2, 4), (1, 3, 4)), assigned("b", (1, 2, 4)))
        fence(world, 0, 2, 3, 4, 1)
        unfence(world, 2)
        assert world.partition("a", 0).leader == NO_LEADER
        if allowed:
            resource = {"resource_type": 2, "resource_name": "a"}
            configs = [{"name": "unclean.leader.election.enable", "config_operation": 0, "value": "true"}]
            world.ask(
                ApiKey.INCREMENTAL_ALTER_CONFIGS,
                1,
                resources=[{**resource, "configs": configs}],
                validate_only=False,
            )
        start = world.raft.log_end_offset
        world.advance(5_000)
        world.commit()
        state = world.partition("a", 0)
        expected = (2, (2,), RECOVERING) if allowed else (NO_LEADER, (1,), 0)
        assert (state.leader, state.isr, state.leader_recovery_state) == expected
        assert world.partition("a", 1).leader == NO_LEADER
        assert world.partition("b").leader == NO_LEADER
        assert len(world.raft.records(start)) == allowed


class TestCandidates:
    """The columns must find what a look at each partition finds."""

    ACTIVE = (0, 1, 2)

    @classmethod
    def cluster(cls) -> ClusterImage:
        cluster = ClusterImage()
        for broker_id in range(6):
            registration = BrokerRegistration(
                id=broker_id,
                epoch=1,
                incarnation_id=UUID(int=broker_id),
                fenced=broker_id not in cls.ACTIVE and broker_id != 5,
                in_controlled_shutdown=broker_id == 5,
            )
            cluster = cluster.with_broker(registration)
        return cluster

    @staticmethod
    def topics(seed: int) -> list[TopicImage]:
        random = np.random.default_rng(seed)
        topics = []
        for number in range(40):
            states: dict[int, PartitionState] = {}
            for partition_id in random.choice(50, size=random.integers(0, 6), replace=False).tolist():
                replicas = tuple(random.permutation(6)[: random.integers(1, 4)].tolist())
                isr = tuple(each for each in replicas if random.random() < 0.5)
                leader = int(random.choice([*replicas, NO_LEADER]))
                states[partition_id] = PartitionState(
                    replicas=replicas, directories=(UUID(int=0),) * len(replicas), isr=isr, leader=leader
                )
            name = f"t{number}"
            topics.append(TopicImage(name=name, id=UUID(int=number), partitions=table_of(states)))
        return topics

    @staticmethod
    def ids(found: Found) -> set[tuple[str, int]]:
        pairs = [(topic.name, each) for topic, ids in found for each in ids.tolist()]
        assert len(set(pairs)) == len(pairs)
        return set(pairs)

    @pytest.mark.parametrize("seed", range(10))
    def test_finds_what_a_plain_search_finds(self, seed: int) -> None:
        topics = self.topics(seed)
        states = {(each.name, number): state for each in topics for number, state in each.partitions.items()}

        def plain(test: Any) -> set[tuple[str, int]]:
            return {key for key, state in states.items() if test(state)}

        def is_imbalanced(state: PartitionState) -> bool:
            return state.leader != state.replicas[0]

        def is_electable(state: PartitionState) -> bool:
            first = state.replicas[0]
            return is_imbalanced(state) and first in self.ACTIVE and (first in state.isr or not state.isr)

        def has_no_leader(state: PartitionState) -> bool:
            return state.leader == NO_LEADER

        def can_be_led(state: PartitionState) -> bool:
            return has_no_leader(state) and not set(self.ACTIVE).isdisjoint(state.replicas)

        assert self.ids(without_preferred_leader(topics)) == plain(is_imbalanced)
        assert self.ids(electable_preferred(topics, self.cluster())) == plain(is_electable)
        assert self.ids(leaderless(topics)) == plain(has_no_leader)
        assert self.ids(leaderless_with_active_replica(topics, self.cluster())) == plain(can_be_led)
        assert plain(is_electable)
        assert plain(can_be_led)

    def test_nothing_to_look_through(self) -> None:
        assert not self.ids(electable_preferred([], ClusterImage()))
        assert not self.ids(leaderless([TopicImage(name="a", id=UUID(int=1), partitions=table_of({}))]))


def test_reason_is_in_the_log() -> None:
    world = TestPreferred.imbalanced()
    start = world.raft.log_end_offset
    elect(world, PREFERRED, {"foo": (0,)})
    assert "elect preferred leaders of 1 partition(s)" in str(world.raft.records(start)[0])
