"""All observers of the metadata log are shown one log, and it has all that was acknowledged.

`observe` ends with what one observer was delivered since its last one, in order: `{"observer": id, "records":
[[offset, epoch, hash, marker or null], ...]}`, with `"snapshot": [offset, epoch]` first when it loaded a snapshot of
all before that offset, `"reset": true` when it began again, `"epoch_end"`, the epoch in which it then was, and
`"broken"`, what was wrong with the high watermark that came with the records.
`commit` writes a record with `{"marker": m}`; its reply may add the record's own `offset`.

- An observer is shown offset after offset; it begins at the first or with a snapshot. Else there is a **gap**.
  What comes a second time without a reset is **repeated**.
- Epochs never go back, nor does a snapshot behind what was shown, nor a node's high watermark, and what is shown is
  below it: else the observer **went-back**.
- One offset has one epoch and hash, for all observers and at all times: else the log **diverged**. So it has when a
  marker is not where its acknowledgement said.
- An acknowledged marker is in the log once: else it is **lost** or **duplicated**. A marker whose commit failed,
  or had not begun, is a **phantom**. What was committed after another's acknowledgement is behind it: else it
  was **reordered**.
- A node that goes on to answer for STUCK_NS of the last phase, and does not come to what was acknowledged, is
  **stuck**.

Nothing is said of an offset that all observers skipped by snapshots, or that none has reached: there is
doubt then, as there is when an observer's final observe did not come to the last acknowledged offset. What stands
behind that one need not be observed: a late observer may find it in a snapshot.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.jepsen.checkers.observed_log import DIVERGED, GAP, REPEATED, WENT_BACK, ObservedLog
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.history import History, Operation, OpType

OBSERVE, COMMIT = "observe", "commit"
LOST, DUPLICATED, PHANTOM, REORDERED, STUCK = "lost", "duplicated", "phantom", "reordered", "stuck"
ANOMALIES = (GAP, DIVERGED, WENT_BACK, REPEATED, LOST, DUPLICATED, PHANTOM, REORDERED, STUCK)
STUCK_NS = 45_000_000_000
_SHOWN_MAX = 50


@dataclass(frozen=True, slots=True)
class Commit:
    """`places` are the offsets at which its marker was shown; `shown` is the line where that happened first."""

    marker: Any
    operation: Operation
    places: Sequence[int]
    shown: int | None

    @property
    def acknowledged(self) -> bool:
        return self.operation.is_ok

    @property
    def invoked(self) -> int:
        return self.operation.invoke.index

    @property
    def ended(self) -> int:
        assert self.operation.end is not None
        return self.operation.end.index

    @property
    def told(self) -> int | None:
        """The offset of the acknowledgement."""
        value = self.operation.value if self.acknowledged else None
        return value.get("offset") if isinstance(value, Mapping) else None


class LogOrder:
    """See the head of the module. `observers` are those that must each give a final observe, with all seen."""

    def __init__(
        self,
        observers: Iterable[Any] = (),
        *,
        observe: str = OBSERVE,
        commit: str = COMMIT,
        first_offset: int = 0,
        name: str = "log-order",
    ) -> None:
        self.name = name
        self._observers = tuple(observers)
        self._observe, self._commit = observe, commit
        self._first_offset = first_offset

    def check(self, history: History) -> Results:
        operations = history.operations()
        log = ObservedLog.of(
            [each for each in operations if each.invoke.f == self._observe], self._first_offset
        )
        commits = _commits([each for each in operations if each.invoke.f == self._commit], log)
        missing = _missing(commits, log)
        found: dict[str, list[Results]] = {anomaly: [] for anomaly in ANOMALIES}
        for anomaly, row in [*log.violations, *_unasked(commits, log), *_misplaced(commits), *missing]:
            found.setdefault(anomaly, []).append(row)
        unplaced = found.pop(_UNPLACED, [])
        last = self._last(commits)
        behind = self._behind(last, log)
        found[STUCK] = list(self._stuck(behind, operations))
        acknowledged = [each for each in commits.values() if each.acknowledged]
        holes = [hole for hole in log.holes() if hole[0] <= last]
        doubt = bool(holes or unplaced or behind) or not (acknowledged and log.entries)
        verdict = Verdict.UNKNOWN if doubt else Verdict.VALID
        return {
            VALID_KEY: Verdict.INVALID if any(found.values()) else verdict,
            "records": len(log.entries),
            "last_offset": max(log.entries, default=None),
            "observers": sorted(map(str, log.observers)),
            "acknowledged_count": len(acknowledged),
            "recovered_count": sum(
                each.operation.kind is OpType.INFO and bool(each.places) for each in commits.values()
            ),
            **{f"{anomaly}_count": len(rows) for anomaly, rows in found.items()},
            **{anomaly: rows[:_SHOWN_MAX] for anomaly, rows in found.items()},
            "jumped_by_all": [list(hole) for hole in holes[:_SHOWN_MAX]],
            "unplaced": unplaced[:_SHOWN_MAX],
            "observers_behind": behind,
        }

    def _last(self, commits: Mapping[Any, Commit]) -> int:
        """The last offset that was acknowledged."""
        acknowledged = [each for each in commits.values() if each.acknowledged]
        return max(
            (offset for each in acknowledged for offset in (each.told, *each.places) if offset is not None),
            default=self._first_offset - 1,
        )

    def _behind(self, last: int, log: ObservedLog) -> list[Results]:
        """Whose final observe did not reach what was acknowledged, or what it had been shown itself."""
        rows: list[Results] = []
        for name in dict.fromkeys([*self._observers, *log.observers]):
            observer = log.observers.get(name)
            final = None if observer is None else observer.final
            wanted = last + 1 if observer is None else max(last + 1, observer.furthest)
            if final is None or final < wanted:
                rows.append({"observer": name, "final": final, "wanted": wanted})
        return rows

    def _stuck(self, behind: Iterable[Results], operations: Iterable[Operation]) -> Iterator[Results]:
        looks: dict[Any, list[Operation]] = {}
        for each in operations:
            if each.invoke.f == self._observe and each.invoke.final and each.is_ok:
                looks.setdefault(each.value["observer"], []).append(each)
        for row in behind:
            if not (own := looks.get(row["observer"])):
                continue
            assert own[-1].end is not None
            if own[-1].end.time_ns - own[0].invoke.time_ns >= STUCK_NS:
                yield {**row, "index": own[-1].end.index}


def _commits(operations: Sequence[Operation], log: ObservedLog) -> dict[Any, Commit]:
    places: dict[Any, list[int]] = {}
    for offset in sorted(log.entries):
        marker = log.entries[offset].marker
        if marker is not None:
            places.setdefault(marker, []).append(offset)
    commits: dict[Any, Commit] = {}
    for operation in operations:
        marker = operation.invoke.value["marker"]
        assert marker not in commits, f"{marker} is committed twice"
        offsets = places.pop(marker, [])
        shown = min((log.entries[offset].index for offset in offsets), default=None)
        commits[marker] = Commit(marker, operation, offsets, shown)
    return commits


Found = Iterator[tuple[str, Results]]
_UNPLACED = "unplaced"


def _unasked(commits: Mapping[Any, Commit], log: ObservedLog) -> Found:
    """Markers that should not be in the log, or not so often."""
    for entry in log.entries.values():
        if entry.marker is None:
            continue
        commit = commits.get(entry.marker)
        if commit is None:
            why = "no client committed it"
        elif commit.operation.kind is OpType.FAIL:
            why = "its commit failed"
        elif entry.index < commit.invoked:
            why = "its commit had not begun"
        else:
            continue
        row = {"marker": entry.marker, "offset": entry.offset, "observer": entry.observer}
        yield PHANTOM, {**row, "index": entry.index, "why": why}
    for commit in commits.values():
        if len(commit.places) > 1:
            yield DUPLICATED, {"marker": commit.marker, "offsets": list(commit.places), "index": commit.shown}


def _misplaced(commits: Mapping[Any, Commit]) -> Found:
    for commit in commits.values():
        if commit.told is not None and commit.places and commit.told not in commit.places:
            row = {"marker": commit.marker, "index": commit.ended, "acknowledged_at": commit.told}
            yield DIVERGED, {**row, "shown_at": list(commit.places)}
    for commit, known in _with_known(commits.values()):
        if commit.places and known is not None and commit.places[0] < known.places[0]:
            yield (
                REORDERED,
                {
                    "marker": commit.marker,
                    "offset": commit.places[0],
                    "invoked": commit.invoked,
                    "behind": {"marker": known.marker, "offset": known.places[0], "index": known.ended},
                },
            )


def _with_known(commits: Iterable[Commit]) -> Iterator[tuple[Commit, Commit | None]]:
    """Each commit with the furthest one that had been acknowledged when it was invoked."""
    events = [(commit.invoked, commit) for commit in commits]
    events += [(commit.ended, commit) for _, commit in events if commit.acknowledged and commit.places]
    known: Commit | None = None
    for index, commit in sorted(events, key=lambda event: event[0]):
        if index == commit.invoked:
            yield commit, known
        elif known is None or commit.places[0] > known.places[0]:
            known = commit


def _missing(commits: Mapping[Any, Commit], log: ObservedLog) -> list[tuple[str, Results]]:
    """Acknowledged markers that no observer saw: lost if the place where they must be was shown, else unplaced."""
    holes = log.holes()
    placed = [each for each in commits.values() if each.places]
    rows: list[tuple[str, Results]] = []
    for commit, known in _with_known(commits.values()):
        if not commit.acknowledged or commit.places:
            continue
        row = {"marker": commit.marker, "index": commit.ended, "offset": commit.told}
        if commit.told is not None:
            anomaly = LOST if commit.told in log.entries else _UNPLACED
        else:
            after = min(
                (each.places[0] for each in placed if each.invoked > commit.ended),
                default=None,
            )
            begin = log.first_offset if known is None else known.places[0]
            jumped = after is not None and any(start < after and until > begin for start, until in holes)
            anomaly = _UNPLACED if after is None or jumped else LOST
        rows.append((anomaly, row))
    return rows
