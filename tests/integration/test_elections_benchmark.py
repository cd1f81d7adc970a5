"""The elections benchmark with real controllers, once each way."""

from pathlib import Path

import pytest
from rich.progress import Progress

from benchmarks import elections
from benchmarks._failover_losses import open_losses, read_losses
from benchmarks._failover_ways import WAYS


@pytest.mark.slow
def test_a_leader_is_lost_in_every_way_and_all_comes_back(tmp_path: Path) -> None:
    tight = elections.TIMEOUTS["tight"]
    plan = elections.Plan(timeouts=[tight], ways=list(WAYS), times=1, controllers=3)
    path = tmp_path / "losses.jsonl"
    with Progress(disable=True) as progress, open_losses(path) as losses:
        assert elections.measure(tmp_path / "nodes", plan, losses, progress) == []
    measured = read_losses(path)
    assert {loss.way for loss in measured} == set(WAYS)
    for loss in measured:
        assert loss.setting == plan.setting(tight, loss.way)
        assert loss.next_leader_id != loss.leader_id
        assert loss.epochs >= 1
        if loss.way in ("kill", "pause", "isolate"):
            # No voter may doubt a leader sooner; the last fetch that it answered may be half a timeout old.
            assert loss.to_commit_ms > tight.fetch_ms / 2
