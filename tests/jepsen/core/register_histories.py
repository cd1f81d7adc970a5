"""Histories of registers for the tests of the checkers: told by hand, or made by simulating a correct register."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from tests.jepsen.checkers.linear.checker import Linearizable
from tests.jepsen.checkers.linear.models import Model
from tests.jepsen.checkers.linear.versioned import VersionedRegister
from tests.jepsen.checkers.verdicts import Results
from tests.jepsen.core.history import History, Op, Operation, OpType

KEY = "k"
VERSIONED = ("read", "cas")
PLAIN = ("read", "write", "cas")
CONFIG = ("append", "subtract", "set", "describe")
INFO, FAIL = OpType.INFO, OpType.FAIL


class ScriptedHistory:
    """A history, told one line after the other. Each operation has a process of its own."""

    def __init__(self) -> None:
        self.history = History()
        self._fs: list[str] = []

    def begin(self, f: str, value: Any) -> int:
        self._fs.append(f)
        self._line(OpType.INVOKE, f, value, len(self._fs) - 1)
        return len(self._fs) - 1

    def end(self, process: int, value: Any, kind: OpType = OpType.OK) -> "ScriptedHistory":
        return self._line(kind, self._fs[process], value, process)

    def op(self, f: str, asked: Any, told: Any, kind: OpType = OpType.OK) -> "ScriptedHistory":
        return self.end(self.begin(f, asked), told, kind)

    def read(self, version: int, value: Any = None, key: Any = KEY) -> "ScriptedHistory":
        return self.op("read", {"key": key}, shown(version, value, key))

    def cas(
        self, expected: int, value: Any, told: int | None = None, kind: OpType = OpType.OK, key: Any = KEY
    ) -> "ScriptedHistory":
        """`told` is the new version by the reply: the next one, if not given."""
        asked = cas(expected, value, key)
        return self.op("cas", asked, {**asked, "version": expected + 1 if told is None else told}, kind)

    def _line(self, kind: OpType, f: str, value: Any, process: int) -> "ScriptedHistory":
        time_ns = len(self.history) * 1_000_000
        self.history.append(Op(type=kind, f=f, value=value, process=process, time_ns=time_ns))
        return self


def shown(version: int, value: Any = None, key: Any = KEY) -> dict[str, Any]:
    return {"key": key, "version": version, "value": value}


def cas(expected: int, value: Any, key: Any = KEY) -> dict[str, Any]:
    return {"key": key, "expected": expected, "value": value}


@dataclass(slots=True)
class _Open:
    process: int
    f: str
    asked: dict[str, Any]
    reply: tuple[OpType, dict[str, Any]] | None = None
    told: bool = False


class _Simulated:
    """A correct register, whose clients wait, lose replies, and are overtaken by what they gave up."""

    def __init__(self, draw: Callable[[Any], Any], keys: int) -> None:
        self._draw = draw
        self._keys = keys
        self._story = ScriptedHistory()
        self._standing: dict[str, tuple[int, Any]] = {}
        self._open: list[_Open] = []
        self._written = 0

    def run(self, operations: int) -> History:
        begun = 0
        while begun < operations or any(not each.told for each in self._open):
            choices: list[Callable[[], None]] = []
            if begun < operations:
                choices.append(self._begin)
            if any(each.reply is None for each in self._open):
                choices.append(self._happen)
            if any(not each.told for each in self._open):
                choices.append(self._tell)
            chosen = self._draw(st.sampled_from(choices))
            begun += chosen == self._begin
            chosen()
        return self._story.history

    def _begin(self) -> None:
        key = f"k{self._draw(st.integers(1, self._keys))}"
        if self._draw(st.booleans()):
            f, asked = "read", {"key": key}
        else:
            self._written += 1
            version, _ = self._standing.get(key, (0, None))
            behind = self._draw(st.sampled_from((0, 0, 0, 1)))
            f, asked = "cas", cas(max(0, version - behind), self._written, key)
        self._open.append(_Open(self._story.begin(f, asked), f, asked))

    def _happen(self) -> None:
        each = self._draw(st.sampled_from([each for each in self._open if each.reply is None]))
        key = each.asked["key"]
        version, value = self._standing.get(key, (0, None))
        if each.f == "read":
            each.reply = (OpType.OK, shown(version, value, key))
        elif each.asked["expected"] != version:
            each.reply = (OpType.FAIL, {**each.asked, "found": version})
        else:
            self._standing[key] = (version + 1, each.asked["value"])
            each.reply = (OpType.OK, {**each.asked, "version": version + 1})

    def _tell(self) -> None:
        each = self._draw(st.sampled_from([each for each in self._open if not each.told]))
        each.told = True
        if each.reply is None or self._draw(st.integers(0, 4)) == 0:
            self._story.end(each.process, each.asked, OpType.INFO)
            return
        kind, value = each.reply
        self._story.end(each.process, value, kind)


@st.composite
def correct_histories(draw: st.DrawFn, operations_max: int = 6, keys: int = 1) -> History:
    return _Simulated(draw, keys).run(draw(st.integers(1, operations_max)))


@st.composite
def tampered_histories(draw: st.DrawFn, operations_max: int = 6) -> History:
    """A correct history in which one reply may say something else: valid still, or not."""
    history = draw(correct_histories(operations_max))
    replies = [op for op in history if op.type in (OpType.OK, OpType.FAIL)]
    if not replies:
        return history
    lie = draw(st.sampled_from(replies))
    field = draw(st.sampled_from([each for each in ("version", "found") if each in lie.value]))
    value = {**lie.value, field: max(0, lie.value[field] + draw(st.sampled_from((-2, -1, 1, 2))))}
    if lie.f == "read" and draw(st.booleans()):
        value = {**lie.value, "value": draw(st.integers(1, operations_max))}
    return History(replace(op, value=value) if op is lie else op for op in history)


@st.composite
def wild_histories(
    draw: st.DrawFn, said: st.SearchStrategy[tuple[str, Any, Any]], operations_max: int = 6
) -> History:
    """Concurrent operations, each (f, what was asked, what was told), with whatever order and outcome."""
    scripted = ScriptedHistory()
    left = draw(st.lists(said, min_size=1, max_size=operations_max))
    open_now: list[tuple[int, Any]] = []
    while left or open_now:
        if left and (not open_now or draw(st.booleans())):
            f, asked, told = left.pop()
            open_now.append((scripted.begin(f, asked), told))
            continue
        process, told = open_now.pop(draw(st.integers(0, len(open_now) - 1)))
        kind = draw(st.sampled_from((OpType.OK, OpType.OK, OpType.OK, OpType.INFO)))
        scripted.end(process, told if kind is OpType.OK else None, kind)
    return scripted.history


Step = Callable[[Operation, Any], Any]
"""The state after an operation; None where it cannot have happened."""


def step_of_versions(operation: Operation, state: tuple[int, Any]) -> tuple[int, Any] | None:
    said, version = operation.value, state[0]
    if operation.invoke.f == "read":
        return state if (said["version"], said["value"]) == state else None
    if operation.kind is OpType.FAIL:
        return state if said["found"] == version != said["expected"] else None
    if said["expected"] != version or (operation.is_ok and said["version"] != version + 1):
        return None
    return version + 1, said["value"]


def has_an_order(history: History, step: Step = step_of_versions, start: Any = (0, None)) -> bool:
    """By trying every order in which the operations on one object can have happened."""
    calls = [each for each in history.operations() if _left_a_trace(each)]

    def search(left: list[Operation], state: Any) -> bool:
        if not any(_ended(each) for each in left):
            return True
        for each in left:
            if any(0 < _ended(other) < each.invoke.index for other in left):
                continue
            after = step(each, state)
            if after is not None and search([other for other in left if other is not each], after):
                return True
        return False

    return search(calls, start)


def _left_a_trace(operation: Operation) -> bool:
    if operation.invoke.f in ("read", "describe"):
        return operation.is_ok
    return operation.kind is not OpType.FAIL or "found" in operation.value


def _ended(operation: Operation) -> int:
    """0 while it may still happen."""
    return 0 if operation.kind is OpType.INFO or operation.end is None else operation.end.index


def judged(history: History, model: Model | None = None, fs: Any = VERSIONED, **more: Any) -> Results:
    return Linearizable(model or VersionedRegister(), fs, **more).check(history)
