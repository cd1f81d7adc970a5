"""A quorum that waits for the heal, although most of its voters are well, has stalled."""

from dataclasses import replace

import pytest

from tests.jepsen.checkers.availability import FAULT_KEY, HEAL
from tests.jepsen.checkers.progress import SPARING, Progress
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.generator import SECOND_NS
from tests.jepsen.core.history import NEMESIS, History, Op, OpType
from tests.jepsen.faults.catalogue import FAULTS


class ScriptedHistory:
    """Everything happens at the second that is given; a fault and its heal are moments, unless told when they end."""

    def __init__(self) -> None:
        self._ops: list[Op] = []
        self._writers = 0

    def nemesis(
        self, second: float, f: str, value: object = None, error: str | None = None, ends: float | None = None
    ) -> "ScriptedHistory":
        self._add(Op(type=OpType.INVOKE, f=f, value=value, process=NEMESIS), second)
        done = Op(type=OpType.INFO, f=f, value=value, process=NEMESIS, error=error)
        self._add(done, second if ends is None else ends)
        return self

    def write(self, begins: float, ends: float, kind: OpType = OpType.OK) -> "ScriptedHistory":
        self._writers += 1
        self._add(Op(type=OpType.INVOKE, f="create", process=self._writers), begins)
        self._add(Op(type=kind, f="create", process=self._writers), ends)
        return self

    def judged(self) -> Results:
        history = History()
        for op in sorted(self._ops, key=lambda op: op.time_ns):
            history.append(op)
        return Progress({"create"}).check(history)

    def _add(self, op: Op, second: float) -> None:
        self._ops.append(replace(op, time_ns=round(second * SECOND_NS)))


def hurt(f: str = "kill-leader", lasts: float = 11) -> ScriptedHistory:
    """Two faults with an unanswered write in each, and one write that succeeds after the heal."""
    scripted = ScriptedHistory()
    for begin in (10.0, 40.0):
        scripted.nemesis(begin, f).nemesis(begin + lasts, HEAL).write(begin + 1, begin + 6, OpType.INFO)
    return scripted.write(70, 71)


def test_no_write_in_all_the_time_that_one_node_was_hurt_is_invalid() -> None:
    results = hurt().judged()
    assert results[VALID_KEY] is Verdict.INVALID
    assert (results["faults_of_one_node"], results["tried"]) == (2, 2)
    assert results["barren"] == [
        {"f": "kill-leader", "start_ms": start, "heal_ms": start + 11_000} for start in (10_000, 40_000)
    ]


def test_one_write_in_one_of_the_faults_is_progress() -> None:
    assert hurt().write(42, 44).judged()[VALID_KEY] is Verdict.VALID


def test_a_write_that_only_the_heal_let_through_is_none() -> None:
    assert hurt().write(42, 52).judged()[VALID_KEY] is Verdict.INVALID


def test_a_write_while_the_heal_goes_on_is_none() -> None:
    scripted = ScriptedHistory()
    for begin in (10.0, 40.0):
        scripted.nemesis(begin, "kill-leader").write(begin + 1, begin + 6, OpType.INFO)
        scripted.nemesis(begin + 11, HEAL, ends=begin + 15).write(begin + 12, begin + 13)
    assert scripted.judged()[VALID_KEY] is Verdict.INVALID


NO_ATTEMPT = ScriptedHistory().nemesis(1, "kill-one").nemesis(30, HEAL)


@pytest.mark.parametrize("scripted", [hurt(lasts=9), hurt("kill-majority"), NO_ATTEMPT])
def test_too_little_time_a_lost_majority_and_no_attempt_prove_nothing(scripted: ScriptedHistory) -> None:
    assert scripted.judged()[VALID_KEY] is Verdict.VALID


def test_faults_at_the_same_time_may_take_a_majority_away() -> None:
    scripted = hurt().nemesis(12, "slow-links").nemesis(18, HEAL, {FAULT_KEY: "slow-links"})
    assert (scripted.judged()[VALID_KEY], scripted.judged()["faults_of_one_node"]) == (Verdict.VALID, 1)


def test_a_fault_that_could_not_be_brought_about_is_none() -> None:
    scripted = (
        ScriptedHistory()
        .nemesis(1, "kill-leader", error="no leader")
        .nemesis(30, HEAL)
        .write(2, 7, OpType.INFO)
    )
    assert (scripted.judged()[VALID_KEY], scripted.judged()["faults_of_one_node"]) == (Verdict.VALID, 0)


def test_the_faults_it_is_about_are_in_the_catalogue() -> None:
    assert FAULTS.keys() >= SPARING
