"""Each anomaly of the observed log has its name, and good histories have none."""

from dataclasses import replace
from typing import Any

from kquorum.wire.proto import inspect_pb2 as pb
from tests.jepsen.checkers.log_order import ANOMALIES, LogOrder
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.generator import SECOND_NS
from tests.jepsen.core.history import History, Op, OpType
from tests.jepsen.core.inspector import Watermark

INFO, FAIL = OpType.INFO, OpType.FAIL
Record = list[Any]


class Log:
    """A history of commits and observes, told one after the other; `A` and `B` observe."""

    def __init__(self) -> None:
        self.history = History()
        self._processes = 0

    def begin(self, f: str, value: Any, *, final: bool = False) -> int:
        self._processes += 1
        self.history.append(Op(type=OpType.INVOKE, f=f, value=value, process=self._processes, final=final))
        return self._processes

    def end(self, process: int, value: Any, kind: OpType = OpType.OK) -> "Log":
        invoke = next(op for op in self.history if op.process == process)
        self.history.append(Op(type=kind, f=invoke.f, value=value, process=process, final=invoke.final))
        return self

    def commit(self, marker: str, kind: OpType = OpType.OK, offset: int | None = None) -> "Log":
        value = {"marker": marker} if offset is None else {"marker": marker, "offset": offset}
        return self.end(self.begin("commit", {"marker": marker}), value, kind)

    def observe(
        self, observer: str, *records: Record, final: bool = False, kind: OpType = OpType.OK, **more: Any
    ) -> "Log":
        process = self.begin("observe", {"observer": observer}, final=final)
        return self.end(process, {"observer": observer, "records": list(records), **more}, kind)

    def final(self, *records: Record) -> "Log":
        """Both are shown all of it, from the first record on, for they have started again."""
        for observer in ("A", "B"):
            self.observe(observer, *records, final=True, reset=True)
        return self

    def judged(self) -> Results:
        return LogOrder(("A", "B")).check(self.history)

    def anomalies(self) -> set[str]:
        results = self.judged()
        named = {each for each in ANOMALIES if results[each]}
        assert (results[VALID_KEY] is Verdict.INVALID) == bool(named)
        return named


def record(offset: int, marker: str | None = None, epoch: int = 1) -> Record:
    """What a leader of one epoch writes at an offset."""
    return [offset, epoch, f"hash of {marker} in {epoch}", marker]


FIRST, X, Y = record(0), record(1, "x"), record(2, "y")


def good() -> Log:
    scripted = Log().commit("x", offset=1).observe("A", FIRST, X).observe("B", FIRST).commit("y")
    return scripted.observe("A", Y, final=True).observe("B", X, Y, final=True)


def test_a_good_history_is_valid() -> None:
    results = good().judged()
    assert results[VALID_KEY] is Verdict.VALID
    assert (results["records"], results["last_offset"], results["acknowledged_count"]) == (3, 2, 2)
    assert results["observers"] == ["A", "B"]


def test_a_record_left_out_is_a_gap() -> None:
    scripted = (
        Log().commit("x").commit("y").observe("A", FIRST, X, Y, final=True).observe("B", FIRST, Y, final=True)
    )
    assert scripted.anomalies() == {"gap"}
    (row,) = scripted.judged()["gap"]
    assert (row["observer"], row["offset"], row["expected"]) == ("B", 2, 1)


def test_an_observer_that_does_not_begin_at_the_first_record_has_a_gap() -> None:
    scripted = Log().commit("x").observe("A", FIRST, X, final=True).observe("B", X, final=True)
    assert scripted.anomalies() == {"gap"}
    late = LogOrder(("A",), first_offset=1).check(Log().commit("x").observe("A", X, final=True).history)
    assert late[VALID_KEY] is Verdict.VALID


def test_a_gap_between_two_observes_is_one_too() -> None:
    scripted = Log().commit("x").commit("y").observe("A", FIRST).observe("A", Y, final=True)
    assert "gap" in scripted.observe("B", FIRST, X, Y, final=True).anomalies()


def test_a_reset_may_show_again_but_not_skip() -> None:
    assert good().observe("A", X, Y, final=True, reset=True).anomalies() == set()
    assert good().observe("A", FIRST, X, Y, final=True, reset=True).anomalies() == set()
    scripted = Log().commit("x").commit("y").final(FIRST, X, Y)
    scripted.observe("C", FIRST).observe("C", Y, reset=True, final=True)
    assert scripted.anomalies() == {"gap"}


def test_a_snapshot_may_jump_ahead_to_its_offset_only() -> None:
    scripted = Log().commit("x").commit("y").observe("A", FIRST, X, Y, final=True)
    assert scripted.observe("B", Y, snapshot=[2, 1], final=True).anomalies() == set()
    wrong = Log().commit("x").commit("y").observe("A", FIRST, X, Y, final=True)
    assert wrong.observe("B", Y, snapshot=[1, 1], final=True).anomalies() == {"gap"}


def test_a_snapshot_of_what_was_shown_goes_back_unless_the_observer_was_reset() -> None:
    assert good().observe("A", Y, snapshot=[2, 1], final=True).anomalies() == {"went-back"}
    assert good().observe("A", Y, snapshot=[2, 1], reset=True, final=True).anomalies() == set()


def test_a_snapshot_of_another_epoch_than_its_last_record_diverges() -> None:
    scripted = good().observe("C", Y, snapshot=[2, 0], final=True)
    assert scripted.anomalies() == {"diverged"}


def test_a_node_that_answers_and_does_not_come_up_is_stuck() -> None:
    for second, expected in ((44, Verdict.UNKNOWN), (45, Verdict.INVALID)):
        scripted = Log().commit("x").observe("A", FIRST, X, final=True).observe("B", FIRST, final=True)
        later = [replace(op, time_ns=second * SECOND_NS) for op in Log().observe("B", final=True).history]
        for op in later:
            scripted.history.append(replace(op, process=99))
        assert scripted.judged()[VALID_KEY] is expected, second


def test_records_behind_all_acknowledged_ones_need_no_observer() -> None:
    scripted = Log().commit("x").observe("A", FIRST, X, final=True)
    scripted.observe("B", record(9), snapshot=[9, 1], final=True)
    assert scripted.judged()[VALID_KEY] is Verdict.VALID
    assert scripted.commit("y").judged()[VALID_KEY] is Verdict.UNKNOWN


def test_what_all_observers_jumped_over_is_in_doubt() -> None:
    scripted = Log().commit("x").commit("y")
    for observer in ("A", "B"):
        scripted.observe(observer, Y, snapshot=[2, 1], final=True)
    results = scripted.judged()
    assert results[VALID_KEY] is Verdict.UNKNOWN
    assert results["jumped_by_all"] == [[0, 2]]
    assert [each["marker"] for each in results["unplaced"]] == ["x"]


def test_two_records_at_one_offset_diverge() -> None:
    scripted = Log().commit("x").observe("A", FIRST, X, final=True).observe("B", FIRST, record(1), final=True)
    assert scripted.anomalies() == {"diverged"}
    (row,) = scripted.judged()["diverged"]
    assert (row["offset"], row["observer"], row["first_observer"]) == (1, "B", "A")


def test_one_hash_in_two_epochs_diverges() -> None:
    scripted = Log().commit("x").observe("A", FIRST, X, final=True)
    assert "diverged" in scripted.observe("B", FIRST, [1, 2, X[2], "x"], final=True).anomalies()


def test_what_changes_after_it_was_shown_diverges() -> None:
    scripted = good().observe("A", FIRST, X, record(2, None, epoch=2), reset=True, final=True)
    assert scripted.anomalies() == {"diverged"}


def test_an_epoch_that_goes_back_is_named() -> None:
    newer, older = record(1, "x", epoch=3), record(2, "y", epoch=2)
    scripted = Log().commit("x").commit("y").final(FIRST, newer, older)
    assert scripted.anomalies() == {"went-back"}
    assert [(row["observer"], row["epochs"]) for row in scripted.judged()["went-back"]] == [
        ("A", [3, 2]),
        ("B", [3, 2]),
    ]


def test_an_epoch_that_goes_back_between_two_observers_is_named() -> None:
    scripted = Log().commit("x").observe("A", FIRST, record(1, "x", epoch=3), final=True)
    scripted.observe("B", kind=INFO).observe("B", record(2, epoch=2), final=True)
    assert scripted.anomalies() == {"went-back"}
    assert [(row["observer"], row["offset"]) for row in scripted.judged()["went-back"]] == [("B", 2)]


def test_a_snapshot_of_an_epoch_before_that_of_what_was_shown_is_named() -> None:
    scripted = Log().commit("x").observe("A", FIRST, record(1, "x", epoch=3), final=True)
    assert scripted.observe("A", snapshot=[5, 2], final=True).anomalies() == {"went-back"}
    reset = Log().commit("x").observe("A", FIRST, record(1, "x", epoch=3), final=True)
    assert reset.observe("A", snapshot=[5, 2], reset=True, final=True).anomalies() == {"went-back"}


def test_an_observers_own_epoch_does_not_go_back() -> None:
    assert (
        good().observe("A", epoch_end=4, final=True).observe("A", epoch_end=4, final=True).anomalies()
        == set()
    )
    assert good().observe("A", epoch_end=4, final=True).observe("A", epoch_end=3, final=True).anomalies() == {
        "went-back"
    }


def test_a_broken_high_watermark_is_named() -> None:
    scripted = (
        Log()
        .commit("a")
        .observe("A", record(0, "a"), broken=["it went back from 7 to 5"])
        .final(record(0, "a"))
    )
    assert scripted.anomalies() == {"went-back"}
    assert scripted.judged()["went-back"][0]["why"] == "it went back from 7 to 5"


def test_a_high_watermark_rises_and_is_above_what_is_shown() -> None:
    def broken(*marks: tuple[int, int]) -> list[bool]:
        watermark = Watermark()
        return [
            watermark.broken_by(pb.LogRecord(offset=offset, high_watermark=mark)) is not None
            for offset, mark in marks
        ]

    assert broken((0, 1), (1, 5), (2, 5), (3, 6)) == [False] * 4
    assert broken((0, 7), (1, 5), (2, 7)) == [False, True, False]
    assert broken((0, 1), (1, 1)) == [False, True]


def test_a_record_shown_twice_is_repeated() -> None:
    assert good().observe("A", Y, final=True).anomalies() == {"repeated"}
    assert Log().commit("x").final(FIRST, FIRST, X).anomalies() == {"repeated"}


def test_an_acknowledged_marker_that_is_not_at_its_offset_is_lost() -> None:
    scripted = Log().commit("x", offset=1).final(FIRST, record(1))
    assert scripted.anomalies() == {"lost"}
    assert scripted.judged()["lost"][0]["marker"] == "x"


def test_an_acknowledged_marker_is_lost_when_a_later_one_was_shown_without_it() -> None:
    assert Log().commit("x").commit("y").final(FIRST, record(1, "y")).anomalies() == {"lost"}


def test_an_acknowledged_marker_that_may_come_later_is_in_doubt() -> None:
    results = Log().commit("x").commit("y").final(FIRST, X).judged()
    assert results[VALID_KEY] is Verdict.UNKNOWN
    assert [each["marker"] for each in results["unplaced"]] == ["y"]


def test_a_marker_that_must_be_in_a_part_that_all_jumped_over_is_not_lost() -> None:
    scripted = Log().commit("x").commit("y")
    for observer in ("A", "B"):
        scripted.observe(observer, FIRST).observe(observer, Y, snapshot=[2, 1], final=True)
    assert scripted.judged()[VALID_KEY] is Verdict.UNKNOWN
    earlier = Log().observe("A", FIRST).commit("x").commit("lost").commit("y")
    for observer in ("A", "B"):
        earlier.observe(observer, X, Y, snapshot=[1, 1], final=True)
    assert earlier.observe("A", FIRST, X, Y, reset=True, final=True).anomalies() == {"lost"}


def test_a_part_that_all_jumped_over_excuses_only_what_can_be_in_it() -> None:
    scripted = Log().commit("x").commit("lost").commit("y")
    for observer in ("A", "B"):
        scripted.observe(observer, X, Y, snapshot=[1, 1], final=True)
    assert scripted.anomalies() == {"lost"}


def test_a_marker_at_two_offsets_is_duplicated() -> None:
    scripted = Log().commit("x").final(FIRST, X, record(2, "x"))
    assert scripted.anomalies() == {"duplicated"}
    assert scripted.judged()["duplicated"][0]["offsets"] == [1, 2]


def test_a_marker_at_another_offset_than_acknowledged_diverges() -> None:
    assert Log().commit("x", offset=2).final(FIRST, X, record(2)).anomalies() == {"diverged"}


def test_a_failed_marker_in_the_log_is_a_phantom() -> None:
    scripted = Log().commit("y").commit("x", FAIL)
    assert scripted.final(FIRST, record(1, "y"), record(2, "x")).anomalies() == {"phantom"}


def test_a_marker_that_was_not_committed_or_not_yet_is_a_phantom() -> None:
    assert good().observe("A", record(3, "z"), final=True).anomalies() == {"phantom"}
    early = good().observe("A", record(3, "z"), final=True).commit("z", offset=3)
    assert early.observe("B", record(3, "z"), final=True).observe("A", final=True).anomalies() == {"phantom"}


def test_an_unfinished_marker_may_be_in_the_log_or_not() -> None:
    scripted = Log().commit("x").commit("u", INFO).commit("v", INFO).final(FIRST, X, record(2, "v"))
    results = scripted.judged()
    assert results[VALID_KEY] is Verdict.VALID
    assert results["recovered_count"] == 1


def test_markers_in_another_order_than_acknowledged_are_reordered() -> None:
    assert Log().commit("y").commit("x").final(FIRST, X, Y).anomalies() == {"reordered"}


def test_markers_committed_at_once_may_be_in_any_order() -> None:
    scripted = Log()
    one, other = scripted.begin("commit", {"marker": "y"}), scripted.begin("commit", {"marker": "x"})
    scripted.end(one, {"marker": "y"}).end(other, {"marker": "x"})
    assert scripted.final(FIRST, X, Y).anomalies() == set()


def test_an_observer_that_does_not_come_to_the_last_acknowledged_offset_is_named() -> None:
    scripted = Log().commit("x").commit("y").observe("A", FIRST, X, Y, final=True)
    for told in (scripted.observe("B", FIRST, X, final=True), scripted):
        results = told.judged()
        assert results[VALID_KEY] is Verdict.UNKNOWN
        assert results["observers_behind"] == [{"observer": "B", "final": 2, "wanted": 3}]


def test_an_observer_without_a_final_observe_is_named() -> None:
    results = Log().commit("x").observe("A", FIRST, X, final=True).judged()
    assert results[VALID_KEY] is Verdict.UNKNOWN
    assert [each["observer"] for each in results["observers_behind"]] == ["B"]


def test_an_observer_that_ends_behind_what_it_was_shown_is_named() -> None:
    scripted = Log().commit("x").observe("A", FIRST, X, [*Y[:2], "of the system", None])
    results = scripted.final(FIRST, X).judged()
    assert results[VALID_KEY] is Verdict.UNKNOWN
    assert results["observers_behind"] == [{"observer": "A", "final": 2, "wanted": 3}]


def test_after_an_observe_of_unknown_outcome_anything_may_follow() -> None:
    scripted = Log().commit("x").commit("y").observe("B", FIRST, X, Y, final=True)
    assert scripted.observe("A", kind=INFO).observe("A", Y, final=True).anomalies() == set()
    scripted = Log().commit("x").commit("y").observe("B", FIRST, X, Y, final=True)
    assert scripted.observe("A", kind=FAIL).observe("A", Y, final=True).anomalies() == {"gap"}


def test_without_an_acknowledged_commit_or_without_a_record_nothing_is_known() -> None:
    assert Log().final(FIRST).judged()[VALID_KEY] is Verdict.UNKNOWN
    assert Log().commit("x").final().judged()[VALID_KEY] is Verdict.UNKNOWN


def test_only_operations_of_the_given_names_are_looked_at() -> None:
    scripted = good()
    scripted.end(scripted.begin("watch", None), {"observer": "A", "records": [record(9, "?")]})
    assert scripted.anomalies() == set()
    assert LogOrder(("A",), observe="watch").check(scripted.history)["gap_count"] == 1
