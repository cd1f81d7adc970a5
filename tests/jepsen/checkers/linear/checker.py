"""Whether each key's operations can have happened one after the other, each between its invocation and its end."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from tests.jepsen.checkers.linear.models import Call, Model, State, key_of
from tests.jepsen.checkers.linear.search import Outcome, Search
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict, worst
from tests.jepsen.core.history import History, Operation, OpType

MAX_STEPS = 200_000
_SHOWN_MAX = 10

Names = Mapping[str, str] | Iterable[str]
"""The names of a history's operations: the model's own words, or a mapping from each name to such a word."""


def words_of(names: Names, words: frozenset[str]) -> dict[str, str]:
    """The model's word for each name. Raises ValueError for a name without one."""
    mapping = dict(names) if isinstance(names, Mapping) else {name: name for name in names}
    if strange := sorted(set(mapping.values()) - words):
        raise ValueError(f"the model knows no {', '.join(strange)}, but {', '.join(sorted(words))}")
    return mapping


def calls_by_key(history: History, words: Mapping[str, str], model: Model) -> dict[Hashable, list[Call]]:
    """What each key saw or may have seen, by time of invocation."""
    found: dict[Hashable, list[Call]] = {}
    for operation in history.operations():
        word = words.get(operation.invoke.f)
        if word is None:
            continue
        effect = model.effect(word, operation)
        if effect is not None:
            required = operation.kind is not OpType.INFO
            found.setdefault(key_of(operation), []).append(Call(operation, effect, required))
    return found


class Linearizable:
    """A key whose search takes more than `max_steps` is left in doubt."""

    def __init__(self, model: Model, fs: Names, max_steps: int = MAX_STEPS, name: str = "linear") -> None:
        self.name = name
        self._model = model
        self._words = words_of(fs, model.words)
        self._max_steps = max_steps

    def check(self, history: History) -> Results:
        keys = calls_by_key(history, self._words, self._model)
        outcomes = {key: self._search(key, calls) for key, calls in keys.items()}
        invalid = [key for key, each in outcomes.items() if each.verdict is Verdict.INVALID]
        unfinished = [key for key, each in outcomes.items() if each.verdict is Verdict.UNKNOWN]
        tested = any(call.operation.is_ok for calls in keys.values() for call in calls)
        verdict = worst(each.verdict for each in outcomes.values())
        return {
            VALID_KEY: verdict if tested or verdict is Verdict.INVALID else Verdict.UNKNOWN,
            "keys": len(keys),
            "operations": sum(map(len, keys.values())),
            "longest_key": max(map(len, keys.values()), default=0),
            "steps": sum(each.steps for each in outcomes.values()),
            "invalid_count": len(invalid),
            "invalid": [
                self._report(key, keys[key], self._shortest(key, keys[key], outcomes[key]))
                for key in invalid[:_SHOWN_MAX]
            ],
            "unfinished_count": len(unfinished),
            "unfinished": [self._report(key, keys[key], outcomes[key]) for key in unfinished[:_SHOWN_MAX]],
        }

    def _search(self, key: Hashable, calls: Sequence[Call]) -> Outcome:
        start = self._model.initial(key)
        needed = self._model.needed(start, calls)
        return Search(needed, start, self._model.may_help, self._max_steps).run()

    def _shortest(self, key: Hashable, calls: Sequence[Call], invalid: Outcome) -> Outcome:
        """Of the smallest prefix without an order: one that is longer has none either.

        The search of the whole got to its turn with what it knew of later ones, so a shorter prefix has an order.
        Mostly it is that very turn which fails; it is later where later calls ruled out what had seemed possible.
        """
        ends = sorted(call.ended for call in calls if call.required)
        low, high, middle = invalid.turn, len(ends) - 1, invalid.turn
        while low < high:
            if self._search(key, self._prefix(calls, ends[middle])).verdict is Verdict.INVALID:
                high = middle
            else:
                low = middle + 1
            middle = (low + high) // 2
        # For its states, all that was possible before its last call counts: so nothing is left out in advance.
        start, known = self._model.initial(key), self._prefix(calls, ends[high])
        outcome = Search(known, start, self._model.may_help, self._max_steps).run()
        stuck = next(call for call in known if call.required and call.ended == ends[high])
        states = outcome.states if outcome.stuck is stuck else []
        return Outcome(Verdict.INVALID, outcome.steps, stuck, high, states)

    def _prefix(self, calls: Sequence[Call], end: int) -> list[Call]:
        """What was known at this line of the history: what ended later may still happen, but for what failed."""
        known: list[Call] = []
        for call in calls:
            if not call.required or call.ended <= end:
                known += [call] if call.invoked < end else []
            elif call.invoked < end and call.operation.is_ok:
                opened = Operation(call.operation.invoke, None)
                effect = self._model.effect(self._words[opened.invoke.f], opened)
                known += [] if effect is None else [Call(opened, effect, required=False)]
        return known

    def _report(self, key: Hashable, calls: Sequence[Call], outcome: Outcome) -> Results:
        """`stuck` could not happen in any of these states, nor after anything else that was open with it."""
        assert outcome.stuck is not None
        stuck = outcome.stuck
        begun = [call for call in calls if call.invoked < stuck.ended and call.invoked != stuck.invoked]
        helpful = {
            call.invoked
            for call in self._model.needed(self._model.initial(key), self._prefix(calls, stuck.ended))
        }
        perhaps = [call for call in begun if not call.required and call.invoked in helpful]
        return {
            "key": plain(key),
            "stuck": _row(stuck),
            "placed": outcome.turn,
            "states": [plain(state) for state in outcome.states[:_SHOWN_MAX]],
            "concurrent": [_row(call) for call in begun if call.required and call.ended > stuck.invoked],
            "perhaps": [_row(call) for call in perhaps[-_SHOWN_MAX:]],
        }


def _row(call: Call) -> Results:
    invoke, end = call.operation.invoke, call.operation.end
    return {
        "f": invoke.f,
        "process": invoke.process,
        "asked": invoke.value,
        "told": end.value if call.required and end is not None else None,
        "invoked": call.invoked,
        "ended": call.ended if call.required else None,
    }


def plain(value: State) -> Any:
    """A state as results.json can hold it."""
    if isinstance(value, frozenset):
        return sorted((plain(each) for each in value), key=repr)
    return [plain(each) for each in value] if isinstance(value, tuple) else value
