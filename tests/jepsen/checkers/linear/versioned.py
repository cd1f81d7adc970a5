"""The model of a register whose versions count its writes, as partition epochs do.

`read` tells `{"key", "version", "value"}`. `cas` asks `{"key", "expected", "value"}`, and its reply adds
`version`, the new one, which is `expected + step`.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tests.jepsen.checkers.linear.models import IMPOSSIBLE, Call, Effect, State, frozen
from tests.jepsen.core.history import Operation, OpType

Standing = tuple[int, Hashable]
"""The version, and the value under it."""


@dataclass(frozen=True, slots=True)
class Shows:
    version: int
    value: Hashable
    pure: ClassVar[bool] = True

    def apply(self, state: Standing) -> State:
        return state if state == (self.version, self.value) else IMPOSSIBLE


@dataclass(frozen=True, slots=True)
class Replaces:
    """`told` is the new version by the reply, None without one."""

    expected: int
    version: int
    value: Hashable
    told: int | None
    pure: ClassVar[bool] = False

    def apply(self, state: Standing) -> State:
        if state[0] != self.expected or self.told not in (None, self.version):
            return IMPOSSIBLE
        return self.version, self.value


@dataclass(frozen=True, slots=True)
class Refused:
    """A cas that found another version than it expected; `found` is None when the reply does not say which."""

    expected: int
    found: int | None
    pure: ClassVar[bool] = True

    def apply(self, state: Standing) -> State:
        if state[0] == self.expected or self.found not in (None, state[0]):
            return IMPOSSIBLE
        return state


class VersionedRegister:
    """`refusals`: a failed cas whose reply has `found` was refused by a register of that version, and counts
    as a look at it; else all that failed is left out."""

    words = frozenset({"read", "cas"})

    def __init__(self, *, version: int = 0, value: Any = None, step: int = 1, refusals: bool = False) -> None:
        assert step > 0, "versions grow"
        self.start: Standing = (version, frozen(value))
        self.step = step
        self.refusals = refusals

    def initial(self, _key: Hashable) -> State:
        return self.start

    def effect(self, word: str, operation: Operation) -> Effect | None:
        asked, told = operation.invoke.value, None if operation.end is None else operation.end.value
        if word == "read":
            if not operation.is_ok:
                return None
            assert isinstance(told, Mapping), f"a read tells {told!r}, and no version"
            return Shows(int(told["version"]), frozen(told.get("value")))
        expected = int(asked["expected"])
        if operation.kind is OpType.FAIL:
            if not (self.refusals and isinstance(told, Mapping) and "found" in told):
                return None
            return Refused(expected, told["found"])
        version = told.get("version") if operation.is_ok and isinstance(told, Mapping) else None
        return Replaces(expected, expected + self.step, frozen(asked.get("value")), version)

    def needed(self, _start: State, calls: Sequence[Call]) -> list[Call]:
        """At most one optional cas for each version that was seen, but has no known writer.

        Each version is replaced once, so where an acknowledged cas did it, no other can have done it. What came
        after the last version seen changes nothing to see. Of several that could have written a version, the one
        that was invoked first can do all that the others can.
        """
        required = [call.effect for call in calls if call.required]
        replaced = {each.expected for each in required if isinstance(each, Replaces)}
        last = max((version for each in required for version in self._seen_by(each)), default=0)
        values: dict[int, set[Hashable]] = {}
        for each in required:
            if isinstance(each, Shows):
                values.setdefault(each.version, set()).add(each.value)
        chosen: set[Hashable] = set()
        kept: list[Call] = []
        for call in sorted(calls, key=lambda each: each.invoked):
            effect = call.effect
            if not call.required:
                assert isinstance(effect, Replaces)
                shown = values.get(effect.version)
                slot = (effect.expected, None if shown is None else effect.value)
                if effect.expected in replaced or effect.expected >= last or slot in chosen:
                    continue
                if shown is not None and effect.value not in shown:
                    continue
                chosen.add(slot)
            kept.append(call)
        return kept

    def _seen_by(self, effect: Effect) -> Iterator[int]:
        match effect:
            case Shows(version, _):
                yield version
            case Replaces(expected, version, _, _):
                yield from (expected, version)
            case Refused(expected, found):
                yield expected + self.step if found is None else found

    def may_help(self, _optional: Effect, _after: State, _waiting: Sequence[Effect]) -> bool:
        return True
