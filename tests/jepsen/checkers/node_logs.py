"""What the nodes themselves say: who ended in the middle of the run, and which tracebacks they logged."""

import json
from pathlib import Path

from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.cluster import EXITS_FILE, NODES_FOLDER
from tests.jepsen.history import History

_MARKS = ("Traceback (most recent call last)", "AssertionError", " CRITICAL ")
_SHOWN_MAX = 20


class NodeLogs:
    """A node that ended by itself, or logged an error of ours, makes the run invalid, whatever clients saw."""

    name = "nodes"

    def __init__(self, folder: Path) -> None:
        self._folder = folder / NODES_FOLDER

    def check(self, history: History) -> Results:
        exits = json.loads((self._folder / EXITS_FILE).read_text())
        ended = {node: status for node, status in exits.items() if status is not None}
        marks = [mark for path in self._logs() for mark in self._marks_in(path)]
        return {
            VALID_KEY: Verdict.INVALID if ended or marks else Verdict.VALID,
            "ended_by_themselves": ended,
            "suspicious_line_count": len(marks),
            "suspicious_lines": marks[:_SHOWN_MAX],
        }

    def _logs(self) -> list[Path]:
        found = sorted(self._folder.glob("*/output.log")) + sorted(
            self._folder.glob("*/data/**/kquorum.log*")
        )
        assert found, f"no logs of nodes in {self._folder}"
        return found

    def _marks_in(self, path: Path) -> list[str]:
        where = path.relative_to(self._folder)
        return [
            f"{where}:{number}: {line.strip()[:200]}"
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1)
            if any(mark in line for mark in _MARKS)
        ]
