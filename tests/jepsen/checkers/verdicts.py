"""Judges a history. A checker that stumbles has proved nothing: its verdict is unknown, never valid."""

import traceback
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

from tests.jepsen.core.history import History, OpType

Results = dict[str, Any]
VALID_KEY = "valid?"


class Verdict(StrEnum):
    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"


# In results.json as Jepsen writes them.
_AS_JSON: Mapping[Verdict, object] = {
    Verdict.VALID: True,
    Verdict.INVALID: False,
    Verdict.UNKNOWN: "unknown",
}
EXIT_STATUS = {Verdict.VALID: 0, Verdict.INVALID: 1, Verdict.UNKNOWN: 2}


class Checker(Protocol):
    name: str

    def check(self, history: History) -> Results:
        """Plain values for results.json; `valid?` holds the Verdict."""
        ...


def check_safely(checker: Checker, history: History) -> Results:
    """What the checker says; unknown, with the reason, when it raises."""
    try:
        results = checker.check(history)
        assert isinstance(results[VALID_KEY], Verdict), f"{checker.name} gave no verdict"
    except Exception as error:  # noqa: BLE001 - a broken checker must not pass for a valid history
        return {
            VALID_KEY: Verdict.UNKNOWN,
            "error": f"the checker failed: {type(error).__name__}: {error}",
            "traceback": traceback.format_exc(),
        }
    return results


def check_all(checkers: Sequence[Checker], history: History) -> Results:
    """Each checker's results under its name, and the worst verdict."""
    assert checkers, "nothing would be checked"
    found: Results = {checker.name: check_safely(checker, history) for checker in checkers}
    return {VALID_KEY: worst(each[VALID_KEY] for each in found.values()), **found}


def worst(verdicts: Any) -> Verdict:
    """A violation outweighs doubt, doubt outweighs a pass; of nothing, nothing is known."""
    seen = set(verdicts)
    for verdict in (Verdict.INVALID, Verdict.UNKNOWN, Verdict.VALID):
        if verdict in seen:
            return verdict
    return Verdict.UNKNOWN


def as_json(results: Any) -> Any:
    """Results with each Verdict as Jepsen writes it: true, false or "unknown"."""
    if isinstance(results, Verdict):
        return _AS_JSON[results]
    if isinstance(results, Mapping):
        return {str(key): as_json(value) for key, value in results.items()}
    if isinstance(results, list | tuple):
        return [as_json(value) for value in results]
    return results


class Stats:
    """How many operations of each kind ended how; a kind that never succeeded was not tested: unknown, unless it is
    `incidental`."""

    name = "stats"

    def __init__(self, incidental: Collection[str] = ()) -> None:
        self._incidental = frozenset(incidental)

    def check(self, history: History) -> Results:
        counts: dict[str, Counter[str]] = {}
        for operation in history.operations():
            counts.setdefault(operation.invoke.f, Counter())[operation.kind.value] += 1
        by_f = {f: _row(count) for f, count in sorted(counts.items())}
        tested = bool(by_f) and all(row["ok"] for f, row in by_f.items() if f not in self._incidental)
        total = sum((Counter(count) for count in counts.values()), Counter[str]())
        return {
            VALID_KEY: Verdict.VALID if tested else Verdict.UNKNOWN,
            **_row(total),
            "by_f": by_f,
            "errors": dict(_errors(history).most_common(20)),
        }


def _row(count: Counter[str]) -> dict[str, int]:
    return {
        "count": count.total(),
        **{kind.value: count[kind.value] for kind in (OpType.OK, OpType.FAIL, OpType.INFO)},
    }


def _errors(history: History) -> Counter[str]:
    return Counter(
        f"{op.f} {op.type.value}: {op.error}" for op in history if op.is_client and op.error is not None
    )
