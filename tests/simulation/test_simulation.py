"""Seeds in bulk, and some seeds twice."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.run import plan_of
from tests.simulation.runner import run_chunk

CHUNKS = 80
# The others take minutes of both cores; they are in `make test-all`.
QUICK_CHUNKS = 10
SEEDS_PER_CHUNK = 25
ROOT = Path(__file__).resolve().parents[2]
SEEDS_TOLD_TWICE = range(1, 15)
TELL = """
from tests.simulation.run import simulate
for seed in range({}, {}):
    print(*simulate(seed, is_traced=True).trace, sep="\\n")
"""


@pytest.mark.parametrize(
    "chunk",
    [
        *range(QUICK_CHUNKS),
        *(pytest.param(chunk, marks=pytest.mark.slow) for chunk in range(QUICK_CHUNKS, CHUNKS)),
    ],
)
def test_every_seed_holds_the_invariants(chunk: int) -> None:
    totals = run_chunk(range(chunk * SEEDS_PER_CHUNK, (chunk + 1) * SEEDS_PER_CHUNK))
    assert not totals.failures, totals.failures[0][1]
    assert totals.acknowledged > 10 * SEEDS_PER_CHUNK
    assert totals.tally["linearizable reads"] > SEEDS_PER_CHUNK


def test_a_seed_gives_the_same_run_whatever_the_hash_seed() -> None:
    code = TELL.format(SEEDS_TOLD_TWICE.start, SEEDS_TOLD_TWICE.stop)
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "2")
    ]
    outputs = [run.communicate()[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert outputs[0] == outputs[1]
    assert "leader in epoch" in outputs[0]


def test_the_seeds_run_twice_are_of_every_kind() -> None:
    worlds = [plan_of(seed)[0] for seed in SEEDS_TOLD_TWICE]
    assert {world.quorum for world in worlds} == {"static", "dynamic", "upgraded"}
    assert {world.uses_wire for world in worlds} == {True, False}
    assert {world.shares_turns for world in worlds} == {True, False}
