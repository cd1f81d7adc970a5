"""The elections benchmark with real controllers, once each way."""

from pathlib import Path

import pytest
from rich.progress import Progress

from benchmarks import elections


@pytest.mark.slow
def test_a_leader_is_lost_in_every_way_and_all_comes_back(tmp_path: Path) -> None:
    with Progress(disable=True) as progress:
        tight = [elections.TIMEOUTS["tight"]]
        rows, skipped = elections.measure(tmp_path, tight, elections.WAYS, times=1, progress=progress)
    assert [row["way"] for row in rows] == list(elections.WAYS)
    assert skipped == []
    for row in rows:
        assert row["times"] == 1
        assert isinstance(row["epochs_max"], int)
        assert row["epochs_max"] >= 1
