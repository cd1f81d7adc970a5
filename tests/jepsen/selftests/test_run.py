"""A short run of the real thing, and the same history with a lie in it."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from rich.console import Console

from kquorum.cli.processes import wait_until
from tests.jepsen.checkers.set_lives import CREATE, DELETE, LIST
from tests.jepsen.checkers.verdicts import EXIT_STATUS, VALID_KEY, Results, Verdict, as_json
from tests.jepsen.core.history import History, Op, OpType, read_history, write_history
from tests.jepsen.core.judging import judge_stored
from tests.jepsen.core.run import Options, run
from tests.jepsen.core.store import HISTORY_FILE, LATEST, RESULTS_FILE
from tests.jepsen.net import namespaces

pytestmark = pytest.mark.jepsen

ROOT = Path(__file__).resolve().parents[3]
ISOLATE_LEADER = "isolate-leader"
OPTIONS = Options(nemesis=ISOLATE_LEADER, time_s=15.0, quiet_s=3.0, fault_s=8.0, op_timeout_s=4.0, seed=20)


@dataclass(frozen=True)
class Stored:
    folder: Path
    history: History
    results: Results


@pytest.fixture(scope="session")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """One run for all tests, also when pytest has several workers: the first one runs it, the others wait for it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    store = shared / "jepsen-store"
    with (shared / "jepsen.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not store.exists():
            run(OPTIONS, store, Console())
    folder = (store / LATEST).resolve()
    return Stored(folder, read_history(folder / HISTORY_FILE), judge_stored(folder))


@pytest.fixture
def copy(outcome: Stored, tmp_path: Path) -> Path:
    """The run's folder, to be tampered with."""
    return shutil.copytree(outcome.folder, tmp_path / "run", symlinks=True)


def test_a_run_with_an_isolated_leader_is_valid(outcome: Stored) -> None:
    assert outcome.results[VALID_KEY] is Verdict.VALID, outcome.results
    assert outcome.results["set"]["acknowledged_count"] > 50
    assert outcome.results["set"]["brokers_without_final_read"] == []


def test_the_leader_was_isolated_and_another_took_over(outcome: Stored) -> None:
    (fault,) = outcome.results["availability"]["faults"]
    assert fault["f"] == ISOLATE_LEADER
    before, after = fault["value"], outcome.history.operations(client=False)[-1].value
    assert after["epoch"] > before["epoch"]
    # While there was no leader, brokers went on to answer reads.
    assert fault["longest_without_write_ms"] > outcome.results["availability"]["longest_without_read_ms"]


def test_everything_is_in_the_store(outcome: Stored) -> None:
    assert (outcome.folder.parent / LATEST).resolve() == outcome.folder.resolve()
    results = json.loads((outcome.folder / RESULTS_FILE).read_text())
    assert results["set"] == as_json(outcome.results["set"])
    assert max(results["network"]["counters"].values()) > 10_000
    assert len(list(outcome.folder.glob("nodes/*/output.log"))) == OPTIONS.nodes + OPTIONS.brokers


def test_nothing_is_left_running(outcome: Stored) -> None:
    assert processes_of(outcome.folder) == []
    assert namespaces_of(os.getpid()) == []


def without(history: History, element: int) -> Iterator[Op]:
    """The history as if no read had ever shown the element."""
    for op in history:
        if op.f == LIST and op.type is OpType.OK:
            yield replace(op, value=[value for value in op.value if value != element])
        else:
            yield op


def an_acknowledged_create(history: History) -> int:
    asked_to_delete = {op.value for op in history if op.f == DELETE}
    kept = [op.value for op in history if op.f == CREATE and op.type is OpType.OK]
    return int(next(element for element in kept if element not in asked_to_delete))


def test_a_history_that_lost_an_acknowledged_create_is_invalid(outcome: Stored, copy: Path) -> None:
    element = an_acknowledged_create(outcome.history)
    write_history(History(without(outcome.history, element)), copy / HISTORY_FILE)
    results = judge_stored(copy)
    assert results[VALID_KEY] is Verdict.INVALID
    assert [each["element"] for each in results["set"]["lost"]] == [element]
    assert judged_by_command(copy) == EXIT_STATUS[Verdict.INVALID]


def test_a_topic_that_was_not_requested_is_invalid(outcome: Stored, copy: Path) -> None:
    element = an_acknowledged_create(outcome.history)
    rest = [op for op in outcome.history if not (op.f == CREATE and op.value == element)]
    write_history(History(rest), copy / HISTORY_FILE)
    results = judge_stored(copy)
    assert results[VALID_KEY] is Verdict.INVALID
    assert [each["element"] for each in results["set"]["unexpected"]] == [element]


def test_a_history_cut_off_before_the_final_reads_is_unknown(outcome: Stored, copy: Path) -> None:
    write_history(History(op for op in outcome.history if not op.final), copy / HISTORY_FILE)
    results = judge_stored(copy)
    assert results["set"][VALID_KEY] is Verdict.UNKNOWN
    assert judged_by_command(copy) != EXIT_STATUS[Verdict.VALID]


def test_the_command_judges_a_stored_run(outcome: Stored) -> None:
    assert judged_by_command(outcome.folder) == EXIT_STATUS[Verdict.VALID]


def test_no_history_is_no_verdict(tmp_path: Path) -> None:
    assert judged_by_command(tmp_path) == EXIT_STATUS[Verdict.UNKNOWN]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "moment"),
    [(signal.SIGINT, "nodes,"), (signal.SIGTERM, "nemesis: isolate-leader leader")],
)
def test_an_interrupted_run_leaves_nothing_behind(
    tmp_path: Path, number: signal.Signals, moment: str
) -> None:
    """While the nodes start, and in the middle of a fault."""
    said = tmp_path / "said"
    with said.open("w") as output:
        process = subprocess.Popen(
            [*command(), "--time", "60", "--quiet", "0.5", "--store", str(tmp_path)],
            env=environment(),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        assert wait_until(lambda: moment in said.read_text() and len(processes_of(tmp_path)) >= 3, 60)
        process.send_signal(number)
        process.wait(60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 128 + number, said.read_text()
    assert "nothing is left running" in said.read_text()
    assert "Traceback" not in said.read_text()
    # A node whose start was interrupted half-way has no keeper; it dies with its parent, a moment later.
    assert wait_until(lambda: processes_of(tmp_path) == [], 40)
    assert namespaces_of(process.pid) == []


def command() -> list[str]:
    return [sys.executable, "-m", "tests.jepsen"]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def judged_by_command(folder: Path) -> int:
    done = subprocess.run(
        [*command(), "--judge", str(folder)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stdout + done.stderr
    return done.returncode


def processes_of(folder: Path) -> list[str]:
    """Nodes whose config is in the folder, by what Linux tells of their command lines."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "start" in words and any(str(folder.absolute()) in word for word in words):
            found.append(" ".join(words))
    return found


def namespaces_of(pid: int) -> list[str]:
    folder = Path("/run/netns")
    return [path.name for path in folder.glob(f"{namespaces.PREFIX}-{pid}-*")] if folder.is_dir() else []
