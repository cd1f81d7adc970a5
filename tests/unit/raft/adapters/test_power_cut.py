"""Whenever the power goes, and whatever the disk then holds: nothing that was promised is lost, nothing is invented.

At every write, flush, cut, rename and removal of a history of all that a node keeps: appends, new segments,
truncations, votes, snapshots written and received, a later start of the log, damage set aside and repaired.
"""

import logging
from random import Random

import pytest

from kquorum.storage import recovery_point
from tests.support.raft.disk_checks import run_with_cuts
from tests.support.raft.log_history import SCRIPT


@pytest.fixture(autouse=True)
def quiet_and_exact(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The recovery point is written after each flush: every one of them may be the last."""
    monkeypatch.setattr(recovery_point, "WRITE_INTERVAL_S", 0.0)
    caplog.set_level(logging.ERROR)


def test_a_power_cut_at_every_change_of_the_script_loses_nothing_promised() -> None:
    assert run_with_cuts(SCRIPT, 1, cuts=1) > 400


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_many_power_cuts_at_every_change_of_random_histories(seed: int) -> None:
    random_source = Random(seed)
    steps = [*sorted(set(SCRIPT)), "append", "append", "append", "flush", "flush"]
    script = SCRIPT if seed == 0 else tuple(random_source.choices(steps, k=60))
    run_with_cuts(script, seed, cuts=6)
