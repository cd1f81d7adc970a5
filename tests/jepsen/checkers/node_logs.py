"""What the nodes themselves say: who ended in the middle of the run, which tracebacks they logged, and who led."""

import json
import re
from collections.abc import Collection
from pathlib import Path

from kquorum.cli.failures import ExitStatus
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.cluster import EXITS_FILE, NODES_FOLDER
from tests.jepsen.core.history import History

# What a node says, in a line that is no more than an error, when its state is not what the log leads to. No disk
# excuses it: who lost records or cannot read them fetches them again, and a full disk only delays a snapshot.
STATE_MARKS = (
    "STATE DIFFERS",
    "a committed record was skipped",
    "no snapshots are written from now on",
    "which is a fault of this program",
)
_MARKS = ("Traceback (most recent call last)", "AssertionError", " CRITICAL ", *STATE_MARKS)
_LED = re.compile(r"\bleader in epoch (\d+)")
_BEGINS = re.compile(r"\d{4}-\d\d-\d\d |\d\d:\d\d:\d\d ")
# The disk that fails may be full as well, and cut the line short that says why the node stops.
_OF_DISKS = re.compile(r"Input/output error|cannot flush to stable storage|stops:\s*\d{4}-\d\d-\d\d ")
_SHOWN_MAX = 20


class NodeLogs:
    """A node that ended by itself, or logged an error of ours, or said that its state is not what the log leads to,
    makes the run invalid, whatever clients saw; and so do two nodes that say of one epoch that they lead it, or one
    that says so twice: a leader that was started again has to win another epoch. Unknown when no node ever said that it
    leads: then the nodes' words have changed."""

    name = "nodes"

    def __init__(self, folder: Path, failed_disks: Collection[int] = ()) -> None:
        """The nodes of `failed_disks` may say of their disks what they say, and end for it."""
        self._folder = folder / NODES_FOLDER
        self._failed_disks = frozenset(map(str, failed_disks))

    def check(self, history: History) -> Results:
        exits = json.loads((self._folder / EXITS_FILE).read_text())
        ended = {node: status for node, status in exits.items() if self._is_odd(node, status)}
        marks = [mark for path in self._logs() for mark in self._marks_in(path)]
        leaders = self._leaders()
        twice_led = {epoch: nodes for epoch, nodes in sorted(leaders.items()) if len(nodes) > 1}
        passed = Verdict.VALID if leaders else Verdict.UNKNOWN
        return {
            VALID_KEY: Verdict.INVALID if ended or marks or twice_led else passed,
            "epochs_led": len(leaders),
            "epochs_led_twice": twice_led,
            "ended_by_themselves": ended,
            "suspicious_line_count": len(marks),
            "suspicious_lines": marks[:_SHOWN_MAX],
        }

    def _is_odd(self, node: str, status: int | None) -> bool:
        return status is not None and not (status == ExitStatus.IO_ERROR and node in self._failed_disks)

    def _leaders(self) -> dict[int, list[str]]:
        """Raft's election safety: an epoch has one leader, once."""
        leaders: dict[int, list[str]] = {}
        for path in sorted(self._folder.glob("*/output.log")):
            for epoch in _LED.findall(path.read_text(errors="replace")):
                leaders.setdefault(int(epoch), []).append(path.parent.name)
        return leaders

    def _logs(self) -> list[Path]:
        found = sorted(self._folder.glob("*/output.log")) + sorted(
            self._folder.glob("*/data/**/kquorum.log*")
        )
        assert found, f"no logs of nodes in {self._folder}"
        return found

    def _marks_in(self, path: Path) -> list[str]:
        where = path.relative_to(self._folder)
        is_excused = where.parts[0] in self._failed_disks
        return [
            f"{where}:{number}: {line.strip()[:200]}"
            for number, entry in _entries(path.read_text(errors="replace"))
            if not (is_excused and any(_OF_DISKS.search(text) for text in entry))
            for number, line in enumerate(entry, start=number)
            if any(mark in line for mark in _MARKS)
        ]


def _entries(text: str) -> list[tuple[int, list[str]]]:
    """What was logged at once, a traceback along with the line that it belongs to, and the number of its first line."""
    entries: list[tuple[int, list[str]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if _BEGINS.match(line) or not entries:
            entries.append((number, []))
        entries[-1][1].append(line)
    return entries
