"""A quorum goes on without one of its voters: while a single node is hurt, writes are acknowledged after an election.

Availability asks for writes after the heal; a quorum that only waits for the heal would satisfy it.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from tests.jepsen.checkers.availability import Fault, faults_of
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.history import History, Operation

SPARING: Final = frozenset(
    {
        *("isolate-leader", "isolate-one", "deaf-leader", "mute-leader"),
        *("kill-leader", "kill-one", "pause-leader", "pause-one", "stop-leader"),
        *("bit-flip", "wiped-disk", "fsync-error", "write-error"),
    }
)
"""The faults that touch one controller, and leave the others in contact."""
ENOUGH_NS: Final = 20_000_000_000
"""So long without a leader is no election any more: several of them would have had their time."""


class Progress:
    """A fault of one node in which writes were tried and none was acknowledged before its heal was begun is **barren**;
    ENOUGH_NS of such faults make the run invalid, for then the cluster has **stalled**.

    They are taken together, because one of them may fall into a moment in which the machine is busy.
    """

    name = "progress"

    def __init__(self, writes: Collection[str]) -> None:
        self._writes = frozenset(writes)

    def check(self, history: History) -> Results:
        spared = [_Spared(fault.f, fault.start_ns, fault.heal_begun_ns or 0) for fault in _spared(history)]
        for each in history.operations():
            if each.invoke.f in self._writes:
                _count(each, spared)
        barren = [each for each in spared if each.tried and not each.acknowledged]
        stalled = sum(each.until_ns - each.start_ns for each in barren) >= ENOUGH_NS
        return {
            VALID_KEY: Verdict.INVALID if stalled else Verdict.VALID,
            "faults_of_one_node": len(spared),
            "tried": sum(each.tried for each in spared),
            "acknowledged": sum(each.acknowledged for each in spared),
            "barren": [
                {"f": each.f, "start_ms": each.start_ns // 1_000_000, "heal_ms": each.until_ns // 1_000_000}
                for each in barren
            ],
            "stalled": stalled,
        }


@dataclass(slots=True)
class _Spared:
    f: str
    start_ns: int
    until_ns: int
    tried: int = 0
    acknowledged: int = 0


def _count(write: Operation, faults: Iterable[_Spared]) -> None:
    """Only what was begun and ended within the fault."""
    end_ns = None if write.end is None or not write.is_ok else write.end.time_ns
    for fault in faults:
        if fault.start_ns < write.invoke.time_ns < fault.until_ns:
            fault.tried += 1
            fault.acknowledged += end_ns is not None and end_ns < fault.until_ns


def _spared(history: History) -> list[Fault]:
    """Those of one node that were healed, and had the cluster to themselves."""
    faults = faults_of(history)
    mixed = {fault.start_ns for pair in combinations(faults, 2) if _overlap(*pair) for fault in pair}
    return [
        fault
        for fault in faults
        if fault.f in SPARING and fault.heal_ns is not None and fault.start_ns not in mixed
    ]


def _overlap(one: Fault, other: Fault) -> bool:
    first, second = sorted((one, other), key=lambda fault: fault.start_ns)
    return first.heal_ns is None or second.start_ns < first.heal_ns
