"""Worlds of brokers that replicate partitions; and brokers that lack a safeguard, which these worlds notice."""

import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.simulation.partitions.mutants import CAUGHT_IN, MUTANTS, catch, mutated
from tests.simulation.partitions.world import PartitionsFailed, simulate

PAGE = Path(__file__).resolve().parents[2] / "docs" / "data-replication.md"
FIRST_SEEDS = 25
CHUNKS = 10
SEEDS_PER_CHUNK = 50


_PARTITION = "tests/unit/broker/replica/test_partition.py"
_QUEUE = "tests/unit/broker/replica/test_alter_partitions.py"
CAUGHT_BY: Mapping[str, str] = {
    "answers_fetches_of_other_epochs": f"{_PARTITION}::test_the_epoch_is_judged_before_the_leadership",
    "believes_late_answers": (
        f"{_PARTITION}::test_a_newer_registration_settles_what_is_pending_and_the_late_answer_is_ignored"
    ),
    "expands_before_the_leaders_epoch": (
        f"{_PARTITION}::test_a_follower_joins_only_when_it_has_reached_this_leaders_epoch"
    ),
    "forgets_a_change_whose_answer_is_lost": f"{_QUEUE}::test_a_request_without_answer_is_sent_again",
    "keeps_progress_over_epochs": f"{_PARTITION}::test_followers_of_a_new_leader_are_unknown",
    "rolls_back_what_may_have_been_made": (
        f"{_PARTITION}::test_a_leader_with_old_metadata_keeps_its_change_pending_and_waits"
    ),
    "rolls_back_when_no_answer_comes": f"{_QUEUE}::test_a_request_without_answer_is_sent_again",
    "takes_fetches_from_before_a_restart": f"{_PARTITION}::test_a_fetch_from_before_a_restart_is_fenced",
}
"""The unit test that catches each bug that worlds seldom meet."""
_UNDER_A_BUG = """
import sys, pytest
from tests.simulation.partitions.mutants import mutated
with mutated(sys.argv[1]):
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", sys.argv[2]]))
"""


def check(seeds: range) -> None:
    tally: Counter[str] = Counter()
    for seed in seeds:
        tally += simulate(seed).tally
    for each in ("batches acknowledged", "elections", "truncations", "ISR changes", "kills", "reads"):
        assert tally[each] > len(seeds), each


def test_some_worlds_of_partitions_hold_the_invariants() -> None:
    check(range(1, 1 + FIRST_SEEDS))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_worlds_of_partitions_hold_the_invariants(chunk: int) -> None:
    check(range(1 + chunk * SEEDS_PER_CHUNK, 1 + (chunk + 1) * SEEDS_PER_CHUNK))


def test_there_are_as_many_planted_bugs_as_were_asked_for() -> None:
    assert len(CAUGHT_IN) >= 15
    assert {*CAUGHT_IN, *CAUGHT_BY} == set(MUTANTS)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CAUGHT_BY))
def test_a_unit_test_catches_a_planted_bug(name: str) -> None:
    """In a process of its own, as the bug is in the product's modules."""
    done = subprocess.run(
        [sys.executable, "-c", _UNDER_A_BUG, name, CAUGHT_BY[name]],
        cwd=PAGE.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, f"{done.stdout}{done.stderr}"


@pytest.mark.parametrize("name", sorted(CAUGHT_IN))
def test_a_world_catches_a_planted_bug(name: str) -> None:
    seed = CAUGHT_IN[name]
    assert catch(name, seed, 1) is not None, f"{name} survived seed {seed}"


def test_worlds_that_catch_planted_bugs_hold_without_them() -> None:
    for seed in sorted(set(CAUGHT_IN.values())):
        simulate(seed)


def test_a_failure_says_how_to_replay_it() -> None:
    name = "acknowledges_before_the_followers"
    with mutated(name), pytest.raises(PartitionsFailed) as failure:
        simulate(CAUGHT_IN[name])
    assert f"python -m tests.simulation.partitions --seed {CAUGHT_IN[name]} --trace" in str(failure.value)


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_the_page_tells_of_each_planted_bug(name: str) -> None:
    assert row_of(name) in PAGE.read_text()


def row_of(name: str) -> str:
    by = f"world {CAUGHT_IN[name]}" if name in CAUGHT_IN else f"`{CAUGHT_BY[name].split('::')[1]}`"
    return f"| `{name}` | {MUTANTS[name].__doc__} | {by} |"
