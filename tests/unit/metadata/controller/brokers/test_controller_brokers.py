"""Registration, heartbeats, fencing and controlled shutdown, through the controller."""

from typing import Any
from uuid import UUID

import pytest

from kquorum.metadata.image.partition_state import NO_LEADER
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.cluster import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.controller_world import LEVELS, SESSION_MS, World, assigned, at_level, kinds


class TestRegistration:
    def test_epoch_is_the_offset_of_the_record(self) -> None:
        world = World().lead()
        offset = world.raft.log_end_offset
        assert world.register(4).broker_epoch == offset
        registration = world.controller.committed_image.cluster.brokers[4]
        assert (registration.epoch, registration.fenced) == (offset, True)
        assert registration.log_dirs == (UUID(int=10_004),)

    def test_second_process_with_the_id_of_a_live_broker_is_refused(self) -> None:
        world = World().lead().add_brokers(0)
        answer = world.register(0, incarnation=2)
        assert answer.error_code is ErrorCode.duplicate_broker_registration
        assert answer.broker_epoch == -1

    def test_the_refusal_says_when_the_session_ends_and_it_ends_then(self) -> None:
        """The first millisecond of freedom is the one that was named, wherever in the session one asks."""
        for passed_ms in (0, 1, SESSION_MS // 2, SESSION_MS):
            world = World().lead().add_brokers(0)
            world.now_ms += passed_ms
            ends_in_ms = world.register(0, incarnation=2).session_ends_in_ms
            assert ends_in_ms == SESSION_MS + 1 - passed_ms
            world.now_ms += ends_in_ms - 1
            assert world.register(0, incarnation=2).session_ends_in_ms == 1
            world.now_ms += 1
            assert world.register(0, incarnation=2).error_code is ErrorCode.none

    def test_a_controller_counts_the_session_from_its_activation(self) -> None:
        world = World().lead().add_brokers(0)
        world.now_ms += SESSION_MS - 1
        world.controller.handle_leader_change(world.now_ms, -1, 2)
        world.lead()
        assert world.register(0, incarnation=2).session_ends_in_ms == SESSION_MS + 1

    def test_a_heartbeat_of_the_other_process_moves_the_end(self) -> None:
        world = World().lead().add_brokers(0)
        world.now_ms += 1_000
        world.send_heartbeat(0)
        assert world.register(0, incarnation=2).session_ends_in_ms == SESSION_MS + 1

    def test_other_refusals_name_no_session(self) -> None:
        world = World().lead()
        assert world.register(0, cluster_id="other").session_ends_in_ms == -1

    def test_id_of_a_fenced_broker_is_free(self) -> None:
        world = World().lead()
        first = world.register(0).broker_epoch
        assert world.register(0, incarnation=2).broker_epoch > first

    def test_id_of_a_broker_whose_session_ended_is_free(self) -> None:
        world = World().lead().add_brokers(0)
        world.now_ms += SESSION_MS + 1
        assert world.register(0, incarnation=2).error_code is ErrorCode.none

    def test_same_process_amends_its_registration_and_keeps_its_epoch(self) -> None:
        world = World().lead().add_brokers(0)
        epoch = world.controller.image.cluster.brokers[0].epoch
        assert world.register(0, rack="east").broker_epoch == epoch
        registration = world.controller.image.cluster.brokers[0]
        assert (registration.rack, registration.fenced) == ("east", False)

    @pytest.mark.parametrize(
        ("changes", "error"),
        [
            ({"cluster_id": "other"}, ErrorCode.inconsistent_cluster_id),
            ({"is_migrating_zk_broker": True}, ErrorCode.broker_id_not_registered),
            ({"log_dirs": ()}, ErrorCode.invalid_registration),
            ({"log_dirs": [UUID(int=99)]}, ErrorCode.invalid_registration),
            ({"log_dirs": [UUID(int=500), UUID(int=500)]}, ErrorCode.invalid_registration),
            ({"log_dirs": [UUID(int=10_000)]}, ErrorCode.invalid_registration),
            ({"features": LEVELS[:2]}, ErrorCode.unsupported_version),
            ({"features": LEVELS[1:]}, ErrorCode.unsupported_version),
            (
                {
                    "features": [
                        {"name": "metadata.version", "min_supported_version": 1, "max_supported_version": 24}
                    ]
                },
                ErrorCode.unsupported_version,
            ),
        ],
    )
    def test_refusals(self, changes: dict[str, Any], error: ErrorCode) -> None:
        world = World().lead().add_brokers(0)
        start = world.raft.log_end_offset
        assert world.register(1, **changes).error_code is error
        assert world.raft.records(start) == []

    def test_old_level_writes_no_directories(self) -> None:
        world = at_level(14)
        world.register(1)
        assert world.controller.committed_image.cluster.brokers[1].log_dirs == ()

    def test_unregister_takes_the_broker_out_of_every_isr(self) -> None:
        world = World().lead().add_brokers(0, 1)
        world.create(assigned("a", (0, 1)))
        start = world.raft.log_end_offset
        assert world.ask(ApiKey.UNREGISTER_BROKER, 0, broker_id=0).error_code is ErrorCode.none
        assert kinds(world, start) == ["PartitionChangeRecord", "UnregisterBrokerRecord"]
        assert isinstance(world.raft.records(start)[-1], UnregisterBrokerRecord)
        assert (world.partition("a").leader, world.partition("a").isr) == (1, (1,))

    def test_unregister_of_an_unknown_broker(self) -> None:
        answer = World().lead().ask(ApiKey.UNREGISTER_BROKER, 0, broker_id=5)
        assert answer.error_code is ErrorCode.broker_id_not_registered
        assert "5" in answer.error_message


class TestHeartbeat:
    def test_stale_epoch(self) -> None:
        world = World().lead().add_brokers(0)
        assert world.heartbeat(0, broker_epoch=1).error_code is ErrorCode.stale_broker_epoch

    def test_unknown_broker(self) -> None:
        world = World().lead().add_brokers(0)
        assert world.heartbeat(0, broker_id=9).error_code is ErrorCode.stale_broker_epoch

    def test_broker_stays_fenced_until_it_has_read_its_registration(self) -> None:
        world = World().lead()
        epoch = world.register(0).broker_epoch
        answer = world.heartbeat(0, current_metadata_offset=epoch - 1)
        assert (answer.is_caught_up, answer.is_fenced) == (False, True)
        answer = world.heartbeat(0, current_metadata_offset=epoch)
        assert (answer.is_caught_up, answer.is_fenced) == (True, False)

    def test_amended_registration_must_be_read_too(self) -> None:
        world = World().lead()
        epoch = world.register(0).broker_epoch
        world.register(0, rack="east")
        assert world.heartbeat(0, current_metadata_offset=epoch).is_fenced
        assert not world.heartbeat(0).is_fenced

    def test_broker_that_wants_to_be_fenced_is(self) -> None:
        world = World().lead().add_brokers(0)
        assert world.heartbeat(0, want_fence=True).is_fenced
        assert world.controller.committed_image.cluster.brokers[0].fenced

    def test_shutdown_wish_of_a_fenced_broker_is_granted_without_a_record(self) -> None:
        world = World().lead()
        world.register(0)
        start = world.raft.log_end_offset
        answer = world.heartbeat(0, want_fence=True, want_shut_down=True)
        assert (answer.should_shut_down, answer.is_fenced) == (True, True)
        assert world.raft.records(start) == []

    def test_unfenced_broker_that_wants_fence_and_shutdown_goes_at_once(self) -> None:
        world = World().lead().add_brokers(0)
        world.create(assigned("a", (0,)))
        answer = world.heartbeat(0, want_fence=True, want_shut_down=True)
        assert answer.should_shut_down
        assert world.partition("a").leader == NO_LEADER

    def test_broker_that_leads_nothing_may_go_at_once(self) -> None:
        world = World().lead().add_brokers(0, 1)
        world.create(assigned("a", (0, 1)))
        answer = world.heartbeat(1, want_shut_down=True)
        assert (answer.should_shut_down, answer.is_fenced) == (True, True)
        assert world.partition("a").isr == (0,)

    def test_controlled_shutdown_from_the_first_wish_to_the_end(self) -> None:
        world = World().lead().add_brokers(0, 1, 2)
        world.create(assigned("a", (0, 1, 2)), assigned("b", (1, 0, 2)))
        start = world.raft.log_end_offset
        answer = world.heartbeat(0, want_shut_down=True)
        assert (answer.should_shut_down, answer.is_fenced) == (False, False)
        shutdown_offset = world.raft.log_end_offset - 1
        assert world.raft.records(start)[0] == BrokerRegistrationChangeRecord(
            broker_id=0,
            broker_epoch=world.controller.image.cluster.brokers[0].epoch,
            in_controlled_shutdown=1,
        )
        assert (world.partition("a").leader, world.partition("a").isr) == (1, (1, 2))
        assert (world.partition("b").leader, world.partition("b").isr) == (1, (1, 2))
        world.heartbeat(1, current_metadata_offset=shutdown_offset)
        world.heartbeat(2, current_metadata_offset=shutdown_offset - 1)
        assert not world.heartbeat(0, want_shut_down=True).should_shut_down
        world.heartbeat(2, current_metadata_offset=shutdown_offset)
        answer = world.heartbeat(0, want_shut_down=True)
        assert (answer.should_shut_down, answer.is_fenced) == (True, True)
        assert world.controller.committed_image.cluster.brokers[0].fenced

    def test_shutdown_waits_for_no_more_than_its_own_records(self) -> None:
        world = World().lead().add_brokers(0, 1)
        world.create(assigned("a", (0, 1)))
        world.heartbeat(0, want_shut_down=True)
        shutdown_offset = world.raft.log_end_offset - 1
        world.create(assigned("b", (1,)))
        assert not world.heartbeat(0, want_shut_down=True).should_shut_down
        world.heartbeat(1, current_metadata_offset=shutdown_offset)
        assert world.heartbeat(0, want_shut_down=True).should_shut_down

    def test_fence_by_timeout_ends_a_controlled_shutdown(self) -> None:
        world = World().lead().add_brokers(0, 1)
        world.create(assigned("a", (0, 1)))
        world.heartbeat(0, want_shut_down=True)
        world.advance(SESSION_MS + 1)
        world.commit()
        assert world.controller.image.cluster.brokers[0].fenced
        assert not world.heartbeat(0).is_fenced
        assert not world.heartbeat(0).should_shut_down, "it came back and asked for nothing"

    def test_sole_replica_leaves_its_partition_leaderless_and_in_sync(self) -> None:
        world = World().lead().add_brokers(0, 1)
        world.create(assigned("a", (0,)))
        assert not world.heartbeat(0, want_shut_down=True).should_shut_down
        assert (world.partition("a").leader, world.partition("a").isr) == (NO_LEADER, (0,))
        world.heartbeat(1)
        assert world.heartbeat(0, want_shut_down=True).should_shut_down

    def test_broker_in_controlled_shutdown_is_given_no_leadership(self) -> None:
        world = World().lead().add_brokers(0, 1)
        world.create(assigned("lone", (0,)), assigned("a", (1, 0)))
        world.heartbeat(0, want_shut_down=True)
        world.heartbeat(1, want_fence=True)
        assert world.partition("a").leader == NO_LEADER

    def test_failed_directory_costs_isr_and_leadership_there_only(self) -> None:
        world = World().lead().add_brokers(1)
        disks = [UUID(int=700), UUID(int=701)]
        world.add_brokers(0, log_dirs=disks[:1])
        world.create(assigned("a", (0, 1)))
        world.register(0, log_dirs=disks)
        world.create(assigned("b", (0, 1)))
        assert world.partition("a").directories[0] == disks[0]
        world.heartbeat(0, offline_log_dirs=disks[:1])
        assert (world.partition("a").leader, world.partition("a").isr) == (1, (1,))
        assert (world.partition("b").leader, world.partition("b").isr) == (0, (0, 1))
        assert world.controller.image.cluster.brokers[0].log_dirs == (disks[1],)


def test_producer_ids_come_in_blocks() -> None:
    world = World().lead().add_brokers(0)
    epoch = world.controller.image.cluster.brokers[0].epoch
    values = {"broker_id": 0, "broker_epoch": epoch}
    first, second = (world.ask(ApiKey.ALLOCATE_PRODUCER_IDS, 0, **values) for _ in range(2))
    assert (first.producer_id_start, first.producer_id_len) == (0, 1000)
    assert second.producer_id_start == 1000
    stale = world.ask(ApiKey.ALLOCATE_PRODUCER_IDS, 0, broker_id=0, broker_epoch=epoch + 1)
    assert stale.error_code is ErrorCode.stale_broker_epoch


def test_controller_registration_needs_a_level_that_has_it() -> None:
    values = {
        "controller_id": 1,
        "incarnation_id": None,
        "zk_migration_ready": False,
        "listeners": (),
        "features": (),
    }
    assert at_level(15).ask(ApiKey.CONTROLLER_REGISTRATION, 0, **values).error_code is ErrorCode.none
    refused = at_level(14).ask(ApiKey.CONTROLLER_REGISTRATION, 0, **values)
    assert refused.error_code is ErrorCode.unsupported_version


def test_registration_record_carries_what_the_broker_sent() -> None:
    world = World().lead()
    world.register(2, rack="west")
    record = world.raft.records()[-1]
    assert isinstance(record, RegisterBrokerRecord)
    assert (record.rack, record.fenced, record.end_points[0].host) == ("west", True, "b2")
    assert {feature.name for feature in record.features} == {level["name"] for level in LEVELS}
    assert world.controller.committed_image.cluster.brokers[2].incarnation_id == UUID(int=2001)
