"""Latencies and rates of histories whose times are known."""

from tests.jepsen.checkers.performance import Performance
from tests.jepsen.checkers.verdicts import VALID_KEY, Verdict
from tests.jepsen.core.history import NEMESIS, History, Op, OpType

MS_NS = 1_000_000


class Timed:
    def __init__(self) -> None:
        self._ops: list[Op] = []
        self._processes = 0

    def op(self, f: str, begin_ms: int, end_ms: int | None, kind: OpType = OpType.OK) -> "Timed":
        self._processes += 1
        self._line(OpType.INVOKE, f, begin_ms, self._processes)
        return self if end_ms is None else self._line(kind, f, end_ms, self._processes)

    def nemesis(self, f: str, begin_ms: int, end_ms: int, error: str | None = None) -> "Timed":
        self._line(OpType.INVOKE, f, begin_ms, NEMESIS)
        return self._line(OpType.INFO, f, end_ms, NEMESIS, error)

    def _line(self, kind: OpType, f: str, at_ms: int, process: int, error: str | None = None) -> "Timed":
        self._ops.append(Op(type=kind, f=f, process=process, time_ns=at_ms * MS_NS, error=error))
        return self

    def history(self) -> History:
        return History(sorted(self._ops, key=lambda op: op.time_ns))


def test_quantiles_are_by_operation_and_by_outcome() -> None:
    scripted = Timed()
    for number in range(101):
        scripted.op("read", 10 * number, 10 * number + number)
    scripted.op("write", 0, 7, OpType.FAIL).op("write", 5, 2_000, OpType.INFO)
    latency = Performance().check(scripted.history())["latency_ms"]
    assert latency["read"] == {"ok": {"count": 101, "0.0": 0, "0.5": 50, "0.95": 95, "0.99": 99, "1.0": 100}}
    assert latency["write"]["fail"]["0.5"] == 7
    assert latency["write"]["info"]["1.0"] == 1_995
    assert "ok" not in latency["write"]


def test_throughput_is_what_ended_in_a_second() -> None:
    scripted = Timed()
    for number in range(8):
        scripted.op("read", 500 * number, 500 * number + 500, OpType.OK if number % 4 else OpType.FAIL)
    results = Performance().check(scripted.history())
    assert results["throughput"] == {"read": {"ok": 1.5, "fail": 0.5, "info": 0.0}}
    assert results[VALID_KEY] is Verdict.VALID


def test_a_faults_window_has_what_was_open_in_it() -> None:
    scripted = Timed().nemesis("partition", 900, 1_000).nemesis("heal", 1_900, 2_000)
    scripted.op("read", 0, 100).op("read", 950, 1_500).op("read", 1_500, 1_600).op("read", 1_990, 2_990)
    scripted.op("read", 2_100, 2_150)
    (fault,) = Performance().check(scripted.history())["faults"]
    assert (fault["f"], fault["start_ms"], fault["heal_ms"]) == ("partition", 1_000, 2_000)
    assert fault["latency_ms"]["read"]["ok"]["count"] == 3
    assert fault["latency_ms"]["read"]["ok"]["1.0"] == 1_000
    assert fault["throughput"]["read"]["ok"] == 2.0, "two ended in that second"


def test_a_fault_that_is_not_healed_lasts_to_the_end() -> None:
    scripted = Timed().nemesis("kill", 0, 1_000).op("read", 2_000, 3_000)
    (fault,) = Performance().check(scripted.history())["faults"]
    assert fault["heal_ms"] is None
    assert fault["throughput"]["read"]["ok"] == 0.5


def test_an_operation_without_an_end_has_no_latency() -> None:
    results = Performance().check(Timed().op("read", 0, None).op("write", 0, 1_000).history())
    assert "read" not in results["latency_ms"]
    assert results["throughput"]["read"] == {"ok": 0.0, "fail": 0.0, "info": 0.0}


def test_only_the_given_operations_are_measured() -> None:
    results = Performance({"read"}).check(Timed().op("read", 0, 1).op("write", 0, 1).history())
    assert list(results["latency_ms"]) == list(results["throughput"]) == ["read"]


def test_an_empty_history_is_valid_too() -> None:
    assert Performance().check(History()) == {
        VALID_KEY: Verdict.VALID,
        "latency_ms": {},
        "throughput": {},
        "faults": [],
    }
