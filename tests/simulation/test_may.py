"""A yes of `kquorum may` never leads to loss or unavailability, and each reason of a no has a world that shows why."""

from collections import Counter

import pytest

from tests.simulation.may import brokers, directed, quorums

FIRST_SEEDS = 50
CHUNKS = 10
SEEDS_PER_CHUNK = 100


def check_brokers(seeds: range) -> None:
    tally: Counter[str] = Counter()
    for seed in seeds:
        tally += brokers.simulate(seed)
    for each in ("yes: stop", "yes: restart", "no: below min.insync", "no: has replicas"):
        assert tally[each] >= len(seeds) // 10, tally


def check_quorums(seeds: range) -> None:
    tally: Counter[str] = Counter()
    for seed in seeds:
        tally += quorums.simulate(seed)
    for each in ("yes: stop", "yes: restart", "yes: format", "yes: remove", "no: majority"):
        assert tally[each] >= len(seeds) // 10, tally


def test_a_yes_does_no_harm_in_some_worlds_of_brokers() -> None:
    check_brokers(range(1, 1 + FIRST_SEEDS))


def test_a_yes_does_no_harm_in_some_worlds_of_voters() -> None:
    check_quorums(range(1, 1 + FIRST_SEEDS))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_yes_does_no_harm_in_two_thousand_worlds(chunk: int) -> None:
    seeds = range(1 + chunk * SEEDS_PER_CHUNK, 1 + (chunk + 1) * SEEDS_PER_CHUNK)
    check_brokers(seeds)
    check_quorums(seeds)


@pytest.mark.parametrize(
    "story", directed.BROKER_STORIES, ids=lambda story: f"{story.why}-{story.wish.action}"
)
def test_a_no_about_a_broker_has_a_world_that_shows_why(story: directed.BrokerStory) -> None:
    print(directed.tell_brokers(story))


@pytest.mark.parametrize(
    "story", directed.QUORUM_STORIES, ids=lambda story: f"{story.why}-{story.asked.action}"
)
def test_a_no_about_a_voter_has_a_world_that_shows_why(story: directed.QuorumStory) -> None:
    print(directed.tell_quorum(story))
