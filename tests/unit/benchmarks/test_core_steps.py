"""The benchmark of the core at a tiny size: it measures what it says, whatever time that takes."""

import json
import sys
from typing import Any

import pytest

from benchmarks import core_steps
from benchmarks._core_quorum import BareQuorum, CoreQuorum
from benchmarks._core_sides import VALUE, FollowerAlone, LeaderAlone, Size

TINY = Size(rounds=3, repeats=2)
NUMBERS = (int, float)


@pytest.mark.parametrize("voters", core_steps.VOTERS)
def test_the_bare_quorum_passes_exactly_the_messages_of_the_core(voters: int) -> None:
    core, bare = CoreQuorum(voters), BareQuorum(voters, (VALUE,))
    steps = []
    for quorum in (core, bare):
        before = quorum.pump.steps
        quorum.rounds(5, (VALUE,))
        steps.append(quorum.pump.steps - before)
    followers = voters - 1
    # A round: the leader's flush; each follower's batch, flush and high watermark; two Fetches of each.
    assert steps == [5 * (1 + 5 * followers)] * 2


def test_every_round_commits_its_batch_at_every_replica() -> None:
    quorum = CoreQuorum(3)
    before = quorum.leader.high_watermark
    quorum.rounds(4, (VALUE,) * 10)
    assert [node.high_watermark for node in quorum.nodes.values()] == [before + 40] * 3


def test_one_side_alone_does_what_it_does_among_others() -> None:
    leader, follower = LeaderAlone(5, TINY), FollowerAlone(TINY)
    before = leader.node.high_watermark, follower.node.log_end_offset
    started_ms = leader.now_ms, follower.now_ms
    for side in (leader, follower):
        side.run_core()
        side.run_core()
        side.run_bare()
    assert leader.node.high_watermark == before[0] + 2 * TINY.rounds
    assert follower.node.log_end_offset == before[1] + 2 * TINY.rounds
    # Time passes slowly enough for everyone to keep its role, however long the scripts are.
    assert leader.now_ms - started_ms[0] == follower.now_ms - started_ms[1] == 2 * TINY.milliseconds
    assert leader.node.role == "leader"
    assert follower.node.role == "follower"


def test_it_measures_every_row() -> None:
    tables = core_steps.measure(TINY, with_profile=True)
    steps, batches, profile = tables.values()
    assert [row["replica"] for row in steps] == ["leader of 3", "leader of 5", "follower"]
    sizes = [(row["voters"], row["records"]) for row in batches]
    assert sizes == [(voters, records) for voters in (3, 5) for records in (1, 10, 100)]
    figures = [value for row in [*steps, *batches] for key, value in row.items() if key != "replica"]
    assert all(isinstance(value, NUMBERS) and value > 0 for value in figures)
    assert any("raft/node.py" in str(row["function"]) for row in profile)


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What it prints at tiny size."""
    monkeypatch.setattr(core_steps, "FAST_ROUNDS", TINY.rounds)
    monkeypatch.setattr(core_steps, "FAST_REPEATS", TINY.repeats)
    monkeypatch.setattr(sys, "argv", ["core_steps", "--fast", *arguments])
    core_steps.main()
    return capsys.readouterr().out


def test_it_prints_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    result: dict[str, Any] = json.loads(run(monkeypatch, capsys, "--json"))
    assert result["benchmark"] == "core_steps"
    assert result["settings"] == {"rounds": TINY.rounds, "repeats": TINY.repeats}
    assert {"processor", "cores", "python", "load"} <= set(result["hardware"])
    assert [len(rows) for rows in result["results"].values()] == [3, 6]


def test_it_prints_tables(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    printed = run(monkeypatch, capsys)
    assert "leader of 5" in printed
    assert "times the limit" in printed
