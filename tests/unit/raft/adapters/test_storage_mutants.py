"""The power cuts would notice: each planted bug is found by the same run in which the storage itself shows none."""

import logging

import pytest

from kquorum.storage import recovery_point
from kquorum.storage.errors import EnvironmentFault
from tests.support.raft.disk_checks import run_with_cuts
from tests.support.raft.log_history import SCRIPT
from tests.support.raft.storage_mutants import MUTANTS

SEEDS = range(1, 9)
# The seed to begin with, where the first ones find nothing.
FOUND_BY = {"snapshot_named_without_folder_flush": 8}


@pytest.fixture(autouse=True)
def quiet_and_exact(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(recovery_point, "WRITE_INTERVAL_S", 0.0)
    caplog.set_level(logging.CRITICAL)


@pytest.mark.parametrize("name", MUTANTS)
def test_the_planted_bug_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    for seed in sorted(SEEDS, key=lambda seed: seed != FOUND_BY.get(name)):
        try:
            run_with_cuts(SCRIPT, seed, cuts=1)
        except (AssertionError, EnvironmentFault) as error:
            print(f"seed {seed}: {type(error).__name__} {str(error)[:150]}")
            return
    pytest.fail("no run noticed it")
