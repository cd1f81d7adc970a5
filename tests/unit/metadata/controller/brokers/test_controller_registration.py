"""Registration of brokers and controllers at its edges: endpoints, features, directories, levels; and what heartbeats
tell of directories."""

from typing import Any
from uuid import UUID

import pytest

from kquorum.metadata.image.metadata_version import record_version
from kquorum.metadata.image.partition_state import NO_LEADER
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.cluster import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.controller_world import (
    CLUSTER_ID,
    LEVELS,
    SESSION_MS,
    World,
    assigned,
    at_level,
    kinds,
)

DISKS = (UUID(int=700), UUID(int=701))
FULL_RANGE = [{"name": "metadata.version", "min_supported_version": 1, "max_supported_version": 30}]


def listener(**changes: Any) -> dict[str, Any]:
    return {"name": "PLAINTEXT", "host": "h", "port": 9092, "security_protocol": 0, **changes}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"security_protocol": 4}, "Unknown security protocol 4 in listener PLAINTEXT"),
        ({"security_protocol": -1}, "Unknown security protocol -1"),
        ({"port": 0}, "h:0"),
        ({"host": " "}, "no address"),
    ],
)
def test_endpoints_that_no_client_could_connect_to(changes: dict[str, Any], words: str) -> None:
    world = World().lead()
    refused = world.register(0, listeners=[listener(), listener(**changes)])
    assert refused.error_code is ErrorCode.invalid_registration
    answer = register_controller(world, [listener(**changes)])
    assert (answer.error_code, words in answer.error_message) == (ErrorCode.invalid_registration, True)
    assert not world.controller.image.cluster.controllers


def register_controller(world: World, listeners: list[dict[str, Any]], incarnation: int = 5) -> Any:
    return world.ask(
        ApiKey.CONTROLLER_REGISTRATION,
        0,
        controller_id=3000,
        incarnation_id=UUID(int=incarnation),
        zk_migration_ready=False,
        listeners=listeners,
        features=[{"name": "kraft.version", "min_supported_version": 0, "max_supported_version": 1}],
    )


@pytest.mark.parametrize("broker_id", [-1, -(1 << 31)])
def test_negative_ids_mean_no_node(broker_id: int) -> None:
    """As a leader such a broker would count as none."""
    world = World().lead()
    answer = world.ask(
        ApiKey.BROKER_REGISTRATION,
        4,
        broker_id=broker_id,
        cluster_id=CLUSTER_ID,
        incarnation_id=UUID(int=5),
        listeners=(),
        features=LEVELS,
        rack=None,
        log_dirs=[UUID(int=10_000)],
    )
    assert answer.error_code is ErrorCode.invalid_registration
    assert not world.controller.image.cluster.brokers


def test_controller_registers_again_under_another_incarnation() -> None:
    world = World().lead()
    for incarnation in (5, 6):
        answer = register_controller(world, [listener(name="C", security_protocol=3)], incarnation)
        assert answer.error_code is ErrorCode.none
        known = world.controller.committed_image.cluster.controllers[3000]
        assert (known.incarnation_id, known.end_points[0].security_protocol) == (UUID(int=incarnation), 3)
        assert known.features[0].name == "kraft.version"


class TestFeatures:
    def test_a_level_outside_of_the_range_is_named(self) -> None:
        features = [{"name": "metadata.version", "min_supported_version": 26, "max_supported_version": 30}]
        world = World().lead()
        assert world.register(0, features=features).error_code is ErrorCode.unsupported_version

    def test_broker_that_knows_of_no_metadata_version_has_the_first_alone(self) -> None:
        world = at_level(4)
        assert world.register(0, features=[]).error_code is ErrorCode.unsupported_version
        only = [{"name": "metadata.version", "min_supported_version": 1, "max_supported_version": 4}]
        assert world.register(0, features=only).error_code is ErrorCode.none

    def test_a_feature_that_is_off_needs_no_support(self) -> None:
        world = at_level(20)
        features = [*FULL_RANGE, {"name": "new", "min_supported_version": 0, "max_supported_version": 9}]
        assert world.register(0, features=features).error_code is ErrorCode.none
        features[1] = {"name": "new", "min_supported_version": 1, "max_supported_version": 9}
        assert world.register(1, features=features).error_code is ErrorCode.unsupported_version

    @pytest.mark.parametrize(
        ("supported", "error"),
        [
            (LEVELS, ErrorCode.unsupported_version),
            (
                [*LEVELS, {"name": "kraft.version", "min_supported_version": 0, "max_supported_version": 0}],
                ErrorCode.unsupported_version,
            ),
            (
                [*LEVELS, {"name": "kraft.version", "min_supported_version": 0, "max_supported_version": 1}],
                ErrorCode.none,
            ),
        ],
    )
    def test_level_of_the_quorum_counts(self, supported: Any, error: ErrorCode) -> None:
        world = World().lead()
        world.raft.kraft_version = 1
        assert world.register(0, features=supported).error_code is error


@pytest.mark.parametrize(
    ("level", "version"), [(4, 0), (6, 0), (7, 1), (8, 2), (16, 2), (17, 3), (29, 3), (30, 4)]
)
def test_version_of_the_record(level: int, version: int) -> None:
    world = at_level(level)
    assert world.register(0, features=FULL_RANGE).error_code is ErrorCode.none
    record = world.raft.records()[-1]
    assert isinstance(record, RegisterBrokerRecord)
    assert record_version(record, level) == version
    assert bool(record.log_dirs) == (level >= 17)


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_the_request(version: int) -> None:
    """Directories came with version 2; a level that has them cannot do without."""
    values = {
        "broker_id": 7,
        "cluster_id": CLUSTER_ID,
        "incarnation_id": UUID(int=70),
        "listeners": [listener()],
        "features": FULL_RANGE,
        "rack": "r",
        "is_migrating_zk_broker": False,
        "log_dirs": DISKS,
        "previous_broker_epoch": -1,
    }
    old, new = at_level(14), at_level(17)
    answer = old.ask(ApiKey.BROKER_REGISTRATION, version, **values)
    assert (answer.error_code, answer.broker_epoch > 0) == (ErrorCode.none, True)
    expected = ErrorCode.none if version >= 2 else ErrorCode.invalid_registration
    assert new.ask(ApiKey.BROKER_REGISTRATION, version, **values).error_code is expected


@pytest.mark.parametrize(("disks", "error"), [(DISKS[:1], 0), (DISKS, 1)])
def test_directory_of_another_broker_is_free_when_that_one_gave_it_up(
    disks: tuple[UUID, ...], error: int
) -> None:
    world = World().lead()
    world.register(0, log_dirs=disks)
    answer = world.register(1, log_dirs=DISKS[1:])
    wanted = ErrorCode.invalid_registration if error else ErrorCode.none
    assert answer.error_code is wanted


class TestTakingOver:
    def test_new_process_leaves_the_isrs_of_the_old_one(self) -> None:
        world = World().lead().add_brokers(0, 1)
        world.create(assigned("a", (0, 1)))
        world.now_ms += SESSION_MS - 1
        world.heartbeat(1)
        world.now_ms += 2
        start = world.raft.log_end_offset
        assert world.register(0, incarnation=2).broker_epoch == start
        assert kinds(world, start) == ["PartitionChangeRecord", "RegisterBrokerRecord"]
        assert (world.partition("a").leader, world.partition("a").isr) == (1, (1,))

    def test_in_controlled_shutdown_it_starts_again(self) -> None:
        world = World().lead().add_brokers(0, 1)
        world.create(assigned("a", (0, 1)))
        world.heartbeat(0, want_shut_down=True)
        assert world.controller.image.cluster.brokers[0].in_controlled_shutdown
        world.register(0, rack="x")
        assert world.controller.image.cluster.brokers[0].in_controlled_shutdown
        world.now_ms += SESSION_MS + 1
        world.register(0, incarnation=2)
        broker = world.controller.image.cluster.brokers[0]
        assert (broker.in_controlled_shutdown, broker.fenced) == (False, True)


class TestDirectories:
    def test_failed_one_is_dealt_with_before_the_broker_leads(self) -> None:
        world = World().lead().add_brokers(0, log_dirs=DISKS[:1])
        world.create(assigned("a", (0,)))
        world.register(0, log_dirs=DISKS)
        world.heartbeat(0, want_fence=True)
        assert world.partition("a").directories == DISKS[:1]
        answer = world.heartbeat(0, offline_log_dirs=DISKS[:1])
        assert (answer.is_fenced, answer.is_caught_up) == (True, True)
        assert world.controller.image.cluster.brokers[0].log_dirs == DISKS[1:]
        assert not world.heartbeat(0, offline_log_dirs=DISKS[:1]).is_fenced
        assert world.partition("a").leader == NO_LEADER

    def test_a_directory_of_another_broker_says_nothing(self) -> None:
        world = World().lead().add_brokers(0, 1)
        world.create(assigned("a", (0, 1)))
        start = world.raft.log_end_offset
        world.heartbeat(0, offline_log_dirs=[UUID(int=10_001)])
        assert kinds(world, start) == []

    def test_all_failed(self) -> None:
        """The registration cannot be without any; the broker is about to stop."""
        world = World().lead().add_brokers(0, 1)
        world.create(assigned("a", (0, 1)))
        start = world.raft.log_end_offset
        world.heartbeat(0, offline_log_dirs=[UUID(int=10_000)])
        assert kinds(world, start) == ["PartitionChangeRecord"]
        assert world.partition("a").isr == (1,)
        world.heartbeat(0, offline_log_dirs=[UUID(int=10_000)])
        assert kinds(world, start) == ["PartitionChangeRecord"], "said once"

    def test_old_level_knows_of_none(self) -> None:
        world = at_level(16)
        world.add_brokers(0, 1, features=FULL_RANGE)
        world.create(assigned("a", (0, 1)))
        world.heartbeat(0, offline_log_dirs=[UUID(int=10_000)])
        assert world.partition("a").isr == (0, 1)

    @pytest.mark.parametrize(("level", "count"), [(29, 0), (30, 1)])
    def test_cordoned_ones_are_reported_once(self, level: int, count: int) -> None:
        world = at_level(level)
        world.add_brokers(0, features=FULL_RANGE, log_dirs=DISKS)
        for told in (None, DISKS[:1], DISKS[:1], (), DISKS):
            cordon(world, told)
        changes = [
            record.cordoned_log_dirs
            for record in world.raft.records()
            if isinstance(record, BrokerRegistrationChangeRecord) and record.cordoned_log_dirs is not None
        ]
        assert changes == [DISKS[:1], (), DISKS][: 3 * count]
        known = world.controller.committed_image.cluster.brokers[0].cordoned_log_dirs
        assert known == (DISKS if count else None)

    def test_cordoned_ones_are_kept_when_the_process_amends_its_registration(self) -> None:
        world = at_level(30)
        world.add_brokers(0, features=FULL_RANGE, log_dirs=DISKS)
        cordon(world, DISKS[:1])
        world.register(0, features=FULL_RANGE, log_dirs=DISKS, rack="x")
        assert world.controller.image.cluster.brokers[0].cordoned_log_dirs == DISKS[:1]
        world.heartbeat(0, want_fence=True)
        world.register(0, incarnation=2, features=FULL_RANGE, log_dirs=DISKS)
        assert not world.controller.image.cluster.brokers[0].cordoned_log_dirs


def cordon(world: World, told: tuple[UUID, ...] | None) -> None:
    answer = world.ask(
        ApiKey.BROKER_HEARTBEAT,
        2,
        broker_id=0,
        broker_epoch=world.controller.image.cluster.brokers[0].epoch,
        current_metadata_offset=world.raft.log_end_offset,
        want_fence=False,
        want_shut_down=False,
        offline_log_dirs=(),
        cordoned_log_dirs=told,
    )
    assert answer.error_code is ErrorCode.none
