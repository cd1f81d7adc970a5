"""Whatever interrupts a change of many partitions, none stays without a leader while one with its data is up."""

from typing import Any

import pytest

from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.partitions import batched_update, change_batch, elect_leaders
from kquorum.metadata.image.metadata_version import ELIGIBLE_LEADER_REPLICAS_VERSION
from kquorum.metadata.image.partition_state import NO_LEADER
from kquorum.snapshots.bootstrap import bootstrap_records
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.controller_world import SESSION_MS, World, assigned
from tests.support.metadata.feature_updates import FEATURES

SLICE = 4
PARTITIONS = 11


@pytest.fixture(autouse=True)
def _small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batched_update, "PARTITIONS_PER_SLICE", SLICE)
    monkeypatch.setattr(change_batch, "CHANGES_AT_ONCE", SLICE)


def world_of(elr: int = 0, level: int = 25, **changes: Any) -> World:
    """Eleven partitions that broker 1 alone has, and another broker."""
    records = bootstrap_records(level, {ELIGIBLE_LEADER_REPLICAS_VERSION: elr} if elr else {})
    config = ControllerConfig(
        bootstrap_records=records,
        metadata_max_idle_interval_ms=0,
        auto_leader_rebalance_enable=False,
        **changes,
    )
    world = World(config).lead().add_brokers(1, 2, features=FEATURES)
    world.create(assigned("a", *[[1]] * PARTITIONS))
    return world


def leaderless_count(world: World) -> int:
    return sum(world.partition("a", index).leader == NO_LEADER for index in range(PARTITIONS))


def pass_time(world: World, milliseconds: int = elect_leaders.INTERVAL_MS, *brokers: int) -> None:
    """Brokers beat every second."""
    for _ in range(milliseconds // 1000 + 1):
        world.advance(1000)
        world.commit()
        for broker_id in brokers or (1, 2):
            world.heartbeat(broker_id)


def fence(world: World) -> None:
    """Broker 1, off all of its partitions."""
    world.heartbeat(1, want_fence=True)
    world.advance(0)
    world.commit()
    assert leaderless_count(world) == PARTITIONS


@pytest.mark.parametrize("elr", [0, 1])
def test_a_broker_that_heartbeats_again_leads_the_partitions_it_lost(elr: int) -> None:
    world = world_of(elr)
    world.now_ms += SESSION_MS - 1
    world.heartbeat(2)
    world.now_ms += 2
    for expected in (0, SLICE, 2 * SLICE):
        world.controller.handle_time(world.now_ms)
        assert leaderless_count(world) == expected
    world.heartbeat(1)
    pass_time(world)
    assert leaderless_count(world) == 0
    assert not world.controller.image.cluster.brokers[1].fenced
    assert world.partition("a").leader_recovery_state == 0


def test_a_new_controller_ends_what_the_last_one_had_begun_for_a_returned_broker() -> None:
    world = world_of()
    fence(world)
    world.heartbeat(1)
    world.controller.handle_time(world.now_ms)
    world.commit()
    assert leaderless_count(world) == PARTITIONS - SLICE
    world.follow(7, 2)
    world.lead(3)
    pass_time(world)
    assert leaderless_count(world) == 0


def test_an_unregistration_that_was_not_ended_is_undone() -> None:
    world = world_of()
    world.send(ApiKey.UNREGISTER_BROKER, 0, broker_id=1)
    world.controller.handle_time(world.now_ms)
    world.commit()
    assert leaderless_count(world) == SLICE
    world.follow(7, 2)
    world.lead(3)
    pass_time(world)
    assert leaderless_count(world) == 0


def test_nothing_is_given_back_to_a_broker_that_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """At this level the image does not show that it leaves."""
    monkeypatch.setattr(change_batch, "CHANGES_AT_ONCE", PARTITIONS)
    world = world_of(level=4)
    world.heartbeat(1, want_shut_down=True, current_metadata_offset=0)
    assert leaderless_count(world) == PARTITIONS
    for _ in range(2 * elect_leaders.INTERVAL_MS // 1000):
        world.advance(1000)
        world.commit()
        # The other one has not read yet who leads, so it has to wait.
        world.heartbeat(2, current_metadata_offset=0)
        assert not world.heartbeat(1, want_shut_down=True).should_shut_down
    assert leaderless_count(world) == PARTITIONS


def test_who_lacks_the_data_leads_nothing() -> None:
    world = world_of()
    world.create(assigned("b", [1, 2]))
    world.heartbeat(2, want_fence=True)
    world.heartbeat(2)
    world.heartbeat(1, want_fence=True)
    world.advance(0)
    world.commit()
    start = world.raft.log_end_offset
    pass_time(world, 2 * elect_leaders.INTERVAL_MS, 2)
    assert world.partition("b").leader == NO_LEADER
    assert world.partition("b").isr == (1,)
    assert world.raft.records(start) == []


def test_it_is_many_a_turn_and_goes_on_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elect_leaders, "MOST_ELECTIONS", 3)
    world = world_of()
    fence(world)
    world.heartbeat(1)
    world.follow(7, 2)
    world.lead(3)
    before = len(world.raft.batches)
    pass_time(world)
    assert leaderless_count(world) == 0
    assert len(world.raft.batches) == before + 4
