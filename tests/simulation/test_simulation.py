"""Seeds in bulk, one seed twice, and planted bugs that must be caught."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.mutants import MUTANTS
from tests.simulation.run import SimulationFailed, simulate

CHUNKS = 20
SEEDS_PER_CHUNK = 25
ROOT = Path(__file__).resolve().parents[2]
# Two mutants need a story longer than chance tells within a test run; deterministic tests of the rule hold them
# (tests/unit/raft/test_replication.py), and `make test-all` looks for them with more seeds.
RARE = {"commit_older_epochs_by_counting", "leader_counts_unflushed"}


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_seed_holds_the_invariants(chunk: int) -> None:
    acknowledged = 0
    for seed in range(chunk * SEEDS_PER_CHUNK, (chunk + 1) * SEEDS_PER_CHUNK):
        acknowledged += simulate(seed).acknowledged
    assert acknowledged > SEEDS_PER_CHUNK


@pytest.mark.parametrize("name", sorted(set(MUTANTS) - RARE))
def test_a_planted_bug_is_caught(name: str) -> None:
    def run_seeds() -> None:
        for seed in range(1, 60):
            simulate(seed)

    with MUTANTS[name](), pytest.raises(SimulationFailed) as caught:
        run_seeds()
    assert "python -m tests.simulation --seed" in str(caught.value)


def test_a_seed_tells_the_same_story_whatever_the_hash_seed() -> None:
    stories = []
    for hash_seed in ("1", "2"):
        command = [sys.executable, "-m", "tests.simulation", "--seed", "7", "--trace"]
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        stories.append(run.stdout)
    assert stories[0] == stories[1]
    assert "leader in epoch" in stories[0]
