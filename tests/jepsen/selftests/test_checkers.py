"""Each checker finds what it is for, in histories made by hand, and nothing in good ones."""

from pathlib import Path
from typing import Any

import pytest

from tests.jepsen.checkers.availability import HEAL, Availability
from tests.jepsen.checkers.set_full import SetFull
from tests.jepsen.checkers.verdicts import (
    VALID_KEY,
    Results,
    Stats,
    Verdict,
    as_json,
    check_all,
    check_safely,
    worst,
)
from tests.jepsen.core.history import (
    NEMESIS,
    History,
    MalformedHistory,
    Op,
    OpType,
    read_history,
    write_history,
)

A, B = 11, 12
STEP_NS = 10_000_000


class ScriptedHistory:
    """A history, told one operation after the other; each line is 10 ms after the one before."""

    def __init__(self) -> None:
        self.history = History()
        self._next_process = 0

    def op(self, kind: OpType, f: str, value: Any, process: int, **more: Any) -> Op:
        time_ns = len(self.history) * STEP_NS
        return self.history.append(Op(type=kind, f=f, value=value, process=process, time_ns=time_ns, **more))

    def invoke(self, f: str, value: Any = None, **more: Any) -> int:
        """Answers the process, for `end`."""
        self._next_process += 1
        self.op(OpType.INVOKE, f, value, self._next_process, **more)
        return self._next_process

    def create(self, element: int, kind: OpType = OpType.OK, node: int = A, **more: Any) -> "ScriptedHistory":
        self.op(kind, "create", element, self.invoke("create", element, node=node, **more), node=node, **more)
        return self

    def delete(self, element: int, kind: OpType = OpType.OK, node: int = A) -> "ScriptedHistory":
        self.op(kind, "delete", element, self.invoke("delete", element, node=node), node=node)
        return self

    def read(self, node: int, *elements: int, final: bool = False) -> "ScriptedHistory":
        process = self.invoke("list", node=node, final=final)
        self.op(OpType.OK, "list", list(elements), process, node=node, final=final)
        return self

    def final(self, *elements: int) -> "ScriptedHistory":
        return self.read(A, *elements, final=True).read(B, *elements, final=True)

    def nemesis(self, f: str, value: Any = None) -> "ScriptedHistory":
        self.op(OpType.INVOKE, f, None, NEMESIS)
        self.op(OpType.INFO, f, value, NEMESIS)
        return self

    def judged(self) -> Results:
        return SetFull((A, B)).check(self.history)


def elements(found: list[dict[str, Any]]) -> list[int]:
    return [each["element"] for each in found]


def test_a_good_history_is_valid() -> None:
    results = ScriptedHistory().create(1).read(A, 1).create(2).delete(1).read(A, 2).final(2).judged()
    assert results[VALID_KEY] is Verdict.VALID
    assert (results["acknowledged_count"], results["deleted_count"], results["stable_count"]) == (2, 1, 1)


def test_an_acknowledged_create_that_no_final_read_shows_is_lost() -> None:
    results = ScriptedHistory().create(1).create(2).final(2).judged()
    assert results[VALID_KEY] is Verdict.INVALID
    assert results["lost"] == [
        {"element": 1, "missing_on": [A, B], "known_by": "acknowledgement", "known_at": 1}
    ]


def test_an_acknowledged_create_that_one_broker_never_shows_is_lost() -> None:
    results = ScriptedHistory().create(1).create(2).read(A, 1, 2, final=True).read(B, 2, final=True).judged()
    assert results[VALID_KEY] is Verdict.INVALID
    assert results["lost"][0]["missing_on"] == [B]


def test_a_create_that_was_not_acknowledged_but_a_read_showed_is_lost_too() -> None:
    """Clients acted upon it: what a broker showed was committed, or should not have been shown."""
    results = ScriptedHistory().create(1, OpType.INFO).read(A, 1).create(2).final(2).judged()
    assert results[VALID_KEY] is Verdict.INVALID
    assert results["lost"][0]["known_by"] == "read"


def test_only_the_last_final_read_of_a_broker_counts() -> None:
    scripted = ScriptedHistory().create(1)
    results = scripted.read(A, final=True).read(A, 1, final=True).read(B, 1, final=True).judged()
    assert results[VALID_KEY] is Verdict.VALID
    assert results["stale_reads"] == 1


def test_what_one_broker_had_shown_as_gone_does_not_come_back_on_another() -> None:
    """The answer to the delete was lost; that it had its effect is known all the same."""
    scripted = ScriptedHistory().create(1).create(2).read(A, 1, 2).delete(1, OpType.INFO).read(A, 2)
    results = scripted.read(A, 2, final=True).read(B, 1, 2, final=True).judged()
    assert results[VALID_KEY] is Verdict.INVALID
    assert (elements(results["reappeared"]), results["reappeared"][0]["shown_on"]) == ([1], [B])


def test_a_delete_in_doubt_may_have_its_effect_between_two_final_reads() -> None:
    scripted = ScriptedHistory().create(1).create(2).read(A, 1, 2).delete(1, OpType.INFO)
    scripted.read(A, 1, 2, final=True).read(A, 2, final=True).read(B, 1, 2, final=True)
    assert scripted.judged()[VALID_KEY] is Verdict.VALID


@pytest.mark.parametrize("kind", [OpType.OK, OpType.INFO])
def test_what_may_have_been_deleted_is_not_lost(kind: OpType) -> None:
    assert ScriptedHistory().create(1).create(2).delete(1, kind).final(2).judged()[VALID_KEY] is Verdict.VALID


def test_a_delete_that_surely_failed_excuses_nothing() -> None:
    results = ScriptedHistory().create(1).create(2).delete(1, OpType.FAIL).final(2).judged()
    assert elements(results["lost"]) == [1]


def test_a_deleted_element_in_a_final_read_has_reappeared() -> None:
    results = ScriptedHistory().create(1).create(2).delete(1).read(A, 2).final(1, 2).judged()
    assert results[VALID_KEY] is Verdict.INVALID
    assert set(elements(results["reappeared"])) == {1}


def test_an_element_that_one_broker_shows_again_has_reappeared() -> None:
    scripted = ScriptedHistory().create(1).create(2).read(A, 1, 2).delete(1).read(A, 2).read(A, 1, 2)
    results = scripted.read(A, 2, final=True).read(B, 2, final=True).judged()
    assert results[VALID_KEY] is Verdict.INVALID
    assert elements(results["reappeared"]) == [1]


def test_a_broker_that_goes_back_though_nothing_was_deleted_is_found() -> None:
    results = ScriptedHistory().create(1).read(A, 1).read(A).final(1).judged()
    assert results[VALID_KEY] is Verdict.INVALID
    assert results["vanished"] == [{"element": 1, "node": A, "shown_at": 3, "missing_at": 5}]


def test_reads_of_one_broker_at_the_same_time_are_in_no_order() -> None:
    scripted = ScriptedHistory().create(1)
    early = scripted.invoke("list", node=A)
    late = scripted.invoke("list", node=A)
    scripted.op(OpType.OK, "list", [1], late, node=A)
    scripted.op(OpType.OK, "list", [], early, node=A)
    assert scripted.final(1).judged()[VALID_KEY] is Verdict.VALID


def test_a_stale_read_is_counted_with_its_lag_and_is_no_violation() -> None:
    results = ScriptedHistory().create(1).read(A, 1).read(B).read(B).final(1).judged()
    assert results[VALID_KEY] is Verdict.VALID
    assert (results["stale_count"], results["stale_reads"]) == (1, 2)
    # Known at line 1, and last missed by the read that was invoked at line 6.
    assert results["longest_stale_ms"] == 50
    assert results["worst_stale"]["node"] == B
    assert results["stable_latency_ms"]["1.0"] == 50


def test_a_read_that_still_shows_what_was_deleted_is_stale() -> None:
    results = ScriptedHistory().create(1).create(2).read(A, 1, 2).delete(1).read(A, 1, 2).final(2).judged()
    assert results[VALID_KEY] is Verdict.VALID
    assert (results["stale_count"], results["longest_stale_ms"]) == (1, 10)


def test_a_read_that_began_before_the_acknowledgement_is_not_stale() -> None:
    scripted = ScriptedHistory()
    create = scripted.invoke("create", 1, node=A)
    read = scripted.invoke("list", node=A)
    scripted.op(OpType.OK, "create", 1, create, node=A)
    scripted.op(OpType.OK, "list", [], read, node=A)
    assert scripted.final(1).judged()["stale_reads"] == 0


def test_an_info_that_shows_up_later_is_recovered_and_valid() -> None:
    results = ScriptedHistory().create(1).create(2, OpType.INFO).read(A, 1).read(A, 1, 2).final(1, 2).judged()
    assert results[VALID_KEY] is Verdict.VALID
    assert (results["unsure_count"], results["recovered_count"]) == (1, 1)


def test_an_info_that_never_shows_up_is_valid_too() -> None:
    results = ScriptedHistory().create(1).create(2, OpType.INFO).final(1).judged()
    assert results[VALID_KEY] is Verdict.VALID
    assert (results["unsure_count"], results["recovered_count"]) == (1, 0)


def test_a_failed_create_that_is_read_is_unexpected() -> None:
    results = ScriptedHistory().create(1).create(2, OpType.FAIL).final(1, 2).judged()
    assert results[VALID_KEY] is Verdict.INVALID
    assert results["unexpected"][0]["why"] == "its create failed"


@pytest.mark.parametrize(
    "scripted",
    [ScriptedHistory().create(1).final(1, 9), ScriptedHistory().read(A, 2).create(1).create(2).final(1, 2)],
    ids=["never created", "read before it was created"],
)
def test_an_element_that_no_client_created_is_unexpected(scripted: ScriptedHistory) -> None:
    results = scripted.judged()
    assert results[VALID_KEY] is Verdict.INVALID
    assert results["unexpected_count"] == 1


def test_an_element_twice_in_one_read_is_duplicated() -> None:
    results = ScriptedHistory().create(1).create(2).read(A, 1, 2, 1).final(1, 2).judged()
    assert results[VALID_KEY] is Verdict.INVALID
    assert elements(results["duplicated"]) == [1]


def test_a_create_after_the_last_read_is_never_read_and_leaves_doubt() -> None:
    results = ScriptedHistory().create(1).final(1).create(2).judged()
    assert results[VALID_KEY] is Verdict.UNKNOWN
    assert results["never_read"] == [2]


def test_a_broker_without_a_final_read_leaves_doubt() -> None:
    results = ScriptedHistory().create(1).read(A, 1, final=True).read(B, 1).judged()
    assert results[VALID_KEY] is Verdict.UNKNOWN
    assert results["brokers_without_final_read"] == [B]


def test_a_violation_outweighs_doubt() -> None:
    results = ScriptedHistory().create(1).create(2).read(A, 2, final=True).judged()
    assert results[VALID_KEY] is Verdict.INVALID


def test_an_empty_history_proves_nothing() -> None:
    assert ScriptedHistory().judged()[VALID_KEY] is Verdict.UNKNOWN
    assert Stats().check(History())[VALID_KEY] is Verdict.UNKNOWN


class _Crashing:
    name = "crashing"

    def check(self, history: History) -> Results:
        raise ZeroDivisionError("of course")


class _Mute:
    name = "mute"

    def check(self, history: History) -> Results:
        return {VALID_KEY: True}


@pytest.mark.parametrize("checker", [_Crashing(), _Mute()])
def test_a_checker_that_crashes_or_gives_no_verdict_makes_the_run_unknown(checker: Any) -> None:
    scripted = ScriptedHistory().create(1).read(A, 1).final(1)
    results = check_all([SetFull((A, B)), checker], scripted.history)
    assert results["set"][VALID_KEY] is Verdict.VALID
    assert results[checker.name][VALID_KEY] is Verdict.UNKNOWN
    assert results[VALID_KEY] is Verdict.UNKNOWN
    assert "the checker failed" in results[checker.name]["error"]


def test_a_crash_does_not_hide_a_violation() -> None:
    results = check_all(
        [_Crashing(), SetFull((A, B))], ScriptedHistory().create(1).create(2).final(2).history
    )
    assert results[VALID_KEY] is Verdict.INVALID


def test_a_history_that_cannot_be_makes_the_run_unknown() -> None:
    scripted = ScriptedHistory().create(1).final(1)
    scripted.op(OpType.OK, "create", 5, process=99, node=A)
    with pytest.raises(MalformedHistory):
        SetFull((A, B)).check(scripted.history)
    assert check_safely(SetFull((A, B)), scripted.history)[VALID_KEY] is Verdict.UNKNOWN


def test_a_kind_of_operation_that_never_succeeded_was_not_tested() -> None:
    scripted = ScriptedHistory().create(1).delete(1, OpType.INFO).final(1)
    results = Stats().check(scripted.history)
    assert results[VALID_KEY] is Verdict.UNKNOWN
    assert results["by_f"]["delete"] == {"count": 1, "ok": 0, "fail": 0, "info": 1}


def test_availability_measures_the_gap_around_a_fault() -> None:
    scripted = ScriptedHistory().create(1).nemesis("isolate-leader", {"leader": 3}).create(2, OpType.INFO)
    scripted.create(3).nemesis(HEAL, {"leader": 1}).create(4)
    results = Availability({"create", "delete"}, {"list"}).check(scripted.history)
    (fault,) = results["faults"]
    assert results[VALID_KEY] is Verdict.VALID
    assert fault["value"] == {"leader": 3}
    # Acknowledged at lines 1 and 7; the fault began at line 3.
    assert (fault["longest_without_write_ms"], fault["first_write_after_ms"]) == (60, 40)
    assert fault["writes_in_fault"] == 1


def test_a_cluster_that_takes_no_write_after_the_heal_is_invalid() -> None:
    scripted = ScriptedHistory().create(1).nemesis("isolate-leader").nemesis(HEAL).create(2, OpType.INFO)
    assert Availability({"create", "delete"}, {"list"}).check(scripted.history)[VALID_KEY] is Verdict.INVALID


def test_verdicts_are_written_as_jepsen_writes_them() -> None:
    results = {VALID_KEY: Verdict.INVALID, "a": {VALID_KEY: Verdict.UNKNOWN}, "b": [Verdict.VALID]}
    assert as_json(results) == {VALID_KEY: False, "a": {VALID_KEY: "unknown"}, "b": [True]}
    assert worst([]) is Verdict.UNKNOWN


def test_a_history_survives_its_file(tmp_path: Path) -> None:
    scripted = ScriptedHistory().create(1).nemesis("isolate-leader", {"leader": 1}).read(B, 1, final=True)
    write_history(scripted.history, tmp_path / "history.jsonl")
    assert list(read_history(tmp_path / "history.jsonl")) == list(scripted.history)


def test_a_line_that_is_no_operation_is_named(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    write_history(ScriptedHistory().create(1).history, path)
    path.write_text(path.read_text() + '{"type": "ok"}\n')
    with pytest.raises(MalformedHistory, match="operation 2 "):
        read_history(path)


def test_what_is_incidental_need_not_succeed() -> None:
    scripted = ScriptedHistory().create(1).create(2)
    scripted.delete(1, OpType.FAIL)
    assert Stats().check(scripted.history)[VALID_KEY] is Verdict.UNKNOWN
    assert Stats({"delete"}).check(scripted.history)[VALID_KEY] is Verdict.VALID
