"""Where a run is kept: store/<workload>/<time>/, and `latest` beside it."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.jepsen.checkers.verdicts import Results, as_json
from tests.jepsen.history import History, write_history

HISTORY_FILE = "history.jsonl"
RESULTS_FILE = "results.json"
TEST_FILE = "test.json"
LATEST = "latest"


class RunFolder:
    """One run's folder, made new; the times in its name are UTC."""

    def __init__(self, store: Path, workload: str) -> None:
        now_ns = time.time_ns()
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now_ns // 1_000_000_000))
        self.path = store / workload / f"{stamp}.{now_ns // 1_000_000 % 1000:03d}Z"
        self.path.mkdir(parents=True)
        for folder in (self.path.parent, store):
            _point(folder / LATEST, self.path)

    def write_test(self, options: Mapping[str, Any]) -> None:
        self._write(TEST_FILE, options)

    def write_history(self, history: History) -> None:
        write_history(history, self.path / HISTORY_FILE)

    def write_results(self, results: Results) -> None:
        self._write(RESULTS_FILE, as_json(results))

    def _write(self, name: str, value: Any) -> None:
        (self.path / name).write_text(json.dumps(value, indent=2, default=str) + "\n")


def _point(link: Path, target: Path) -> None:
    """A relative link, put in place in one step: there is always a `latest`."""
    fresh = link.with_name(f".{LATEST}-{target.name}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target.relative_to(link.parent))
    fresh.replace(link)
