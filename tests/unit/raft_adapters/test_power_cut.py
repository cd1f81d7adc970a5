"""Whenever the power goes, and whatever the disk then holds: nothing that was promised is lost, nothing is invented."""

import logging
import os
import shutil
from pathlib import Path
from random import Random

import pytest

from raft.adapters import recovery_point
from raft.adapters.file_log import FileLog
from tests.unit.raft_adapters.log_history import LIMITS, History, State, check_survivor
from tests.unit.raft_adapters.recorded_disk import RecordedDisk

CUTS = 4


@pytest.fixture(autouse=True)
def fast_disk(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The real disk's flushes prove nothing here, as the recorded one decides what is left."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    monkeypatch.setattr(os, "fdatasync", lambda _descriptor: None)
    monkeypatch.setattr(recovery_point, "WRITE_INTERVAL_S", 0.0)
    caplog.set_level(logging.ERROR)


@pytest.mark.parametrize("seed", range(4, 9))
def test_a_power_cut_at_any_event_loses_nothing_promised(tmp_path: Path, seed: int) -> None:
    run_with_cuts(tmp_path, seed, steps=30)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_a_power_cut_at_any_event_of_many_histories(tmp_path: Path, seed: int) -> None:
    run_with_cuts(tmp_path, seed, steps=80)


def run_with_cuts(tmp_path: Path, seed: int, steps: int) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    disk = RecordedDisk(folder)
    history = History(folder, Random(seed))
    dice = Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        disk.install(patch)
        history.open()
        for step in range(steps):
            first, promised, possible = len(disk.events), history.promised, list(history.possible)
            history.step()
            for _ in range(CUTS):
                count = dice.randint(first, len(disk.events))
                target = tmp_path / f"after-{step}-{count}"
                disk.after_power_cut(count, dice, target)
                check_left(target, promised, [*possible, *history.made])
        history.log.close()


def check_left(folder: Path, promised: State, possible: list[State]) -> None:
    """Open what is left, twice, as the first time changes it; it goes only if all is well, to be looked at if not."""
    for _ in range(2):
        survivor = FileLog(folder, LIMITS, 0, on_damage="report")
        assert survivor.damage is None, survivor.damage
        check_survivor(survivor, promised, possible)
        survivor.close()
    shutil.rmtree(folder)
