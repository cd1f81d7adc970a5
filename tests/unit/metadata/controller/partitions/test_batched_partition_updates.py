"""Changes of many partitions come in slices, so that the leader's loop is never busy for longer than followers wait."""

from typing import Any

import pytest

from kquorum.metadata.controller import timeline
from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.partitions import batched_update, change_batch
from kquorum.metadata.controller.partitions.partition_change import Affected, leader_and_isr_records
from kquorum.metadata.image.partition_state import NO_LEADER
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from tests.support.controller_world import SESSION_MS, World, assigned

SLICE = 4
QUIET = ControllerConfig(metadata_max_idle_interval_ms=0)


@pytest.fixture(autouse=True)
def _small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batched_update, "PARTITIONS_PER_SLICE", SLICE)
    monkeypatch.setattr(change_batch, "CHANGES_AT_ONCE", SLICE)


def world_of(*replicas: tuple[int, ...], brokers: tuple[int, ...] = (0, 1)) -> World:
    """Three topics of seven partitions each, a batch of partitions a topic."""
    world = World(QUIET).lead().add_brokers(*brokers)
    for name in "abc":
        world.create(assigned(name, *[replicas[0]] * 7))
    return world


def leaders(world: World) -> set[int]:
    topics = world.controller.image.topics.by_name
    return {world.partition(name, index).leader for name in topics for index in range(7)}


def changes_of(world: World, start: int) -> list[int]:
    """How many partitions each batch changes."""
    batches = [batch for batch in world.raft.batches if batch.base_offset >= start]
    return [
        sum(
            isinstance(record, PartitionChangeRecord)
            for record in world.raft.records(batch.base_offset)[:count]
        )
        for batch, count in ((each, len(each.records)) for each in batches)
    ]


def fall_silent(world: World) -> None:
    """Broker 0's session ends; the controller has one turn."""
    world.now_ms += SESSION_MS - 1
    world.heartbeat(1)
    world.now_ms += 2
    world.controller.handle_time(world.now_ms)


def is_fenced(world: World, broker_id: int = 0) -> bool:
    return world.controller.image.cluster.brokers[broker_id].fenced


def test_a_silent_broker_is_fenced_and_leaves_its_partitions_in_the_turns_after() -> None:
    world = world_of((0, 1))
    start = world.raft.log_end_offset
    fall_silent(world)
    assert is_fenced(world)
    assert leaders(world) == {0}
    turns = 0
    while leaders(world) != {1}:
        due = world.controller.next_deadline_ms()
        assert due is not None
        assert due <= world.now_ms, "the rest is due at once"
        world.controller.handle_time(world.now_ms)
        turns += 1
    assert turns == 6, "21 partitions in slices of 4"
    assert changes_of(world, start) == [0, SLICE, SLICE, SLICE, SLICE, SLICE, 1]


@pytest.mark.parametrize("unclean", [False, True])
def test_partitions_without_another_leader_are_not_visited_again_for_the_fence(
    monkeypatch: pytest.MonkeyPatch, unclean: bool
) -> None:
    """A broker may be the last of a hundred thousand ISRs, which it stays in: its fence must not take seconds."""
    config = ControllerConfig(metadata_max_idle_interval_ms=0, unclean_leader_election_enable=unclean)
    world = World(config).lead().add_brokers(0, 1)
    world.create(assigned("a", *[(0,)] * 7), assigned("b", (1, 0)))
    world.heartbeat(0, want_shut_down=True)
    world.advance(0)
    assert {world.partition("a", index).leader for index in range(7)} == {NO_LEADER}
    decided: list[int] = []

    def counting(context: DecisionContext, affected: Affected, **values: Any) -> list[PartitionChangeRecord]:
        affected = list(affected)
        decided.extend(each for _, ids in affected for each in ids.tolist())
        return list(leader_and_isr_records(context, affected, **values))

    monkeypatch.setattr(change_batch, "leader_and_isr_records", counting)
    start = world.raft.log_end_offset
    fall_silent(world)
    assert is_fenced(world)
    assert changes_of(world, start) == [0]
    assert {world.partition("a", index).isr for index in range(7)} == {(0,)}
    assert len(decided) <= 1, "of those that are alike the first alone"


def test_a_broker_that_heartbeats_during_a_fence_keeps_partitions_not_yet_moved() -> None:
    world = world_of((0, 1))
    fall_silent(world)
    world.controller.handle_time(world.now_ms)
    assert not world.heartbeat(0).is_fenced
    world.controller.handle_time(world.now_ms)
    assert not is_fenced(world)
    assert leaders(world) == {0, 1}
    world.now_ms += SESSION_MS + 1
    world.heartbeat(1)
    world.advance(0)
    assert is_fenced(world)
    assert leaders(world) == {1}, "what it led meanwhile counts"


def test_a_broker_that_was_fenced_while_it_left_leads_again_when_it_comes_back() -> None:
    """Its registration says to the end that it is in controlled shutdown, as with Kafka's controller."""
    world = World(QUIET).lead().add_brokers(0, 1)
    world.create(assigned("a", *[(0,)] * 7), assigned("b", (1, 0)))
    world.heartbeat(0, want_shut_down=True)
    world.advance(0)
    fall_silent(world)
    assert is_fenced(world)
    assert world.controller.image.cluster.brokers[0].in_controlled_shutdown
    assert not world.heartbeat(0).is_fenced
    world.advance(0)
    assert {world.partition("a", index).leader for index in range(7)} == {0}


def test_a_new_leader_goes_on_where_the_last_one_stopped() -> None:
    """At once: the broker is fenced, so nothing else would ever take it off the rest."""
    world = world_of((0, 1))
    fall_silent(world)
    world.controller.handle_time(world.now_ms)
    world.commit()
    world.follow(7, 2)
    assert leaders(world) == {0, 1}
    world.lead(3)
    world.advance(0)
    assert is_fenced(world)
    assert leaders(world) == {1}


def test_a_new_leader_looks_for_nothing_where_a_fenced_broker_is_alone_in_sync() -> None:
    world = world_of((0,))
    world.heartbeat(0, want_fence=True)
    world.advance(0)
    assert leaders(world) == {NO_LEADER}
    world.follow(7, 2)
    world.lead(3)
    assert world.controller.next_deadline_ms() != world.now_ms, "no sweep is begun"


def test_partitions_without_a_leader_get_the_returned_broker_a_slice_a_turn() -> None:
    world = world_of((0,))
    world.heartbeat(0, want_fence=True)
    world.advance(0)
    assert leaders(world) == {NO_LEADER}
    start = world.raft.log_end_offset
    world.heartbeat(0)
    assert changes_of(world, start) == [0], "first it is unfenced"
    world.controller.handle_time(world.now_ms)
    assert changes_of(world, start) == [0, SLICE]
    world.advance(0)
    assert leaders(world) == {0}
    assert max(changes_of(world, start)) == SLICE


def test_a_broker_that_left_again_gets_no_more_partitions() -> None:
    world = world_of((0,))
    world.heartbeat(0, want_fence=True)
    world.heartbeat(0)
    world.heartbeat(0, want_fence=True)
    world.advance(0)
    assert leaders(world) == {NO_LEADER}
    assert world.controller.next_deadline_ms() != 0, "nothing is left to be done"


def test_a_leaving_node_waits_until_others_have_read_the_last_slice() -> None:
    world = world_of((0, 1))
    assert not world.heartbeat(0, want_shut_down=True).should_shut_down
    behind = world.controller.committed_image.provenance.last_contained_offset
    world.advance(0)
    world.commit()
    assert leaders(world) == {1}
    world.heartbeat(1, current_metadata_offset=behind)
    assert not world.heartbeat(0, want_shut_down=True).should_shut_down
    world.heartbeat(1)
    assert world.heartbeat(0, want_shut_down=True).should_shut_down


def test_what_is_not_committed_yet_holds_the_next_slices_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "RECORDS_AHEAD", 2 * SLICE)
    world = world_of((0, 1))
    start = world.raft.log_end_offset
    fall_silent(world)
    world.advance(0)
    assert changes_of(world, start) == [0, SLICE, SLICE], "then followers must have their turn"
    assert world.controller.next_deadline_ms() is None
    while world.controller.next_deadline_ms() is None:
        world.commit()
        world.advance(0)
    assert leaders(world) == {1}
