"""How long no write succeeded, around each fault and in the whole run."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.history import History, Operation

HEAL = "heal"
FAULT_KEY = "fault"
STUCK_NS = 30_000_000_000


@dataclass(frozen=True, slots=True)
class Fault:
    """From the end of the nemesis' operation until all was healed (None: never), which may take a while: a node that
    was killed is ready again by then."""

    f: str
    start_ns: int
    heal_begun_ns: int | None
    heal_ns: int | None
    value: Any
    healed_value: Any


def faults_of(history: History) -> list[Fault]:
    """In the order of their beginnings; they may overlap. A fault that could not be brought about is none, and one
    whose heal went wrong goes on."""
    faults: list[Fault] = []
    for operation in history.operations(client=False):
        invoke, end = operation.invoke, operation.end
        if end is None or end.error is not None:
            continue
        if invoke.f != HEAL:
            faults.append(Fault(invoke.f, end.time_ns, None, None, end.value, None))
            continue
        only = (invoke.value or {}).get(FAULT_KEY)
        for place, fault in enumerate(faults):
            if fault.heal_ns is None and only in (None, fault.f):
                faults[place] = replace(
                    fault, heal_begun_ns=invoke.time_ns, heal_ns=end.time_ns, healed_value=end.value
                )
    return faults


class Availability:
    """Writes must succeed again once all is healed: if none does, the run is invalid; and so it is with a node that is
    **stuck**: it goes on to refuse the last writes for STUCK_NS after another one took its own.

    `writes_in_fault` counts those that were begun and acknowledged while the fault lasted: with one controller of
    three cut off, the other two have to go on.
    """

    name = "availability"

    def __init__(
        self,
        writes: Collection[str],
        reads: Collection[str],
        each: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """The names of the operations that count as such; `each` has the writes of each workload; everyone's
        must succeed again: where topics can be created, configs may still be refused for ever."""
        self._writes = frozenset(writes)
        self._reads = frozenset(reads)
        self._each = {"all": self._writes} if each is None else each

    def check(self, history: History) -> Results:
        operations = history.operations()
        tried = [each for each in operations if each.invoke.f in self._writes]
        writes = [each for each in tried if each.is_ok]
        read = [each for each in operations if each.invoke.f in self._reads]
        end_ns = _last_ns(tried)
        faults = faults_of(history)
        healed_ns = max((fault.heal_ns or 0 for fault in faults), default=0)
        unhealed = [fault for fault in faults if fault.heal_ns is None]
        tried_late = {each.invoke.f for each in tried if each.invoke.time_ns > healed_ns}
        late = {each.invoke.f for each in writes if each.invoke.time_ns > healed_ns}
        not_tried = [name for name, fs in self._each.items() if not tried_late & frozenset(fs)]
        not_recovered = [
            name for name, fs in self._each.items() if name not in not_tried and not late & frozenset(fs)
        ]
        stuck = _stuck([each for each in tried if each.invoke.final])
        recovered = not not_recovered
        verdict = Verdict.INVALID
        if recovered and not stuck:
            verdict = Verdict.UNKNOWN if unhealed or not_tried else Verdict.VALID
        return {
            VALID_KEY: verdict,
            "recovered": recovered,
            "not_recovered": not_recovered,
            "not_tried": not_tried,
            "stuck": stuck,
            "faults": [_fault_row(fault, writes, end_ns) for fault in faults],
            "longest_without_write_ms": _longest_gap_ms(writes, 0, end_ns, end_ns),
            "longest_without_read_ms": _longest_gap_ms(
                [each for each in read if each.is_ok], 0, _last_ns(read), _last_ns(read)
            ),
        }


def _stuck(last_writes: Sequence[Operation]) -> list[Results]:
    """Kind by kind, for a controller refuses lawfully what a broker takes."""
    rows = []
    for f in dict.fromkeys(each.invoke.f for each in last_writes):
        of_kind = [each for each in last_writes if each.invoke.f == f]
        served = {each.invoke.node for each in of_kind if each.is_ok}
        first_ns = min((_ended_ns(each) for each in of_kind if each.is_ok), default=None)
        refused = {each.invoke.node: each for each in of_kind if each.end and each.invoke.node not in served}
        rows += [
            {"node": node, "f": f, "error": each.end.error, "refused_for_ms": waited_ns // 1_000_000}
            for node, each in refused.items()
            if each.end and first_ns is not None and (waited_ns := each.end.time_ns - first_ns) >= STUCK_NS
        ]
    return rows


def _fault_row(fault: Fault, writes: Sequence[Operation], end_ns: int) -> Results:
    until_ns = end_ns if fault.heal_ns is None else fault.heal_ns
    first = min((_ended_ns(each) for each in writes if each.invoke.time_ns > fault.start_ns), default=None)
    return {
        "f": fault.f,
        "value": fault.value,
        "healed": fault.healed_value,
        "start_ms": fault.start_ns // 1_000_000,
        "heal_ms": None if fault.heal_ns is None else fault.heal_ns // 1_000_000,
        "first_write_after_ms": None if first is None else (first - fault.start_ns) // 1_000_000,
        "longest_without_write_ms": _longest_gap_ms(writes, fault.start_ns, until_ns, end_ns),
        "writes_in_fault": sum(
            each.invoke.time_ns > fault.start_ns and _ended_ns(each) < until_ns for each in writes
        ),
    }


def _longest_gap_ms(operations: Sequence[Operation], start_ns: int, until_ns: int, end_ns: int) -> int:
    """The longest time touching [start, until] in which none of these was acknowledged; tries ended at `end_ns`."""
    times = sorted([0, *(_ended_ns(each) for each in operations), end_ns])
    gaps = [
        later - earlier for earlier, later in pairwise(times) if later >= start_ns and earlier <= until_ns
    ]
    return max(gaps, default=0) // 1_000_000


def _last_ns(operations: Sequence[Operation]) -> int:
    return max((each.end.time_ns for each in operations if each.end is not None), default=0)


def _ended_ns(operation: Operation) -> int:
    assert operation.end is not None
    return operation.end.time_ns
