"""When which fault lasted, as the nemesis' lines of a history tell.

A fault begins when the nemesis says that it was brought about. `heal` with a value that names a `fault` ends the
faults of that name; without one it ends all. What could not be brought about begins nothing, and what could not be
healed goes on. Faults may overlap, also with themselves.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.jepsen.core.history import Op, OpType

HEAL = "heal"
FAULT_KEY = "fault"
_TOLD_CHARACTERS_MAX = 60


@dataclass(frozen=True, slots=True)
class Window:
    """One fault; `end_ns` is None when nothing ended it. `value` is what the nemesis says it did."""

    f: str
    label: str
    start_ns: int
    end_ns: int | None
    value: Any

    def until_ns(self, end_of_run_ns: int) -> int:
        return max(self.start_ns, end_of_run_ns if self.end_ns is None else self.end_ns)


def fault_windows(history: Iterable[Op]) -> list[Window]:
    """By time of beginning. Takes any history, also one that breaks off in the middle."""
    windows: list[Window] = []
    open_places: list[int] = []
    asked: Op | None = None
    for op in history:
        if op.is_client:
            continue
        if op.type is OpType.INVOKE:
            asked = op
            continue
        if op.f == HEAL:
            healed = [place for place in open_places if _heals(asked, op, windows[place].f)]
            for place in healed:
                windows[place] = replace(windows[place], end_ns=op.time_ns)
            open_places = [place for place in open_places if place not in healed]
        elif op.error is None and op.type is not OpType.FAIL:
            open_places.append(len(windows))
            windows.append(Window(op.f, _label(op), op.time_ns, None, op.value))
        asked = None
    return windows


def _heals(asked: Op | None, done: Op, f: str) -> bool:
    """The end of a heal may tell something else than what was asked, such as who leads now."""
    if done.error is not None or done.type is OpType.FAIL:
        return False
    for op in (done, asked):
        if op is not None and op.f == HEAL and isinstance(op.value, Mapping) and op.value.get(FAULT_KEY):
            return bool(op.value[FAULT_KEY] == f)
    return True


def _label(op: Op) -> str:
    return f"{op.f} {told(op.value)}".strip()


def told(value: Any) -> str:
    """What the nemesis did, for one short line."""
    if not isinstance(value, Mapping):
        return ""
    parts = [f"{key} {_words(each)}" for key, each in value.items() if each is not None]
    text = ", ".join(parts)
    return text if len(text) <= _TOLD_CHARACTERS_MAX else text[: _TOLD_CHARACTERS_MAX - 1] + "…"


def _words(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "+".join(_words(each) for each in value)
    if isinstance(value, Mapping):
        return " ".join(f"{key} {_words(each)}" for key, each in value.items())
    return str(value)
