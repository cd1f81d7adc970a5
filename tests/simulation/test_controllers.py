"""Worlds of real controllers and brokers; and controllers that lack a safeguard, which these worlds notice."""

import pytest

from tests.simulation.controllers.directed import leads_before_it_has_replayed
from tests.simulation.controllers.mutants import MUTANTS, catch, mutated
from tests.simulation.errors import InvariantBroken
from tests.simulation.run import SimulationFailed, plan_of, simulate
from tests.simulation.runner import run_chunk

FIRST_SEEDS = 8
CHUNKS = 20
SEEDS_PER_CHUNK = 20
# In which world each is caught, so that `make test` need not look for one.
CAUGHT_IN = {
    "answers_before_commit": 1,
    "fences_without_moving_leaders": 1,
    "gives_no_session_at_failover": 1,
    "hash_keeps_deleted_topics": 1,
    "decides_before_it_has_replayed": 8,
    "answers_done_when_deposed": 11,
    "keeps_uncommitted_decisions": 11,
}


def check(seeds: range) -> None:
    totals = run_chunk(seeds, "controllers")
    assert not totals.failures, totals.failures[0][1]
    assert totals.tally["activations"] > len(seeds)
    assert totals.tally["registrations"] > 2 * len(seeds)
    assert totals.tally["changes done"] > 2 * len(seeds)


def test_some_worlds_of_controllers_hold_the_invariants() -> None:
    check(range(1, 1 + FIRST_SEEDS))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_worlds_of_controllers_hold_the_invariants(chunk: int) -> None:
    check(range(1 + chunk * SEEDS_PER_CHUNK, 1 + (chunk + 1) * SEEDS_PER_CHUNK))


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_mutant_is_caught_where_the_controller_is_not(name: str) -> None:
    seed = CAUGHT_IN[name]
    assert catch(name, seed, 1) is not None, f"{name} survived seed {seed}"


def test_a_controller_decides_nothing_before_it_has_replayed_all() -> None:
    leads_before_it_has_replayed()
    with mutated("decides_before_it_has_replayed"), pytest.raises(InvariantBroken, match="does not know it"):
        leads_before_it_has_replayed()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_mutant_is_found_by_chance(name: str) -> None:
    assert catch(name, 1001, 150) is not None, f"{name} survived"


def test_worlds_that_catch_mutants_hold_without() -> None:
    for seed in sorted(set(CAUGHT_IN.values())):
        simulate(seed, profile="controllers")


def test_a_failure_says_how_to_replay_it() -> None:
    name = "answers_before_commit"
    with mutated(name), pytest.raises(SimulationFailed) as failure:
        simulate(CAUGHT_IN[name], profile="controllers")
    assert f"python -m tests.simulation --seed {CAUGHT_IN[name]} --controllers --trace" in str(failure.value)


def test_every_seed_has_brokers() -> None:
    worlds = [plan_of(seed, "controllers")[0] for seed in range(1, 50)]
    assert min(world.observers for world in worlds) >= 3
    assert {world.quorum for world in worlds} == {"static", "dynamic", "upgraded"}
