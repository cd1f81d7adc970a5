"""min.insync.replicas where there are eligible leader replicas."""

import pytest

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.image.configs import BROKER, TOPIC
from kquorum.metadata.image.metadata_version import ELIGIBLE_LEADER_REPLICAS_VERSION
from kquorum.snapshots.bootstrap import bootstrap_records
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.topics import ClearElrRecord
from tests.support.controller_world import LEVELS, World, topic
from tests.support.metadata.altering_configs import (
    DELETE,
    LEGACY,
    NONE,
    SET,
    all_of,
    alter,
    changes,
    world_of_topics,
)


@pytest.fixture
def world() -> World:
    return world_of_topics()


class TestEligibleLeaders:
    """KIP-966: min.insync.replicas decides who may lead, so brokers must agree on it."""

    @pytest.fixture
    def world(self) -> World:
        records = bootstrap_records(25, {ELIGIBLE_LEADER_REPLICAS_VERSION: 1})
        supported = {
            "name": ELIGIBLE_LEADER_REPLICAS_VERSION,
            "min_supported_version": 0,
            "max_supported_version": 1,
        }
        world = World(ControllerConfig(bootstrap_records=records)).lead()
        world.add_brokers(1, 2, features=[*LEVELS, supported])
        world.create(topic("a"))
        return world

    @pytest.mark.parametrize("operation", [SET, DELETE])
    def test_no_broker_has_its_own(self, world: World, operation: int) -> None:
        ((code, words),) = alter(world, changes(BROKER, "1", ("min.insync.replicas", operation, "2")))
        assert code is ErrorCode.invalid_config
        assert words == "Broker-level min.insync.replicas cannot be altered while ELR is enabled."

    def test_the_clusters_stays(self, world: World) -> None:
        assert alter(world, changes(BROKER, "", ("min.insync.replicas", SET, "2"))) == [NONE]
        words = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
        assert alter(world, changes(BROKER, "", ("min.insync.replicas", DELETE, None))) == [
            (ErrorCode.invalid_config, words)
        ]
        assert alter(world, all_of(BROKER, "", num_io_threads="3"), api_key=LEGACY) == [
            (ErrorCode.invalid_config, words)
        ]

    @pytest.mark.parametrize(("kind", "name", "cleared"), [(TOPIC, "a", "a"), (BROKER, "", "")])
    def test_another_value_forgets_who_was_eligible(
        self, world: World, kind: int, name: str, cleared: str
    ) -> None:
        start = world.raft.log_end_offset
        assert alter(world, changes(kind, name, ("min.insync.replicas", SET, "2"))) == [NONE]
        clears = [each for each in world.raft.records(start) if isinstance(each, ClearElrRecord)]
        assert [each.topic_name for each in clears] == [cleared]


def test_without_that_feature_nothing_is_forgotten(world: World) -> None:
    start = world.raft.log_end_offset
    assert alter(world, changes(BROKER, "1", ("min.insync.replicas", SET, "2"))) == [NONE]
    assert not any(isinstance(each, ClearElrRecord) for each in world.raft.records(start))
