"""Brokers that crash and come back, where the cluster keeps eligible leader replicas (KIP-966).

A broker after an unclean shutdown may have lost records that only it and the lost ones had: it must not lead for being
in an ISR or eligible before.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.partitions.elr import clear_elr_records, elr_safety_records
from kquorum.metadata.image.configs import BROKER, TOPIC, ConfigResource
from kquorum.metadata.image.metadata_version import ELIGIBLE_LEADER_REPLICAS_VERSION
from kquorum.metadata.image.partition_state import NO_LEADER, RECOVERED, RECOVERING
from kquorum.snapshots.bootstrap import bootstrap_records
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.cluster import RegisterBrokerRecord
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.topics import ClearElrRecord
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.controller_world import SESSION_MS, World, assigned, kinds
from tests.support.metadata.feature_updates import FEATURES, add

KEY = "min.insync.replicas"


def minimum(value: int | None, topic: str = "a") -> ConfigRecord:
    text = None if value is None else str(value)
    return ConfigRecord(resource_type=TOPIC, resource_name=topic, name=KEY, value=text)


def world_of(*brokers: int, required: int = 2, elr: int = 1, static: int = 1) -> World:
    """One partition `a` on these brokers, the first leads."""
    records = bootstrap_records(25, {ELIGIBLE_LEADER_REPLICAS_VERSION: elr})
    world = World(ControllerConfig(bootstrap_records=records, min_insync_replicas=static)).lead()
    world.add_brokers(*brokers, features=FEATURES)
    world.create(assigned("a", brokers))
    add(world, minimum(required))
    return world


def fence(world: World, *brokers: int) -> None:
    for broker_id in brokers:
        world.heartbeat(broker_id, want_fence=True)


def comes_back(world: World, broker_id: int, *, clean: bool, version: int = 4, number: int = 2) -> None:
    epoch = world.controller.image.cluster.brokers[broker_id].epoch
    changes: dict[str, Any] = {"previous_broker_epoch": epoch if clean else -1}
    answer = world.register(broker_id, number, features=FEATURES, **changes)
    assert (version, answer.error_code) == (4, ErrorCode.none)


def lists(world: World) -> tuple[int, Sequence[int], Sequence[int], Sequence[int]]:
    state = world.partition("a")
    return state.leader, state.isr, state.elr, state.last_known_elr


class TestKafkasCases:
    """ReplicationControlManagerTest: testEligibleLeaderReplicas_*."""

    def test_fence(self) -> None:
        world = world_of(0, 1, 2, 3, required=3)
        fence(world, 2, 3)
        assert lists(world) == (0, (0, 1), (3,), ())
        fence(world, 1)
        assert lists(world) == (0, (0,), (1, 3), ())
        for broker_id in (1, 2, 3):
            world.heartbeat(broker_id)
        assert lists(world) == (0, (0,), (1, 3), ())

    def test_shrink_and_expand(self) -> None:
        world = world_of(0, 1, 2)
        alter(world, 0, 0)
        assert lists(world) == (0, (0,), (1, 2), ())
        alter(world, 0, 0, 1)
        assert lists(world) == (0, (0, 1), (), ())

    def test_effective_minimum(self) -> None:
        world = world_of(0, 1, 2, required=5)
        alter(world, 0, 0, 1)
        assert lists(world)[2] == (2,)
        alter(world, 0, 0, 1, 2)
        assert lists(world)[2] == ()

    def test_clean_election(self) -> None:
        world = world_of(0, 1, 2, 3, required=3)
        fence(world, 1, 2, 3)
        assert lists(world) == (0, (0,), (2, 3), ())
        world.heartbeat(2)
        fence(world, 0)
        assert lists(world) == (2, (2,), (0, 3), ())
        assert world.partition("a").leader_recovery_state == RECOVERED

    def test_unclean_shutdown(self) -> None:
        world = world_of(0, 1, 2, 3, required=3)
        fence(world, 1, 2, 3)
        comes_back(world, 3, clean=False)
        assert lists(world) == (0, (0,), (2,), ())
        world.now_ms += SESSION_MS + 1
        comes_back(world, 0, clean=False)
        assert lists(world) == (NO_LEADER, (), (2,), (0,))

    def test_deleted_topic_leaves_nothing(self) -> None:
        world = world_of(0, 1, 2)
        fence(world, 1, 2)
        world.delete("a")
        start = world.raft.log_end_offset
        comes_back(world, 1, clean=False)
        assert kinds(world, start) == ["RegisterBrokerRecord"]


def alter(world: World, leader: int, *isr: int) -> None:
    state, topic = world.partition("a"), world.controller.image.topics.by_name["a"]
    wanted = {
        "partition_index": 0,
        "leader_epoch": state.leader_epoch,
        "new_isr_with_epochs": [{"broker_id": each, "broker_epoch": -1} for each in isr],
        "leader_recovery_state": RECOVERED,
        "partition_epoch": state.partition_epoch,
    }
    answer = world.ask(
        ApiKey.ALTER_PARTITION,
        3,
        broker_id=leader,
        broker_epoch=world.controller.image.cluster.brokers[leader].epoch,
        topics=[{"topic_id": topic.id, "partitions": [wanted]}],
    )
    assert answer.topics[0].partitions[0].error_code is ErrorCode.none


class TestNewProcess:
    def test_changes_of_partitions_precede_the_registration(self) -> None:
        world = world_of(0, 1)
        fence(world, 1)
        start = world.raft.log_end_offset
        comes_back(world, 1, clean=False)
        assert kinds(world, start) == ["PartitionChangeRecord", "RegisterBrokerRecord"]
        assert world.controller.image.cluster.brokers[1].epoch == start
        assert lists(world) == (0, (0,), (), ())

    def test_a_broker_after_a_controlled_shutdown_stays_eligible(self) -> None:
        world = world_of(0, 1)
        fence(world, 1)
        start = world.raft.log_end_offset
        comes_back(world, 1, clean=True)
        assert kinds(world, start) == ["RegisterBrokerRecord"]
        assert lists(world) == (0, (0,), (1,), ())

    def test_a_wrong_epoch_is_as_good_as_none(self) -> None:
        world = world_of(0, 1)
        fence(world, 1)
        wrong = world.controller.image.cluster.brokers[1].epoch + 1
        world.register(1, 2, features=FEATURES, previous_broker_epoch=wrong)
        assert lists(world)[2] == ()

    @pytest.mark.parametrize(("version", "expected"), [(2, ()), (3, (1,)), (4, (1,))])
    def test_old_requests_cannot_tell(self, version: int, expected: tuple[int, ...]) -> None:
        world = world_of(0, 1)
        fence(world, 1)
        broker = world.controller.image.cluster.brokers[1]
        world.ask(
            ApiKey.BROKER_REGISTRATION,
            version,
            broker_id=1,
            cluster_id=world.controller._cluster_id,
            incarnation_id=None,
            listeners=[{"name": "P", "host": "h", "port": 1, "security_protocol": 0}],
            features=FEATURES,
            rack=None,
            log_dirs=broker.log_dirs,
            previous_broker_epoch=broker.epoch,
        )
        assert lists(world)[2] == expected

    @pytest.mark.parametrize(("clean", "elr"), [(True, (1,)), (False, ())])
    def test_process_that_was_not_fenced_yet_leaves_the_isr(self, clean: bool, elr: tuple[int, ...]) -> None:
        """Its session has expired, and only the new process has noticed."""
        world = world_of(0, 1)
        world.now_ms += SESSION_MS - 1
        world.heartbeat(0)
        world.now_ms += 2
        comes_back(world, 1, clean=clean)
        assert lists(world) == (0, (0,), elr, ())
        assert world.controller.image.cluster.brokers[1].fenced

    def test_same_process_loses_nothing_by_amending(self) -> None:
        world = world_of(0, 1)
        start = world.raft.log_end_offset
        world.register(1, features=FEATURES, rack="east", previous_broker_epoch=-1)
        assert kinds(world, start) == ["RegisterBrokerRecord"]
        assert lists(world) == (0, (0, 1), (), ())

    def test_crash_of_all_ends_with_the_last_known_leader(self) -> None:
        world = world_of(0, 1)
        fence(world, 0, 1)
        assert lists(world) == (NO_LEADER, (), (0, 1), (1,))
        comes_back(world, 0, clean=False)
        assert not world.heartbeat(0).is_fenced
        assert lists(world) == (NO_LEADER, (), (1,), (1,)), "1 may still have more"
        comes_back(world, 1, clean=False)
        assert lists(world) == (NO_LEADER, (), (), (1,))
        world.heartbeat(1)
        assert lists(world) == (1, (1,), (), ())
        assert world.partition("a").leader_recovery_state == RECOVERING

    def test_crash_of_one_leaves_the_other_to_be_elected_cleanly(self) -> None:
        world = world_of(0, 1)
        fence(world, 0, 1)
        comes_back(world, 1, clean=False)
        world.heartbeat(1)
        assert lists(world)[0] == NO_LEADER
        comes_back(world, 0, clean=True)
        world.heartbeat(0)
        assert lists(world) == (0, (0,), (), ())
        assert world.partition("a").leader_recovery_state == RECOVERED

    def test_without_the_feature_the_last_member_stays(self) -> None:
        world = world_of(0, 1, elr=0)
        fence(world, 1, 0)
        comes_back(world, 0, clean=False)
        assert lists(world) == (NO_LEADER, (0,), (), ())
        world.heartbeat(0)
        assert lists(world) == (0, (0,), (), ())
        assert world.partition("a").leader_recovery_state == RECOVERED


def test_session_that_ends_leaves_the_same_lists() -> None:
    world = world_of(0, 1, 2, required=3)
    for silent in (2, 1, 0):
        world.now_ms += SESSION_MS - 1
        for broker_id in range(silent):
            world.heartbeat(broker_id)
        world.advance(2)
        world.commit()
    assert lists(world) == (NO_LEADER, (), (0, 1, 2), (0,))


class TestUnregister:
    def test_takes_the_broker_off_both_lists(self) -> None:
        world = world_of(0, 1, 2, required=3)
        fence(world, 2)
        assert lists(world) == (0, (0, 1), (2,), ())
        world.ask(ApiKey.UNREGISTER_BROKER, 0, broker_id=2)
        assert lists(world) == (0, (0, 1), (), ())
        world.ask(ApiKey.UNREGISTER_BROKER, 0, broker_id=1)
        assert lists(world) == (0, (0,), (), ())

    def test_the_last_one_is_remembered_and_may_come_back(self) -> None:
        world = world_of(0)
        world.ask(ApiKey.UNREGISTER_BROKER, 0, broker_id=0)
        assert lists(world) == (NO_LEADER, (), (), (0,))
        world.register(0, 2, features=FEATURES)
        world.heartbeat(0)
        assert lists(world) == (0, (0,), (), ())
        assert world.partition("a").leader_recovery_state == RECOVERING


class TestConfigs:
    def test_a_new_cluster_with_the_feature_says_what_it_rests_on(self) -> None:
        world = world_of(0, required=1, static=2)
        configs = world.controller.image.configs
        assert configs.value(ConfigResource(BROKER, ""), KEY) == "2"
        assert kinds(world, 0)[0] == "BeginTransactionRecord"
        without = world_of(0, required=1, elr=0, static=2)
        assert without.controller.image.configs.value(ConfigResource(BROKER, ""), KEY) is None

    def test_who_counts_for_the_minimum(self) -> None:
        world = world_of(0, 1, required=1, static=2)
        context = _context(world)
        assert (context.min_in_sync_replicas("a"), context.min_in_sync_replicas("b")) == (1, 2)
        add(world, minimum(None), ConfigRecord(resource_type=BROKER, resource_name="", name=KEY, value=None))
        assert _context(world).min_in_sync_replicas("a") == 2, "the node's own configuration"
        assert _context(world_of(0, elr=0)).min_in_sync_replicas("a") is None

    def test_changed_minimum_clears_the_lists(self) -> None:
        world = world_of(0, 1, 2)
        changes = [minimum(3), ConfigRecord(resource_type=TOPIC, resource_name="a", name="x", value="1")]
        assert clear_elr_records(_context(world), changes) == [ClearElrRecord(topic_name="a")]
        cluster = ConfigRecord(resource_type=BROKER, resource_name="", name=KEY, value="3")
        assert clear_elr_records(_context(world), [cluster]) == [ClearElrRecord(topic_name="")]
        group = ConfigRecord(resource_type=32, resource_name="g", name=KEY, value="3")
        assert clear_elr_records(_context(world), [group]) == []
        assert clear_elr_records(_context(world_of(0, elr=0)), changes) == []

    def test_switching_it_on(self) -> None:
        world = world_of(0, 1, elr=0, static=2)
        of_broker = ConfigRecord(resource_type=BROKER, resource_name="1", name=KEY, value="4")
        add(world, of_broker)
        assert elr_safety_records(_context(world)) == [
            ConfigRecord(resource_type=BROKER, resource_name="", name=KEY, value="2"),
            ConfigRecord(resource_type=BROKER, resource_name="1", name=KEY, value=None),
        ]
        world = world_of(0, 1)
        fence(world, 1)
        assert elr_safety_records(_context(world)) == []

    def test_clear_record_bumps_the_epoch_of_partitions_with_lists_only(self) -> None:
        world = world_of(0, 1)
        world.create(assigned("b", (0,)))
        fence(world, 1)
        epoch = world.partition("a").partition_epoch
        add(world, ClearElrRecord(topic_name=""))
        assert (world.partition("a").elr, world.partition("a").partition_epoch) == ((), epoch + 1)
        assert world.partition("b").partition_epoch == 0


def _context(world: World) -> Any:
    active = world.controller._active
    assert active is not None
    return world.controller._context(world.now_ms, active)


def test_registration_tells_the_epoch_at_the_start_of_its_batch() -> None:
    world = world_of(0, 1)
    fence(world, 1)
    start = world.raft.log_end_offset
    comes_back(world, 1, clean=False)
    record = world.raft.records(start)[-1]
    assert isinstance(record, RegisterBrokerRecord)
    assert record.broker_epoch == start
    assert not world.heartbeat(1, current_metadata_offset=start).is_caught_up, "its record is the next"
    assert world.heartbeat(1, current_metadata_offset=start + 1).is_caught_up
