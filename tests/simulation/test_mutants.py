"""Mutants of the protocol: each takes one safeguard away, and the simulation notices; `make mutants` hunts wider."""

from itertools import islice
from pathlib import Path

import pytest

from tests.simulation.directed.schedules import SCHEDULES, ScheduleFailed
from tests.simulation.mutants.catalogue import MUTANTS
from tests.simulation.mutants.hunt import catch_by_chance, catch_by_schedule, core_passes, seeds_for

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mutants.md"
# Mutants that a swarm worth its name finds among so many worlds.
RUNS = 40
EASY = (
    "acknowledge_before_flush",
    "count_any_fetch_position",
    "damaged_replica_stands",
    "deadline_in_the_past",
    "follower_without_space_writes",
    "high_watermark_beyond_the_log",
    "leader_counts_unflushed",
    "minority_commits",
    "observer_campaigns",
    "refusals_count_as_votes",
    "skip_truncation",
    "snapshot_of_uncommitted_state",
    "vote_for_anybody",
    "vote_twice",
    "vote_without_persisting",
)


def test_there_are_as_many_mutants_as_were_asked_for() -> None:
    assert len(MUTANTS) >= 80
    assert len({mutant.safeguard for mutant in MUTANTS.values()}) == len(MUTANTS)
    assert {mutant.schedule for mutant in MUTANTS.values()} <= set(SCHEDULES)


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_the_core_keeps_what_a_schedule_asks(name: str) -> None:
    SCHEDULES[name].run()


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_its_schedule_catches_the_mutant(name: str) -> None:
    catch = catch_by_schedule(name)
    assert catch is not None, f"{name} survived: {MUTANTS[name].safeguard}"


@pytest.mark.parametrize("name", EASY)
def test_chance_catches_the_mutant_and_spares_the_core(name: str) -> None:
    catch = catch_by_chance(name, first=1, runs=RUNS)
    assert catch is not None, f"{name} survived: {MUTANTS[name].safeguard}"
    for seed in islice(seeds_for(name, 1), catch.runs):
        assert core_passes(seed), f"the core fails on seed {seed} without a mutant"


def test_a_failed_schedule_says_how_to_replay_it() -> None:
    with MUTANTS["minority_commits"].apply(), pytest.raises(ScheduleFailed) as caught:
        SCHEDULES["two_of_five"].run()
    assert "python -m tests.simulation.directed two_of_five" in str(caught.value)


@pytest.mark.parametrize("name", [*sorted(MUTANTS), *sorted(SCHEDULES)])
def test_the_page_tells_of_all(name: str) -> None:
    assert f"`{name}`" in PAGE.read_text()
