"""Where a run is kept: store/<workload>/<time>/, and `latest` beside it; and which runs a store holds."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.jepsen.checkers.verdicts import Results, as_json
from tests.jepsen.core.edn import write_history_edn
from tests.jepsen.core.history import History, write_history

HISTORY_FILE = "history.jsonl"
EDN_FILE = "history.edn"
RESULTS_FILE = "results.json"
TEST_FILE = "test.json"
LATEST = "latest"
_MADE_MAX = 10_000


class RunFolder:
    """One run's folder, made new; the times in its name are UTC."""

    def __init__(self, store: Path, workload: str) -> None:
        self.path = _make_folder(store / workload, time.time_ns() // 1_000_000)
        for folder in (self.path.parent, store):
            _point(folder / LATEST, self.path)

    def write_test(self, options: Mapping[str, Any]) -> None:
        self._write(TEST_FILE, options)

    def write_history(self, history: History) -> None:
        """For us as JSON lines; as EDN for Knossos and Elle."""
        write_history(history, self.path / HISTORY_FILE)
        write_history_edn(history, self.path / EDN_FILE)

    def write_results(self, results: Results) -> None:
        self._write(RESULTS_FILE, as_json(results))

    def _write(self, name: str, value: Any) -> None:
        (self.path / name).write_text(json.dumps(value, indent=2, default=str) + "\n")


@dataclass(frozen=True, slots=True)
class StoredRun:
    """What a folder of the store tells of its run; `results` is None for a run that came to none."""

    path: Path
    test: Mapping[str, Any]
    results: Mapping[str, Any] | None

    @property
    def history(self) -> Path:
        """May be missing, as in a run that was interrupted while its nodes started."""
        return self.path / HISTORY_FILE

    @property
    def workload(self) -> str:
        return self.path.parent.name


def runs(store: Path) -> list[StoredRun]:
    """Every run in the store, newest first; an empty list where there is no store. Raises OSError."""
    if not store.is_dir():
        return []
    folders = [
        run
        for workload in store.iterdir()
        if workload.is_dir() and not workload.is_symlink()
        for run in workload.iterdir()
        if run.is_dir() and not run.is_symlink() and _is_stamp(run.name)
    ]
    return [read_run(folder) for folder in sorted(folders, key=lambda run: (run.name, run), reverse=True)]


def read_run(folder: Path) -> StoredRun:
    return StoredRun(folder, _read(folder / TEST_FILE) or {}, _read(folder / RESULTS_FILE))


def _read(path: Path) -> dict[str, Any] | None:
    """None for what is missing, half-written or no object: a run may end at any moment."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _make_folder(parent: Path, now_ms: int) -> Path:
    """The run that creates a folder has it; a second run in the same millisecond takes a later name."""
    parent.mkdir(parents=True, exist_ok=True)
    for time_ms in range(now_ms, now_ms + _MADE_MAX):
        path = parent / _stamp(time_ms)
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise FileExistsError(f"{parent} holds a run for each of the next {_MADE_MAX} milliseconds")


def _stamp(time_ms: int) -> str:
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(time_ms // 1000))}.{time_ms % 1000:03d}Z"


def _is_stamp(name: str) -> bool:
    return len(name) == len(_stamp(0)) and name[8] == "T" and name[:8].isdigit() and name.endswith("Z")


def _point(link: Path, target: Path) -> None:
    """A relative link, put in place in one step: there is always a `latest`."""
    # Runs of two workloads may have the same time, and both point from the store.
    fresh = link.with_name(f".{LATEST}-{target.parent.name}-{target.name}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target.relative_to(link.parent))
    fresh.replace(link)
