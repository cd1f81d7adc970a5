"""Which links the ways to part a cluster cut."""

from collections.abc import Iterable
from random import Random

import pytest

from tests.jepsen.net.network import Link, bridge, halves, isolation, majorities_ring, one_way, split

FIVE = (1, 2, 3, 4, 5)


def hears(nodes: Iterable[int], links: Iterable[Link]) -> dict[int, set[int]]:
    """Whom each node still hears, itself included."""
    cut = set(links)
    return {node: {other for other in nodes if (other, node) not in cut} for node in nodes}


def test_isolation_cuts_one_off_and_leaves_the_others_together() -> None:
    assert hears((1, 2, 3), isolation(2, (1, 2, 3))) == {1: {1, 3}, 2: {2}, 3: {1, 3}}


def test_one_way_makes_a_node_deaf_or_dumb() -> None:
    nodes = (1, 2, 3)
    assert hears(nodes, one_way(2, nodes, "inbound")) == {1: {1, 2, 3}, 2: {2}, 3: {1, 2, 3}}
    assert hears(nodes, one_way(2, nodes, "outbound")) == {1: {1, 3}, 2: {1, 2, 3}, 3: {1, 3}}


def test_split_parts_groups_both_ways_and_nodes_of_no_group_hear_all() -> None:
    assert hears(FIVE, split([[1], [2, 3], [4]])) == {
        1: {1, 5},
        2: {2, 3, 5},
        3: {2, 3, 5},
        4: {4, 5},
        5: {1, 2, 3, 4, 5},
    }


def test_split_parts_groups_of_the_same_members_from_no_group() -> None:
    assert split([[1, 2]]) == []
    assert split([[], [1, 2]]) == []


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8])
def test_halves_hold_every_node_once_and_the_second_half_the_majority(count: int, seed: int) -> None:
    nodes = range(1, count + 1)
    smaller, larger = halves(nodes, Random(seed))
    assert sorted(smaller + larger) == list(nodes)
    assert len(larger) - len(smaller) == count % 2


def test_halves_are_not_always_the_same() -> None:
    assert len({tuple(sorted(halves(FIVE, Random(seed))[0])) for seed in range(50)}) > 5


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [3, 4, 5])
def test_a_bridge_has_one_node_that_hears_all_and_two_halves_that_hear_only_it_and_their_own(
    count: int, seed: int
) -> None:
    nodes = range(1, count + 1)
    links = bridge(nodes, Random(seed))
    heard = hears(nodes, links)
    (joining,) = [node for node in nodes if len(heard[node]) == count]
    sides = {frozenset(heard[node] - {joining}) for node in nodes if node != joining}
    assert len(sides) == 2
    assert frozenset.intersection(*sides) == frozenset()
    assert {(target, source) for source, target in links} == set(links)


@pytest.mark.parametrize("count", [3, 4, 5])
def test_in_a_ring_of_majorities_each_hears_one_and_no_two_the_same(count: int) -> None:
    nodes = range(1, count + 1)
    heard = hears(nodes, majorities_ring(nodes))
    assert all(node in heard[node] and len(heard[node]) == count // 2 + 1 for node in nodes)
    assert len({frozenset(each) for each in heard.values()}) == count


def test_five_in_a_ring_hear_both_neighbours_and_three_the_one_before() -> None:
    assert hears(FIVE, majorities_ring((1, 3, 5, 2, 4)))[5] == {3, 5, 2}
    assert hears((1, 2, 3), majorities_ring((1, 2, 3))) == {1: {3, 1}, 2: {1, 2}, 3: {2, 3}}
