"""Sequential models: what a register, or a set of config values, may do when one operation follows the other.

A model turns the operations of a history into effects. An effect takes a state to the state after it, or says
that it is impossible there. An operation without a trace has no effect at all: what failed, and reads without a
reply. Operations on several objects at once name theirs in their value: `{"key": k, ...}`.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

from tests.jepsen.core.history import Operation, OpType

State = Hashable
IMPOSSIBLE: Final[State] = object()


class Effect(Hashable, Protocol):
    """Two effects that are equal do the same. A pure one never changes the state: it only looks."""

    pure: ClassVar[bool]

    def apply(self, state: Any) -> State:
        """The state after it; IMPOSSIBLE where it cannot have happened."""
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """An operation with its effect. One that is not required (`info`) may happen at any time, or never."""

    operation: Operation
    effect: Effect
    required: bool

    @property
    def invoked(self) -> int:
        return self.operation.invoke.index

    @property
    def ended(self) -> int:
        """Of a required call only: what may still happen has no end."""
        assert self.operation.end is not None, "an operation that may still happen"
        return self.operation.end.index


class Model(Protocol):
    words: frozenset[str]

    def initial(self, key: Hashable) -> State: ...

    def effect(self, word: str, operation: Operation) -> Effect | None:
        """What the operation did or may have done; None when it left no trace."""
        ...

    def needed(self, start: State, calls: Sequence[Call]) -> list[Call]:
        """The calls of one key without those optional ones that no linearization needs."""
        ...

    def may_help(self, optional: Effect, after: State, waiting: Sequence[Effect]) -> bool:
        """Whether an optional effect that leads to this state can be of use to a required one that waits."""
        ...


def key_of(operation: Operation) -> Hashable:
    """The object that an operation is on; None where there is only one."""
    for value in (operation.invoke.value, operation.value):
        if isinstance(value, Mapping) and "key" in value:
            return frozen(value["key"])
    return None


def operand_of(value: Any) -> Any:
    """What is said of the object: the whole value where there is only one object."""
    if isinstance(value, Mapping) and "key" in value:
        return value.get("value")
    return value


def frozen(value: Any) -> Hashable:
    """A value of a history in a form that can be part of a state."""
    if isinstance(value, Mapping):
        return frozenset((name, frozen(each)) for name, each in value.items())
    if isinstance(value, list | tuple):
        return tuple(frozen(each) for each in value)
    assert isinstance(value, Hashable)
    return value


@dataclass(frozen=True, slots=True)
class ShowsValue:
    value: Hashable
    pure: ClassVar[bool] = True

    def apply(self, state: State) -> State:
        return state if state == self.value else IMPOSSIBLE


@dataclass(frozen=True, slots=True)
class Writes:
    value: Hashable
    pure: ClassVar[bool] = False

    def apply(self, _state: State) -> State:
        return self.value


@dataclass(frozen=True, slots=True)
class Swaps:
    old: Hashable
    new: Hashable
    pure: ClassVar[bool] = False

    def apply(self, state: State) -> State:
        return self.new if state == self.old else IMPOSSIBLE


class Register:
    """`read` -> value, `write` value, `cas` [old, new]."""

    words = frozenset({"read", "write", "cas"})

    def __init__(self, value: Any = None) -> None:
        self._value = frozen(value)

    def initial(self, _key: Hashable) -> State:
        return self._value

    def effect(self, word: str, operation: Operation) -> Effect | None:
        if operation.kind is OpType.FAIL or (word == "read" and not operation.is_ok):
            return None
        operand = operand_of(operation.value if word == "read" else operation.invoke.value)
        if word == "cas":
            old, new = operand
            return Swaps(frozen(old), frozen(new))
        return ShowsValue(frozen(operand)) if word == "read" else Writes(frozen(operand))

    def needed(self, _start: State, calls: Sequence[Call]) -> list[Call]:
        """What may have been written matters only if a client saw it, or may have swapped it for what was seen."""
        seen = {value for call in calls if call.required and (value := _looked_at(call.effect)) is not None}
        swaps = [call.effect for call in calls if not call.required and isinstance(call.effect, Swaps)]
        while more := {(each.old,) for each in swaps if (each.new,) in seen} - seen:
            seen |= more
        return [call for call in calls if call.required or _written(call.effect) in seen]

    def may_help(self, _optional: Effect, _after: State, _waiting: Sequence[Effect]) -> bool:
        return True


def _looked_at(effect: Effect) -> tuple[Hashable] | None:
    """In a tuple, for None is a value too."""
    match effect:
        case ShowsValue(value):
            return (value,)
        case Swaps(old, _):
            return (old,)
    return None


def _written(effect: Effect) -> tuple[Hashable]:
    match effect:
        case Writes(value):
            return (value,)
        case Swaps(_, new):
            return (new,)
    raise AssertionError(f"{effect} writes nothing")


@dataclass(frozen=True, slots=True)
class Appends:
    values: frozenset[str]
    pure: ClassVar[bool] = False

    def apply(self, state: frozenset[str]) -> State:
        return state | self.values


@dataclass(frozen=True, slots=True)
class Subtracts:
    values: frozenset[str]
    pure: ClassVar[bool] = False

    def apply(self, state: frozenset[str]) -> State:
        return state - self.values


@dataclass(frozen=True, slots=True)
class Describes:
    """None: a list with something twice, which is no state of a set."""

    values: frozenset[str] | None
    pure: ClassVar[bool] = True

    def apply(self, state: State) -> State:
        return state if state == self.values else IMPOSSIBLE


class ConfigSet:
    """A list config by IncrementalAlterConfigs: `append`, `subtract` and `set` (one value or a list), `describe`.

    Kafka appends only what is not there yet, so the state is a set.
    """

    words = frozenset({"append", "subtract", "set", "describe"})

    def __init__(self, values: Sequence[str] = ()) -> None:
        self._values = frozenset(values)

    def initial(self, _key: Hashable) -> State:
        return self._values

    def effect(self, word: str, operation: Operation) -> Effect | None:
        if operation.kind is OpType.FAIL or (word == "describe" and not operation.is_ok):
            return None
        told = operand_of(operation.value if word == "describe" else operation.invoke.value)
        values = [told] if isinstance(told, str) else list(told or ())
        several = frozenset(values)
        if word == "describe":
            return Describes(several if len(several) == len(values) else None)
        if word == "set":
            return Writes(several)
        return Appends(several) if word == "append" else Subtracts(several)

    def needed(self, start: State, calls: Sequence[Call]) -> list[Call]:
        """Appends of what was never shown, and subtractions of what was never there, change nothing to see."""
        assert isinstance(start, frozenset)
        shown = frozenset[str]().union(
            *(call.effect.values or () for call in calls if isinstance(call.effect, Describes))
        )
        there = start.union(*(_put_in(call.effect) for call in calls))
        return [call for call in calls if call.required or _can_be_seen(call.effect, shown, there)]

    def may_help(self, optional: Effect, after: State, waiting: Sequence[Effect]) -> bool:
        """It can wait until a describe is due that shows all that it did to one value at least."""
        assert isinstance(after, frozenset)
        if not isinstance(optional, Appends | Subtracts):
            return True
        return any(
            isinstance(each, Describes)
            and each.values is not None
            and any((value in each.values) == (value in after) for value in optional.values)
            for each in waiting
        )


def _put_in(effect: Effect) -> frozenset[str]:
    match effect:
        case Appends(values):
            return values
        case Writes(frozenset() as values):
            return values
    return frozenset()


def _can_be_seen(effect: Effect, shown: frozenset[str], there: frozenset[str]) -> bool:
    match effect:
        case Appends(values):
            return bool(values & shown)
        case Subtracts(values):
            return bool(values & there)
    return True
