"""The store: folders that no two runs share, `latest`, and runs that are read back, whatever state they are in."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.jepsen.checkers.verdicts import VALID_KEY, Verdict
from tests.jepsen.core.history import History, Op, OpType, read_history
from tests.jepsen.core.store import LATEST, RESULTS_FILE, TEST_FILE, RunFolder, runs


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """All runs start in one millisecond."""
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000_999_000_000)


@pytest.mark.usefixtures("frozen")
def test_runs_that_start_in_one_millisecond_have_folders_of_their_own(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda _: RunFolder(tmp_path, "w").path, range(40)))
    assert len(set(paths)) == 40
    assert sorted(path.name for path in paths)[:2] == ["20231114T221320.999Z", "20231114T221321.000Z"]
    assert (tmp_path / LATEST).resolve() in paths


@pytest.mark.usefixtures("frozen")
def test_two_workloads_may_start_in_one_millisecond(tmp_path: Path) -> None:
    first, second = RunFolder(tmp_path, "a"), RunFolder(tmp_path, "b")
    assert (tmp_path / "a" / LATEST).resolve() == first.path.resolve()
    assert (tmp_path / "b" / LATEST).resolve() == second.path.resolve()
    assert (tmp_path / LATEST).resolve() == second.path.resolve()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_store_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("")
    with pytest.raises(OSError):  # noqa: PT011 - which one differs between systems
        RunFolder(tmp_path / "store", "w")


def test_a_run_is_read_back(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "w")
    history = History([Op(type=OpType.INVOKE, f="read", process=0)])
    folder.write_test({"seed": 5})
    folder.write_history(history)
    folder.write_results({VALID_KEY: Verdict.INVALID})
    (run,) = runs(tmp_path)
    assert (run.path, run.workload, run.test) == (folder.path, "w", {"seed": 5})
    assert run.results == {VALID_KEY: False}
    assert list(read_history(run.history)) == list(history)


def test_runs_are_newest_first_over_all_workloads_and_latest_is_none_of_them(tmp_path: Path) -> None:
    made = [RunFolder(tmp_path, workload).path for workload in ("b", "a", "b")]
    found = [run.path for run in runs(tmp_path)]
    assert sorted(found) == sorted(made)
    assert [path.name for path in found] == sorted((path.name for path in made), reverse=True)


@pytest.mark.parametrize("content", [None, "", '{"valid?": tr', "[]", "\udcff"])
def test_results_that_are_missing_or_half_written_are_none(tmp_path: Path, content: str | None) -> None:
    folder = RunFolder(tmp_path, "w")
    if content is not None:
        (folder.path / RESULTS_FILE).write_bytes(content.encode(errors="surrogateescape"))
        (folder.path / TEST_FILE).write_text(json.dumps({"seed": 1}))
    (run,) = runs(tmp_path)
    assert run.results is None
    assert run.test == ({} if content is None else {"seed": 1})


def test_there_are_no_runs_where_there_is_no_store_and_strange_folders_are_none(tmp_path: Path) -> None:
    assert runs(tmp_path / "nowhere") == []
    (tmp_path / "w" / "notes").mkdir(parents=True)
    (tmp_path / "file").write_text("")
    assert runs(tmp_path) == []
