"""How fast operations ended, and how many did, in the whole run and while each fault lasted. It judges nothing."""

from collections.abc import Collection, Iterable, Sequence

from tests.jepsen.checkers.availability import faults_of
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.history import History, Operation, OpType

QUANTILES = (0.0, 0.5, 0.95, 0.99, 1.0)
KINDS = (OpType.OK, OpType.FAIL, OpType.INFO)


class Performance:
    """`fs` are the operations to measure; without, all of the clients'.

    An operation belongs to a fault's window when it was open in it; one that never ended has no latency.
    """

    name = "performance"

    def __init__(self, fs: Collection[str] | None = None) -> None:
        self._fs = fs

    def check(self, history: History) -> Results:
        operations = [each for each in history.operations() if self._fs is None or each.invoke.f in self._fs]
        end_ns = history.last_time_ns
        return {
            VALID_KEY: Verdict.VALID,
            "latency_ms": latencies_ms(operations),
            "throughput": throughput(operations, 0, end_ns),
            "faults": [
                {
                    "f": fault.f,
                    "value": fault.value,
                    "start_ms": fault.start_ns // 1_000_000,
                    "heal_ms": None if fault.heal_ns is None else fault.heal_ns // 1_000_000,
                    **_window(operations, fault.start_ns, end_ns if fault.heal_ns is None else fault.heal_ns),
                }
                for fault in faults_of(history)
            ],
        }


def _window(operations: Sequence[Operation], start_ns: int, until_ns: int) -> Results:
    inside = [
        each
        for each in operations
        if each.invoke.time_ns <= until_ns and (each.end is None or each.end.time_ns >= start_ns)
    ]
    return {"latency_ms": latencies_ms(inside), "throughput": throughput(operations, start_ns, until_ns)}


def latencies_ms(operations: Iterable[Operation]) -> dict[str, dict[str, Results]]:
    """By f, then by how it ended: the count, and the quantiles of the time that it took."""
    by_f: dict[str, dict[str, list[float]]] = {}
    for each in operations:
        if each.end is not None:
            taken_ms = (each.end.time_ns - each.invoke.time_ns) / 1_000_000
            by_f.setdefault(each.invoke.f, {}).setdefault(each.kind.value, []).append(taken_ms)
    return {
        f: {
            kind.value: {"count": len(by_kind[kind.value]), **_quantiles(by_kind[kind.value])}
            for kind in KINDS
            if kind.value in by_kind
        }
        for f, by_kind in sorted(by_f.items())
    }


def _quantiles(values: Iterable[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {str(each): round(ordered[round(each * (len(ordered) - 1))], 3) for each in QUANTILES}


def throughput(operations: Iterable[Operation], start_ns: int, until_ns: int) -> dict[str, dict[str, float]]:
    """By f, then by how it ended: how many a second ended between the two times."""
    counts: dict[str, dict[str, int]] = {}
    for each in operations:
        by_kind = counts.setdefault(each.invoke.f, {kind.value: 0 for kind in KINDS})
        if each.end is not None and start_ns <= each.end.time_ns <= until_ns:
            by_kind[each.kind.value] += 1
    seconds = (until_ns - start_ns) / 1_000_000_000
    return {
        f: {kind: round(count / seconds, 3) if seconds > 0 else 0.0 for kind, count in by_kind.items()}
        for f, by_kind in sorted(counts.items())
    }
