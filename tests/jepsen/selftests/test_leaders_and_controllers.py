"""Claims to lead, and the epochs that brokers are given: made histories, one for each anomaly."""

from typing import Any

from tests.jepsen.checkers.broker_epochs import REJOIN, BrokerEpochs
from tests.jepsen.checkers.claims import CLAIM, Claims
from tests.jepsen.checkers.faults_happened import FaultsHappened
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.generator import SECOND_NS
from tests.jepsen.core.history import NEMESIS, History, Op, OpType


class ScriptedHistory:
    def __init__(self) -> None:
        self.ops: list[Op] = []

    def did(
        self, f: str, value: Any, at_s: float, process: int = 0, error: str | None = None, took_s: float = 0.1
    ) -> "ScriptedHistory":
        begin = Op(type=OpType.INVOKE, f=f, process=process, time_ns=round(at_s * SECOND_NS))
        kind = OpType.INFO if process == NEMESIS else OpType.OK
        end = Op(
            type=kind,
            f=f,
            value=value,
            process=process,
            time_ns=round((at_s + took_s) * SECOND_NS),
            error=error,
        )
        self.ops += [begin, end]
        return self

    def claims(self, controller: int, epoch: int, at_s: float, took_s: float = 0.1) -> "ScriptedHistory":
        value = {"controller": controller, "leads": True, "epoch": epoch}
        return self.did(CLAIM, value, at_s, controller, took_s=took_s)

    def rejoined(self, epoch: int, at_s: float, refused: bool | None = True) -> "ScriptedHistory":
        return self.did(REJOIN, {"broker": 9, "epoch": epoch, "old_epoch_refused": refused}, at_s)

    @property
    def history(self) -> History:
        return History(self.ops)


def claims(scripted: ScriptedHistory) -> Results:
    return Claims().check(scripted.history)


def test_a_claim_of_an_epoch_is_followed_by_no_earlier_one() -> None:
    results = claims(ScriptedHistory().claims(1, 4, 0).claims(2, 3, 1).claims(1, 3, 2))
    assert results[VALID_KEY] is Verdict.INVALID
    assert results["went-back"] == [{"controller": 1, "epochs": [4, 3], "indexes": [1, 5]}]


def test_the_claimer_and_the_writer_of_an_epoch_are_one() -> None:
    scripted = (
        ScriptedHistory().claims(1, 2, 0).did("write-at", {"controller": 3, "epoch": 2, "offset": 9}, 1)
    )
    results = claims(scripted)
    assert (results[VALID_KEY], results["two-leaders_count"]) == (Verdict.INVALID, 1)


def test_leaders_that_follow_each_other_are_valid() -> None:
    scripted = ScriptedHistory().claims(1, 1, 0).claims(1, 1, 9).claims(2, 2, 12).claims(2, 2, 30)
    assert claims(scripted)[VALID_KEY] is Verdict.VALID


def test_a_deposed_leader_that_still_claims_its_epoch_much_later_leads_on() -> None:
    scripted = ScriptedHistory().claims(1, 1, 0).claims(2, 2, 3).claims(1, 1, 4).claims(1, 1, 12)
    results = claims(scripted)
    assert results[VALID_KEY] is Verdict.INVALID
    assert results["leads-on"][0]["controller"] == 1


def test_a_leader_that_was_paused_answers_late_once() -> None:
    """Asked before it was paused, or while it was; the answer comes when it goes on, and then it notices."""
    scripted = ScriptedHistory().claims(1, 1, 0).claims(2, 2, 3).claims(1, 1, 4, took_s=20).claims(1, 1, 24.5)
    assert claims(scripted)[VALID_KEY] is Verdict.VALID


def test_two_controllers_that_claim_one_epoch_are_two_leaders() -> None:
    results = claims(ScriptedHistory().claims(1, 4, 0).claims(2, 4, 1))
    assert results[VALID_KEY] is Verdict.INVALID
    assert results["two-leaders"][0]["controllers"] == [1, 2]


def test_without_a_claim_nothing_is_known() -> None:
    scripted = ScriptedHistory().did(CLAIM, {"controller": 1, "leads": False, "epoch": -1}, 0)
    assert claims(scripted)[VALID_KEY] is Verdict.UNKNOWN


def test_epochs_of_a_broker_rise() -> None:
    scripted = ScriptedHistory().rejoined(10, 0, None).rejoined(14, 1)
    assert BrokerEpochs().check(scripted.history)[VALID_KEY] is Verdict.VALID
    assert BrokerEpochs().check(ScriptedHistory().rejoined(10, 0).history)[VALID_KEY] is Verdict.UNKNOWN


def test_an_epoch_that_is_given_again_is_invalid() -> None:
    results = BrokerEpochs().check(ScriptedHistory().rejoined(10, 0).rejoined(14, 1).rejoined(10, 2).history)
    assert results[VALID_KEY] is Verdict.INVALID
    assert results["reused"][0]["epochs"] == [14, 10]


def test_an_old_epoch_that_is_still_taken_is_invalid() -> None:
    results = BrokerEpochs().check(
        ScriptedHistory().rejoined(10, 0, None).rejoined(14, 1, refused=False).history
    )
    assert results[VALID_KEY] is Verdict.INVALID
    assert results["old-epoch-accepted_count"] == 1


def test_a_broker_whose_old_epochs_were_not_tried_leaves_doubt() -> None:
    results = BrokerEpochs().check(ScriptedHistory().rejoined(5, 0, None).rejoined(9, 3, None).history)
    assert (results[VALID_KEY], results["old_epochs_tried"]) == (Verdict.UNKNOWN, 0)


def test_a_nemesis_that_did_nothing_leaves_doubt() -> None:
    done = ScriptedHistory().did("kill-one", {"nodes": [1]}, 1, NEMESIS).did("heal", {}, 2, NEMESIS)
    assert FaultsHappened(each=True).check(done.history)[VALID_KEY] is Verdict.VALID
    refused = (
        ScriptedHistory()
        .did("kill-one", None, 1, NEMESIS, error="node 1 is taken")
        .did("heal", {}, 2, NEMESIS)
    )
    results = FaultsHappened(each=True).check(refused.history)
    assert results[VALID_KEY] is Verdict.UNKNOWN
    assert results["refused"] == {"kill-one: node 1 is taken": 1}


def test_a_fault_that_was_asked_for_and_never_came_leaves_doubt() -> None:
    scripted = ScriptedHistory().did("kill-one", {"nodes": [1]}, 1, NEMESIS).did("heal", {}, 2, NEMESIS)
    scripted.did("bridge", None, 3, NEMESIS, error="no node to stand between")
    results = FaultsHappened(each=True).check(scripted.history)
    assert (results[VALID_KEY], results["never_happened"]) == (Verdict.UNKNOWN, ["bridge"])
    assert FaultsHappened(each=False).check(scripted.history)[VALID_KEY] is Verdict.VALID


def test_a_heal_that_went_wrong_leaves_doubt() -> None:
    scripted = ScriptedHistory().did("kill-one", {"nodes": [1]}, 1, NEMESIS)
    scripted.did("heal", {}, 2, NEMESIS, error="kill-one: OSError: no such node")
    assert FaultsHappened(each=True).check(scripted.history)[VALID_KEY] is Verdict.UNKNOWN
