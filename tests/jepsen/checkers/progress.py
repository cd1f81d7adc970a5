"""A quorum goes on without one of its voters: while a single node is hurt, writes are acknowledged after an election.

Availability asks for writes after the heal; a quorum that only waits for the heal would satisfy it.
"""

from collections.abc import Collection, Sequence
from itertools import combinations
from typing import Final

from tests.jepsen.checkers.availability import Fault, faults_of
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.history import History, Operation

SPARING: Final = frozenset(
    {
        *("isolate-leader", "isolate-one", "deaf-leader", "mute-leader"),
        *("kill-leader", "kill-one", "pause-leader", "pause-one", "stop-leader"),
        *("bit-flip", "wiped-disk", "fsync-error", "write-error"),
    }
)
"""The faults that touch one controller, and leave the others in contact."""
ENOUGH_NS: Final = 15_000_000_000
"""So long without a leader is no election any more: several of them would have had their time."""


class Progress:
    """No write at all in all the time that only one node was hurt is **stalled**.

    It needs ENOUGH_NS of such time, and somebody who tried; otherwise it has nothing to say. The faults of a run are
    taken together, for one of them may fall into a moment in which the machine is busy.
    """

    name = "progress"

    def __init__(self, writes: Collection[str]) -> None:
        self._writes = frozenset(writes)

    def check(self, history: History) -> Results:
        spared = list(_spared(faults_of(history)))
        tried = [each for each in history.operations() if each.invoke.f in self._writes]
        begun = [each for each in tried if any(_is_begun_in(each, fault) for fault in spared)]
        acknowledged = [each for each in begun if any(_is_ended_in(each, fault) for fault in spared)]
        hurt_ns = sum((fault.heal_ns or 0) - fault.start_ns for fault in spared)
        stalled = bool(begun) and not acknowledged and hurt_ns >= ENOUGH_NS
        return {
            VALID_KEY: Verdict.INVALID if stalled else Verdict.VALID,
            "faults_of_one_node": len(spared),
            "hurt_s": round(hurt_ns / 1e9, 1),
            "tried": len(begun),
            "acknowledged": len(acknowledged),
            "stalled": stalled,
        }


def _spared(faults: Sequence[Fault]) -> list[Fault]:
    """Those that were healed, and had the cluster to themselves."""
    mixed = {fault.start_ns for pair in combinations(faults, 2) if _overlap(*pair) for fault in pair}
    return [
        fault
        for fault in faults
        if fault.f in SPARING and fault.heal_ns is not None and fault.start_ns not in mixed
    ]


def _overlap(one: Fault, other: Fault) -> bool:
    first, second = sorted((one, other), key=lambda fault: fault.start_ns)
    return first.heal_ns is None or second.start_ns < first.heal_ns


def _is_begun_in(operation: Operation, fault: Fault) -> bool:
    return fault.start_ns < operation.invoke.time_ns < (fault.heal_ns or 0)


def _is_ended_in(operation: Operation, fault: Fault) -> bool:
    end = operation.end
    return (
        end is not None
        and operation.is_ok
        and _is_begun_in(operation, fault)
        and end.time_ns < (fault.heal_ns or 0)
    )
