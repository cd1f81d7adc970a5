"""The one log that observers were shown, and where an observer's own sequence breaks a rule."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tests.jepsen.checkers.verdicts import Results
from tests.jepsen.core.history import Operation, OpType

GAP, DIVERGED, WENT_BACK, REPEATED = "gap", "diverged", "went-back", "repeated"


@dataclass(frozen=True, slots=True)
class Entry:
    """A record as it was shown first: by whom, in the operation that ended at this line of the history."""

    offset: int
    epoch: int
    hash: Any
    marker: Any
    observer: Any
    index: int


@dataclass(slots=True)
class Observer:
    """`next` is the offset that has to come now.

    `may_go_back` after a reset, until the next record: it may be shown again what it was shown before, but not
    skip anything. `may_be_anywhere` while its place is unknown, because its last observe ended as `info`.
    """

    next: int
    furthest: int
    epoch: int = -1
    epoch_end: int = -1
    may_go_back: bool = False
    may_be_anywhere: bool = False
    final: int | None = None


@dataclass(frozen=True, slots=True)
class Jump:
    """A snapshot was taken for all before `offset`; `epoch` is that of the last record in it."""

    observer: Any
    offset: int
    epoch: int
    index: int


@dataclass(slots=True)
class ObservedLog:
    """`first_offset` is where a log begins: what an observer without a snapshot is shown first."""

    first_offset: int
    entries: dict[int, Entry] = field(default_factory=dict)
    observers: dict[Any, Observer] = field(default_factory=dict)
    jumps: list[Jump] = field(default_factory=list)
    violations: list[tuple[str, Results]] = field(default_factory=list)

    @classmethod
    def of(cls, observes: Iterable[Operation], first_offset: int) -> "ObservedLog":
        log = cls(first_offset)
        for operation in sorted((each for each in observes if each.end is not None), key=_ended):
            log._take(operation)
        for operation in observes:
            if operation.end is None:
                log._doubt(operation)
        log.violations += [*log._torn_snapshots(), *log._mixed_epochs()]
        return log

    def holes(self) -> list[tuple[int, int]]:
        """The ranges [from, until) that no observer saw: all that came so far had skipped them."""
        shown = [
            self.first_offset - 1,
            *sorted(self.entries),
            max((jump.offset for jump in self.jumps), default=0),
        ]
        return [(before + 1, after) for before, after in pairwise(shown) if after > before + 1]

    def _observer(self, name: Any) -> Observer:
        return self.observers.setdefault(name, Observer(self.first_offset, self.first_offset))

    def _doubt(self, operation: Operation) -> None:
        asked = operation.invoke.value
        if isinstance(asked, Mapping) and "observer" in asked:
            self._observer(asked["observer"]).may_be_anywhere = True

    def _take(self, operation: Operation) -> None:
        if operation.kind is OpType.INFO:
            self._doubt(operation)
        if not operation.is_ok:
            return
        value, index = operation.value, _ended(operation)
        name = value["observer"]
        observer = self._observer(name)
        if value.get("reset"):
            observer.may_go_back, observer.epoch, observer.epoch_end = True, -1, -1
        if value.get("snapshot") is not None:
            offset, epoch = value["snapshot"]
            self._jump(observer, Jump(name, offset, epoch, index))
        for offset, epoch, content, *marker in value["records"]:
            entry = Entry(offset, epoch, content, marker[0] if marker else None, name, index)
            self._step(observer, entry)
            self._compare(entry)
        for why in value.get("broken", ()):
            self.violations.append((WENT_BACK, {"observer": name, "index": index, "why": why}))
        self._end_epoch(observer, value, index)
        if operation.invoke.final:
            observer.final = observer.next

    def _jump(self, observer: Observer, jump: Jump) -> None:
        if jump.offset < observer.next and not (observer.may_go_back or observer.may_be_anywhere):
            self._violate(
                WENT_BACK,
                jump,
                snapshot=[jump.offset, jump.epoch],
                why=f"a snapshot of what it had been shown, up to offset {observer.next - 1}",
            )
        self.jumps.append(jump)
        observer.next, observer.epoch = jump.offset, jump.epoch
        observer.may_go_back = observer.may_be_anywhere = False

    def _step(self, observer: Observer, entry: Entry) -> None:
        if not observer.may_be_anywhere:
            if entry.offset > observer.next:
                self._violate(GAP, entry, offset=entry.offset, expected=observer.next)
            elif entry.offset < observer.next and not observer.may_go_back:
                self._violate(REPEATED, entry, offset=entry.offset, expected=observer.next)
                observer.epoch = -1
            if entry.epoch < observer.epoch:
                self._violate(WENT_BACK, entry, offset=entry.offset, epochs=[observer.epoch, entry.epoch])
        observer.may_go_back = observer.may_be_anywhere = False
        observer.next, observer.epoch = entry.offset + 1, entry.epoch
        observer.furthest = max(observer.furthest, observer.next)

    def _compare(self, entry: Entry) -> None:
        first = self.entries.setdefault(entry.offset, entry)
        if (first.epoch, first.hash) != (entry.epoch, entry.hash):
            self._violate(
                DIVERGED,
                entry,
                offset=entry.offset,
                shown=[entry.epoch, entry.hash],
                first=[first.epoch, first.hash],
                first_observer=first.observer,
                first_index=first.index,
            )

    def _end_epoch(self, observer: Observer, value: Mapping[str, Any], index: int) -> None:
        epoch_end = value.get("epoch_end")
        if epoch_end is None:
            return
        if epoch_end < observer.epoch_end:
            row = {"observer": value["observer"], "index": index, "epochs": [observer.epoch_end, epoch_end]}
            self.violations.append((WENT_BACK, {**row, "why": "its own epoch went back"}))
        observer.epoch_end = epoch_end

    def _violate(self, anomaly: str, at: Entry | Jump, **more: Any) -> None:
        self.violations.append((anomaly, {"observer": at.observer, "index": at.index, **more}))

    def _torn_snapshots(self) -> Iterator[tuple[str, Results]]:
        """A snapshot's epoch is that of the last record in it."""
        for jump in self.jumps:
            last = self.entries.get(jump.offset - 1)
            if last is not None and last.epoch != jump.epoch:
                yield (
                    DIVERGED,
                    {
                        "observer": jump.observer,
                        "index": jump.index,
                        "snapshot": [jump.offset, jump.epoch],
                        "first": [last.epoch, last.hash],
                        "why": f"another epoch than that of offset {last.offset}",
                    },
                )

    def _mixed_epochs(self) -> Iterator[tuple[str, Results]]:
        """Over all observers and snapshots together, where no single observer was shown both of two records."""
        if any(anomaly == WENT_BACK for anomaly, _ in self.violations):
            return
        points = [(each.offset, each.epoch, each.observer, each.index) for each in self.entries.values()]
        points += [
            (jump.offset - 1, jump.epoch, jump.observer, jump.index)
            for jump in self.jumps
            if jump.offset - 1 not in self.entries
        ]
        points.sort(key=lambda point: point[0])
        for (_, epoch_before, _, _), (offset, epoch, observer, index) in pairwise(points):
            if epoch < epoch_before:
                row = {"observer": observer, "index": index, "offset": offset}
                yield WENT_BACK, {**row, "epochs": [epoch_before, epoch]}


def _ended(operation: Operation) -> int:
    assert operation.end is not None
    return operation.end.index
