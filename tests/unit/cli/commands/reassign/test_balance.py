"""The placement of `kquorum reassign plan`: even over brokers, racks and leaders, with few moves."""

import random
from collections import Counter
from collections.abc import Mapping

import pytest

from kquorum.cli.commands.reassign.balance import Assignment, Place, balanced


def replica_counts(assignment: Assignment, brokers: Mapping[int, str | None]) -> list[int]:
    found = Counter(broker for replicas in assignment.values() for broker in replicas)
    return [found[broker] for broker in brokers]


def leader_counts(assignment: Assignment, brokers: Mapping[int, str | None]) -> list[int]:
    found = Counter(replicas[0] for replicas in assignment.values())
    return [found[broker] for broker in brokers]


def arrivals(before: Assignment, after: Assignment) -> int:
    return sum(len(set(after[place]) - set(before[place])) for place in before)


def test_what_is_even_stays_as_it_is() -> None:
    current = {("t", index): (index % 3, (index + 1) % 3) for index in range(6)}
    assert balanced(current, {0: None, 1: None, 2: None}) == current


def test_a_new_broker_gets_its_share_and_nothing_else_moves() -> None:
    current = {("t", index): (index % 2,) for index in range(6)}
    planned = balanced(current, {0: None, 1: None, 2: None})
    assert replica_counts(planned, {0: None, 1: None, 2: None}) == [2, 2, 2]
    assert arrivals(current, planned) == 2


def test_a_broker_that_is_to_leave_keeps_nothing() -> None:
    current = {("t", index): (index % 3, (index + 1) % 3) for index in range(6)}
    planned = balanced(current, {0: None, 1: None})
    assert {each for replicas in planned.values() for each in replicas} == {0, 1}
    assert arrivals(current, planned) == 4


def test_leaders_are_levelled_by_order_alone() -> None:
    current: dict[Place, tuple[int, ...]] = {("t", index): (0, 1 + index % 2) for index in range(6)}
    racks = {0: None, 1: None, 2: None}
    planned = balanced(current, racks)
    assert leader_counts(planned, racks) == [2, 2, 2]


def test_leaderships_go_along_chains() -> None:
    """0 has too many and shares no partition with 2, which has none: one goes from 0 to 1, another from 1 to 2."""
    current: dict[Place, tuple[int, ...]] = {
        ("t", 0): (0, 1),
        ("t", 1): (0, 1),
        ("t", 2): (1, 2),
        ("t", 3): (2, 3),
        ("t", 4): (3, 0),
    }
    current |= {("u", index): (0, 3) if index else (3, 2) for index in range(2)}
    racks = {0: None, 1: None, 2: None, 3: None}
    counts = leader_counts(balanced(current, racks), racks)
    assert max(counts) - min(counts) <= 1


def test_a_replica_of_each_rack_stays_where_the_factor_falls() -> None:
    planned = balanced({("t", 0): (0, 1, 2)}, {0: "a", 1: "a", 2: "b"}, replication_factor=2)
    assert planned == {("t", 0): (0, 2)}


def test_a_higher_factor_adds_brokers_of_other_racks() -> None:
    planned = balanced({("t", 0): (0,)}, {0: "a", 1: "a", 2: "b"}, replication_factor=2)
    assert planned == {("t", 0): (0, 2)}


def test_too_few_brokers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"t-0 is to have 3 replicas, and there are 2 brokers"):
        balanced({("t", 0): (0,)}, {0: None, 1: None}, replication_factor=3)


@pytest.mark.parametrize("seed", range(40))
def test_any_cluster_is_spread_evenly(seed: int) -> None:
    chosen = random.Random(seed)
    brokers = range(chosen.randint(1, 9))
    has_racks = seed % 2 == 0
    racks = {broker: f"rack {chosen.randint(0, 3)}" if has_racks else None for broker in brokers}
    current: dict[Place, tuple[int, ...]] = {}
    for topic in range(chosen.randint(1, 6)):
        factor = chosen.randint(1, min(3, len(brokers)))
        for index in range(chosen.randint(1, 12)):
            # Two brokers are gone.
            current[f"t{topic}", index] = tuple(chosen.sample(range(len(brokers) + 2), factor))
    planned = balanced(current, racks)
    for place, replicas in planned.items():
        assert len(replicas) == len(set(replicas)) == len(current[place])
        assert set(replicas) <= set(brokers)
        known = {racks[each] if has_racks else str(each) for each in brokers}
        used = {racks[each] if has_racks else str(each) for each in replicas}
        assert len(used) == min(len(replicas), len(known))
    if not has_racks:
        counts = replica_counts(planned, racks)
        assert max(counts) - min(counts) <= 1
        for topic in {topic for topic, _ in planned}:
            of_topic = replica_counts(
                {place: each for place, each in planned.items() if place[0] == topic}, racks
            )
            assert max(of_topic) - min(of_topic) <= 1
    assert balanced(planned, racks) == planned
