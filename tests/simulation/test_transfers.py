"""Leadership is handed over in calm worlds: the target leads in the next epoch, as fast as messages and disks allow."""

import pytest

from tests.simulation.errors import InvariantBroken
from tests.simulation.mutants.catalogue import MUTANTS
from tests.simulation.transfers import CONDITIONS, Transfer, main, transfers_of

WORLDS = range(1, 25)
# Seeds on which it failed: the target was called back by an earlier word of its leader, or refused by voters which had
# not received EndQuorumEpoch yet.
FOUND_BY = {"departed_leader_is_followed_again": 9, "refusals_before_the_farewell_count": 20}


def test_every_transfer_leaves_the_target_leading_in_the_next_epoch() -> None:
    transfers = [transfer for seed in WORLDS for transfer in transfers_of(seed)]
    assert {transfer.condition for transfer in transfers} == set(CONDITIONS)
    assert len(transfers) > 5 * len(WORLDS)


@pytest.mark.slow
def test_and_in_three_hundred_worlds() -> None:
    transfers: list[Transfer] = [transfer for seed in range(100, 400) for transfer in transfers_of(seed)]
    assert all(transfer.without_leader_ms <= transfer.bound_ms for transfer in transfers)


@pytest.mark.parametrize(("mutant", "seed"), sorted(FOUND_BY.items()))
def test_a_world_that_found_a_fault_finds_it_again(mutant: str, seed: int) -> None:
    with MUTANTS[mutant].apply(), pytest.raises(InvariantBroken, match=f"seed {seed}: .* does not lead"):
        transfers_of(seed)
    assert transfers_of(seed)


def test_the_command_shows_how_long_there_was_no_leader(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "3", "--runs", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:14].strip() for line in lines if line.startswith("idle")] == ["idle"]
    assert "without a leader for" in lines[0]
