"""Two controllers, or two leaders of one epoch, have a name; one after the other is as it should be."""

from typing import Any

import pytest

from tests.jepsen.checkers.lease import LeaderLease
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.history import History, Op, OpType

ANOMALIES = (
    "two-leaders",
    "deposed-leader-acked",
    "offset-went-back",
    "epoch-went-back",
    "two-leaders-of-epoch",
    "vanished",
)


class ScriptedHistory:
    """A history of writes at controllers, and of what brokers show of the partition `t-0`."""

    def __init__(self) -> None:
        self.history = History()
        self._fs: list[str] = []

    def begin(self, f: str = "write-at", value: Any = None, *, final: bool = False) -> int:
        self._fs.append(f)
        process = len(self._fs) - 1
        self.history.append(Op(type=OpType.INVOKE, f=f, value=value, process=process, final=final))
        return len(self._fs) - 1

    def end(self, process: int, value: Any, kind: OpType = OpType.OK) -> "ScriptedHistory":
        self.history.append(Op(type=kind, f=self._fs[process], value=value, process=process))
        return self

    def acked(self, process: int, controller: int, epoch: int, offset: int) -> "ScriptedHistory":
        return self.end(process, {"controller": controller, "epoch": epoch, "offset": offset})

    def write(self, controller: int, epoch: int, offset: int) -> "ScriptedHistory":
        return self.acked(self.begin(), controller, epoch, offset)

    def leadership(
        self, broker: int, leader: int, leader_epoch: int, partition: str = "t-0"
    ) -> "ScriptedHistory":
        value = {"broker": broker, "partitions": {partition: [leader, leader_epoch]}, "controller": 1}
        return self.end(self.begin("leadership"), value)

    def last_leadership(self, broker: int, *partitions: str) -> "ScriptedHistory":
        value = {"broker": broker, "partitions": {each: [12, 0] for each in partitions}}
        return self.end(self.begin("leadership", final=True), value)

    def judged(self) -> Results:
        return LeaderLease().check(self.history)

    def anomalies(self) -> set[str]:
        results = self.judged()
        named = {each for each in ANOMALIES if results[each]}
        assert (results[VALID_KEY] is Verdict.INVALID) == bool(named)
        return named


def test_one_controller_after_the_other_is_valid() -> None:
    scripted = (
        ScriptedHistory()
        .write(1, 1, 10)
        .write(1, 1, 11)
        .write(2, 2, 13)
        .leadership(11, 12, 0)
        .leadership(11, 13, 1)
    )
    results = scripted.judged()
    assert results[VALID_KEY] is Verdict.VALID
    assert (results["writes"], results["epochs"], results["controllers"]) == (3, 2, ["1", "2"])
    assert (results["leaderships"], results["partitions"]) == (2, 1)


def test_two_controllers_in_one_epoch_are_two_leaders() -> None:
    scripted = ScriptedHistory().write(1, 5, 10).write(2, 5, 11)
    assert scripted.anomalies() == {"two-leaders"}
    assert scripted.judged()["two-leaders"] == [{"epoch": 5, "controllers": [1, 2], "indexes": [1, 3]}]


def test_a_write_acknowledged_by_a_deposed_controller_is_named() -> None:
    scripted = ScriptedHistory().write(1, 1, 10).write(2, 2, 12)
    late = scripted.begin()
    assert scripted.acked(late, 1, 1, 13).anomalies() >= {"deposed-leader-acked"}
    (row,) = scripted.judged()["deposed-leader-acked"]
    assert (row["controller"], row["epoch"], row["invoked"]) == (1, 1, late * 2)
    assert row["by_then"] == {"controller": 2, "epoch": 2, "index": 3}


@pytest.mark.parametrize(
    ("acknowledged_meanwhile", "late_answer"),
    [
        pytest.param(
            (2, 2, 12), (1, 1, 11), id="of a deposed controller, begun before the new one acknowledged"
        ),
        pytest.param((1, 1, 10), (1, 1, 9), id="of the same controller, at a lower offset"),
    ],
)
def test_a_write_under_way_while_another_is_acknowledged_may_end_later(
    acknowledged_meanwhile: tuple[int, int, int], late_answer: tuple[int, int, int]
) -> None:
    scripted = ScriptedHistory()
    slow = scripted.begin()
    assert scripted.write(*acknowledged_meanwhile).acked(slow, *late_answer).anomalies() == set()


def test_the_new_controllers_first_acknowledgement_counts_and_not_only_its_last() -> None:
    scripted = ScriptedHistory().write(2, 2, 12)
    slow = scripted.begin()
    assert "deposed-leader-acked" in scripted.write(2, 2, 13).acked(slow, 1, 1, 11).anomalies()


def test_a_late_acknowledgement_of_the_old_controller_does_not_hide_the_new_one() -> None:
    scripted = ScriptedHistory()
    slow = scripted.begin()
    scripted.write(2, 2, 12).acked(slow, 1, 1, 11).write(1, 1, 10)
    (row,) = scripted.judged()["deposed-leader-acked"]
    assert row["by_then"]["epoch"] == 2


@pytest.mark.parametrize("offset", [9, 10])
def test_an_offset_no_further_than_an_acknowledged_one_went_back(offset: int) -> None:
    scripted = ScriptedHistory().write(1, 1, 10).write(1, 1, offset)
    assert scripted.anomalies() == {"offset-went-back"}


def test_a_later_epoch_is_behind_an_earlier_one_in_the_log() -> None:
    scripted = ScriptedHistory()
    slow = scripted.begin()
    assert scripted.write(2, 2, 10).acked(slow, 1, 1, 10).anomalies() == {"offset-went-back"}
    scripted = ScriptedHistory()
    slow = scripted.begin()
    assert scripted.write(2, 2, 12).acked(slow, 1, 1, 11).write(3, 3, 13).anomalies() == set()


def test_a_refused_or_unfinished_write_is_no_acknowledgement() -> None:
    scripted = ScriptedHistory().write(2, 2, 12)
    for kind in (OpType.FAIL, OpType.INFO):
        scripted.end(scripted.begin(), {"controller": 1, "epoch": 2, "offset": 1}, kind)
    assert scripted.anomalies() == set()


def test_a_brokers_leader_epoch_does_not_go_back() -> None:
    scripted = ScriptedHistory().leadership(11, 12, 4).leadership(11, 12, 4).leadership(11, 13, 3)
    assert scripted.anomalies() == {"epoch-went-back"}
    (row,) = scripted.judged()["epoch-went-back"]
    assert (row["broker"], row["partition"], row["leader_epochs"]) == (11, "t-0", [4, 3])


def test_another_broker_may_lag_behind() -> None:
    assert ScriptedHistory().leadership(11, 12, 4).leadership(12, 13, 3).anomalies() == set()


def test_another_partition_has_epochs_of_its_own() -> None:
    assert (
        ScriptedHistory().leadership(11, 12, 4, "id1:t-0").leadership(11, 13, 0, "id2:t-0").anomalies()
        == set()
    )


def test_what_a_broker_shows_at_once_may_come_in_any_order() -> None:
    scripted = ScriptedHistory()
    slow = scripted.begin("leadership")
    scripted.leadership(11, 12, 4)
    value = {"broker": 11, "partitions": {"t-0": [13, 3]}, "controller": 1}
    assert scripted.end(slow, value).anomalies() == set()


def test_one_leader_epoch_with_two_leaders_is_named_on_whatever_broker() -> None:
    scripted = ScriptedHistory().leadership(11, 12, 4).leadership(12, 13, 4)
    assert scripted.anomalies() == {"two-leaders-of-epoch"}
    (row,) = scripted.judged()["two-leaders-of-epoch"]
    assert (row["partition"], row["leaders"], row["brokers"]) == ("t-0", [12, 13], [11, 12])


def test_without_an_acknowledged_write_or_a_leadership_nothing_is_known() -> None:
    results = ScriptedHistory().write(1, 1, 1).judged()
    assert results[VALID_KEY] is Verdict.UNKNOWN
    assert results["untested"] == ["leadership"]
    assert ScriptedHistory().leadership(1, 1, 1).judged()["untested"] == ["write-at"]
    alone = LeaderLease(leadership=None).check(ScriptedHistory().write(1, 1, 1).history)
    assert alone[VALID_KEY] is Verdict.VALID
    assert LeaderLease(write=None, leadership=None).check(History())[VALID_KEY] is Verdict.UNKNOWN


def test_brokers_that_show_no_partition_leave_doubt() -> None:
    scripted = ScriptedHistory().write(1, 1, 1)
    scripted.end(scripted.begin("leadership"), {"broker": 11, "partitions": {}})
    results = scripted.judged()
    assert (results[VALID_KEY], results["untested"]) == (Verdict.UNKNOWN, ["leadership"])


def test_only_operations_of_the_given_names_are_looked_at() -> None:
    history = ScriptedHistory().write(1, 1, 10).write(2, 1, 11).history
    assert LeaderLease(write="other", leadership=None).check(history)["writes"] == 0


def test_two_writes_at_one_offset_are_never_right_even_at_the_same_time() -> None:
    scripted = ScriptedHistory()
    first, second = scripted.begin(), scripted.begin()
    assert scripted.acked(first, 1, 1, 10).acked(second, 1, 1, 10).anomalies() == {"offset-went-back"}


def test_a_partition_that_a_last_look_lacks_has_vanished() -> None:
    scripted = ScriptedHistory().write(1, 1, 10).leadership(11, 12, 0).last_leadership(11, "t-0")
    assert scripted.anomalies() == set()
    scripted.last_leadership(12, "t-1")
    assert scripted.anomalies() == {"vanished"}
    assert [row["partitions"] for row in scripted.judged()["vanished"]] == [["t-1"], ["t-0"]]
