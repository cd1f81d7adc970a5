"""A failing seed is made small, and the command that is printed replays it."""

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from kquorum.raft import elections
from kquorum.raft.replica import Replica
from tests.simulation.run import SimulationFailed, plan_of, simulate
from tests.simulation.shrink import kind_of, shrink, story_of


@pytest.fixture
def vote_for_anybody() -> Iterator[None]:
    """A planted bug: the candidate's log is not compared with the voter's (Raft §5.4.1 left out)."""

    def lax(replica: Replica, last_epoch: int, last_offset: int) -> bool:
        return True

    with patch.object(elections, "is_up_to_date", lax):
        yield


def first_failure(seeds: range) -> SimulationFailed:
    for seed in seeds:
        try:
            simulate(seed)
        except SimulationFailed as failure:
            return failure
    raise AssertionError("no seed fails")


@pytest.mark.usefixtures("vote_for_anybody")
def test_a_failing_seed_is_shrunk_to_fewer_actions_that_fail_alike() -> None:
    failure = first_failure(range(1, 60))
    small = shrink(failure.seed)
    _, schedule = plan_of(failure.seed)
    assert kind_of(small) == kind_of(failure)
    assert small.trim.keep is not None
    assert len(small.trim.keep) < len(schedule)
    with pytest.raises(SimulationFailed) as again:
        simulate(failure.seed, trim=small.trim)
    assert again.value.trace == small.trace
    command = f"python -m tests.simulation --seed {failure.seed}{small.trim.arguments()} --trace"
    assert command in str(small)
    assert story_of(failure.seed, small.trim).count("\n") == len(small.trim.keep) + 1


def test_a_seed_that_holds_cannot_be_shrunk() -> None:
    with pytest.raises(ValueError, match="does not fail"):
        shrink(1)


def test_failures_are_alike_when_only_numbers_differ() -> None:
    failures = [
        SimulationFailed(1, AssertionError("nodes 1 and 2 both lead epoch 7"), []),
        SimulationFailed(2, AssertionError("nodes 3 and 10 both lead epoch 12"), []),
        SimulationFailed(3, AssertionError("node 1 voted for 2 and 3 in epoch 12"), []),
    ]
    kinds = [kind_of(failure) for failure in failures]
    assert kinds[0] == kinds[1] != kinds[2]
