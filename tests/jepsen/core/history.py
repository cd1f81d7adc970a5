"""What happened in a run, in order: operations are invoked, and end as ok, fail or info.

The words are Jepsen's. `fail` says that the operation surely had no effect, `info` that it is unknown: it may
have had, or may yet. A client whose operation ends as `info` counts as crashed and goes on under a new
process number, so that one process never has two operations open.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

NEMESIS = -1
NEMESIS_NAME = "nemesis"


class OpType(StrEnum):
    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One line of a history.

    `time_ns` counts from the start of the run. `node` is the broker that a client spoke to. `error` says why
    an operation did not end as ok. `final` marks the reads of the last phase, when all faults are healed.
    """

    type: OpType
    f: str
    value: Any = None
    process: int
    time_ns: int = 0
    index: int = -1
    node: int | None = None
    error: str | None = None
    final: bool = False

    @property
    def is_client(self) -> bool:
        return self.process != NEMESIS

    def ended(self, kind: OpType, value: Any, error: str | None = None) -> "Op":
        """How this invocation ended; time and index are given when it enters the history."""
        return replace(self, type=kind, value=value, error=error, index=-1)


@dataclass(frozen=True, slots=True)
class Operation:
    """An invocation and its end; one without an end is as good as `info`."""

    invoke: Op
    end: Op | None

    @property
    def kind(self) -> OpType:
        return OpType.INFO if self.end is None else self.end.type

    @property
    def is_ok(self) -> bool:
        return self.kind is OpType.OK

    @property
    def value(self) -> Any:
        """What the end says; what was asked where it says nothing."""
        return self.invoke.value if self.end is None or self.end.value is None else self.end.value


class MalformedHistory(Exception):
    """A history that no run can have produced; `line` is the index of the operation."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"operation {line} of the history: {reason}")


class History(Sequence[Op]):
    """Operations in the order in which they entered, numbered from 0."""

    def __init__(self, ops: Iterable[Op] = ()) -> None:
        self._ops = [replace(op, index=index) for index, op in enumerate(ops)]

    def append(self, op: Op) -> Op:
        numbered = replace(op, index=len(self._ops))
        self._ops.append(numbered)
        return numbered

    def __len__(self) -> int:
        return len(self._ops)

    def __getitem__(self, index: Any) -> Any:
        return self._ops[index]

    def __iter__(self) -> Iterator[Op]:
        return iter(self._ops)

    def operations(self, *, client: bool = True) -> list[Operation]:
        """Each invocation with its end, by time of invocation; the clients' or the nemesis' ones.

        Raises MalformedHistory when a process ends what it did not invoke, or invokes two things at once.
        """
        found: list[Operation] = []
        open_at: dict[int, int] = {}
        for op in self._ops:
            if op.is_client is not client:
                continue
            if op.type is OpType.INVOKE:
                if op.process in open_at:
                    raise MalformedHistory(op.index, f"process {op.process} has an operation open already")
                open_at[op.process] = len(found)
                found.append(Operation(op, None))
                continue
            if op.process not in open_at:
                raise MalformedHistory(op.index, f"process {op.process} ends what it did not invoke")
            place = open_at.pop(op.process)
            if found[place].invoke.f != op.f:
                raise MalformedHistory(op.index, f"a {found[place].invoke.f} ends as a {op.f}")
            found[place] = Operation(found[place].invoke, op)
        return found

    @property
    def last_time_ns(self) -> int:
        return max((op.time_ns for op in self._ops), default=0)


def write_history(history: History, path: Path) -> None:
    """One JSON object a line, with Jepsen's keys."""
    with path.open("w", encoding="utf-8") as lines:
        for op in history:
            lines.write(json.dumps(_as_json(op), separators=(",", ":")) + "\n")


def read_history(path: Path) -> History:
    """Raises MalformedHistory for a line that is no operation."""
    ops = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            try:
                ops.append(_from_json(json.loads(line)))
            except (ValueError, KeyError, TypeError) as error:
                raise MalformedHistory(number, f"unreadable ({error!r})") from error
    return History(ops)


def _as_json(op: Op) -> dict[str, Any]:
    values: dict[str, Any] = {
        "index": op.index,
        "type": op.type.value,
        "process": op.process if op.is_client else NEMESIS_NAME,
        "f": op.f,
        "value": op.value,
        "time": op.time_ns,
    }
    extra = {"node": op.node, "error": op.error, "final": op.final or None}
    return values | {key: value for key, value in extra.items() if value is not None}


def _from_json(values: Mapping[str, Any]) -> Op:
    process = values["process"]
    return Op(
        type=OpType(values["type"]),
        f=values["f"],
        value=values["value"],
        process=NEMESIS if process == NEMESIS_NAME else int(process),
        time_ns=int(values["time"]),
        index=int(values["index"]),
        node=values.get("node"),
        error=values.get("error"),
        final=bool(values.get("final", False)),
    )
