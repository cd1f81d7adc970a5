"""The checker of the voters finds each anomaly in histories made by hand."""

from typing import Any

import pytest

from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.checkers.voter_lives import Change, course_of
from tests.jepsen.checkers.voters import ADD, LIST, REMOVE
from tests.jepsen.core.history import NEMESIS, Op, OpType
from tests.jepsen.selftests.scripted_voters import BROKER, ScriptedHistory, directory

ALL = frozenset({1, 2, 3})


def good() -> ScriptedHistory:
    return ScriptedHistory().read(*ALL).add(4).read(*ALL, 4).remove(4).put(1)


def only(anomaly: str, results: Results) -> list[Any]:
    """What is found of it; nothing else may be found."""
    counts = {key: value for key, value in results.items() if key.endswith("_count") and value}
    assert set(counts) == {f"{anomaly}_count"}, counts
    assert results[VALID_KEY] is Verdict.INVALID
    found: list[Any] = results[anomaly]
    return found


def test_a_good_history_is_valid() -> None:
    results = good().judged(*ALL, topics=(1,))
    assert results[VALID_KEY] is Verdict.VALID, results
    assert (results["added"], results["removed"], results["in_doubt"]) == (1, 1, 0)
    assert [voter for voter, _ in results["last_voters"]] == [1, 2, 3]


def test_without_any_acknowledged_change_nothing_is_proved() -> None:
    assert ScriptedHistory().read(*ALL).judged(*ALL)[VALID_KEY] is Verdict.UNKNOWN


def test_two_leaders_in_one_epoch_are_invalid() -> None:
    (found,) = only("two_leaders", good().read(node=3, leader=2).judged(*ALL, topics=(1,)))
    assert found["epoch"] == 1
    assert set(found["told_at"]) == {1, 2}


def test_an_acknowledged_add_that_is_gone_is_lost() -> None:
    (found,) = only("lost", good().add(4).judged(*ALL, topics=(1,), epoch=2))
    assert (found["voter"], found["told"]) == (4, "no voter")


def test_an_acknowledged_remove_that_is_undone_is_lost() -> None:
    scripted = ScriptedHistory().add(4).remove(3)
    (found,) = only("lost", scripted.judged(*ALL, 4, epoch=2))
    assert (found["voter"], found["may_be"]) == (3, ["no voter"])


@pytest.mark.parametrize(
    ("kind", "is_lawful"), [(OpType.INFO, True), (OpType.OK, True), (OpType.FAIL, False)]
)
def test_an_add_may_be_gone_once_a_remove_may_have_happened(kind: OpType, is_lawful: bool) -> None:
    results = good().add(4).remove(4, kind).judged(*ALL, topics=(1,), epoch=2)
    assert results["lost_count"] == (0 if is_lawful else 1)


def test_an_add_in_doubt_may_show_or_not() -> None:
    for voters in ((1, 2, 3), (1, 2, 3, 4)):
        results = good().add(4, OpType.INFO).judged(*voters, topics=(1,), epoch=2)
        assert results[VALID_KEY] is Verdict.VALID, results
        assert results["in_doubt"] == 1


def test_two_acknowledged_adds_without_a_remove_contradict_each_other() -> None:
    (found,) = only("contradictory", good().add(4).add(4).judged(*ALL, 4, topics=(1,), epoch=2))
    assert (found["voter"], found["change"]) == (4, ADD)


def test_a_remove_needs_an_add_of_its_own_before_it() -> None:
    for first in (OpType.OK, OpType.INFO):
        scripted = good().add(4, first).remove(4).remove(4)
        (found,) = only("contradictory", scripted.judged(*ALL, topics=(1,), epoch=2))
        assert (found["voter"], found["change"]) == (4, REMOVE)


def test_a_new_disk_is_another_voter() -> None:
    results = good().add(4).add(4, on="new-disk").judged(*ALL, 4, topics=(1,), epoch=2)
    assert only("contradictory", results)[0]["directory"] == "new-disk"


def test_changes_at_the_same_time_may_take_hold_in_either_order() -> None:
    scripted = good()
    add, remove = scripted.asked(ADD, 4), scripted.asked(REMOVE, 4)
    results = scripted.end(remove).end(add).judged(*ALL, topics=(1,))
    assert results[VALID_KEY] is Verdict.VALID, results


def test_voters_that_come_and_go_unasked_are_unexplained() -> None:
    scripted = good().read(*ALL).add(4, OpType.INFO).read(1, 2, 4)
    found = only("unexplained", scripted.judged(*ALL, topics=(1,)))
    assert [(each["change"], each["voter"]) for each in found] == [(REMOVE, 3), (ADD, 3), (REMOVE, 4)]


def test_a_voter_of_the_beginning_that_is_missing_at_once_is_unexplained() -> None:
    results = ScriptedHistory().read(1, 2, epoch=7).add(4).remove(4).judged(*ALL, epoch=8)
    assert only("unexplained", results)[0]["voter"] == 3


def test_a_change_that_ended_before_cannot_explain_a_later_one() -> None:
    scripted = ScriptedHistory().add(4).read(*ALL, 4).remove(4).read(*ALL).read(*ALL, 4).read(*ALL)
    found = only("unexplained", scripted.judged(*ALL))
    assert [each["change"] for each in found] == [ADD, REMOVE]


def test_another_leader_may_not_know_of_what_was_not_committed() -> None:
    scripted = good().add(4, OpType.INFO).read(*ALL, 4).read(*ALL, node=2, leader=2, epoch=2)
    scripted.read(*ALL, final=True, node=2, leader=2, epoch=2)
    for node in (1, 3, 4):
        scripted.read(node=node, leader=2, epoch=2, final=True)
    scripted.end(scripted.invoke(LIST, node=BROKER, final=True), [1])
    assert scripted.verdict()[VALID_KEY] is Verdict.VALID


def test_controllers_that_follow_different_leaders_at_the_end_are_unsettled() -> None:
    scripted = good().read(*ALL, final=True).read(node=2, final=True).read(node=3, final=True)
    scripted.read(node=4, leader=-1, epoch=2, final=True)
    scripted.end(scripted.invoke(LIST, node=BROKER, final=True), [1])
    (found,) = only("unsettled", scripted.verdict())
    assert found["4"] == {"leader": -1, "epoch": 2}


def test_a_controller_that_gave_no_final_read_leaves_doubt() -> None:
    scripted = good().read(*ALL, final=True)
    scripted.end(scripted.invoke(LIST, node=BROKER, final=True), [1])
    results = scripted.verdict()
    assert results[VALID_KEY] is Verdict.UNKNOWN
    assert results["controllers_without_final_read"] == [2, 3, 4]


def changed_twice(scripted: ScriptedHistory, *marks: int | None, epoch: int = 1) -> ScriptedHistory:
    """Two voters are asked for and told as soon as that, with these high watermarks."""
    add, other = scripted.asked(ADD, 4), scripted.asked(REMOVE, 3)
    scripted.read(*ALL, mark=marks[0]).read(1, 2, 4, mark=marks[-1], epoch=epoch)
    return scripted.end(add).end(other).add(3)


def test_two_voters_changed_while_nothing_was_committed_are_two_changes_at_once() -> None:
    (found,) = only("two_changes_at_once", changed_twice(good(), 7, 7).judged(*ALL, 4, topics=(1,)))
    assert (found["leader"], found["epoch"], found["high_watermark"]) == (1, 1, 7)
    assert found["changed"] == [(3, directory(3)), (4, directory(4))]


def test_two_changes_are_implied_by_the_set_between_them() -> None:
    scripted = good()
    add, other = scripted.asked(ADD, 4), scripted.asked(REMOVE, 3)
    scripted.read(*ALL, mark=7).read(*ALL, 4, mark=7).read(1, 2, 4, mark=7).end(add).end(other).add(3)
    assert only("two_changes_at_once", scripted.judged(*ALL, 4, topics=(1,)))[0]["changed"][0] == (
        3,
        directory(3),
    )


@pytest.mark.parametrize(("marks", "epoch"), [((7, 8), 1), ((7, 7), 2), ((None, None), 1), ((7, None), 1)])
def test_changes_of_which_one_may_have_been_committed_are_valid(marks: tuple[Any, Any], epoch: int) -> None:
    results = changed_twice(good(), *marks, epoch=epoch).judged(*ALL, 4, topics=(1,), epoch=epoch)
    assert results[VALID_KEY] is Verdict.VALID, results


def test_one_change_that_is_not_committed_yet_is_valid() -> None:
    scripted = good()
    add = scripted.asked(ADD, 4)
    results = scripted.read(*ALL, mark=7).read(*ALL, 4, mark=7).end(add).judged(*ALL, 4, topics=(1,))
    assert results[VALID_KEY] is Verdict.VALID, results


def test_a_leader_that_is_no_voter_when_all_is_settled_is_outside() -> None:
    scripted = good().add(4).remove(1)
    (found,) = only("leader_outside", scripted.judged(2, 3, 4, topics=(1,)))
    assert (found["leader"], found["voters"]) == (1, [2, 3, 4])


def test_a_leader_may_lead_until_its_own_removal_is_committed() -> None:
    scripted = good().add(4).remove(1).read(2, 3, 4).add(1)
    assert scripted.judged(*ALL, 4, topics=(1,))[VALID_KEY] is Verdict.VALID


def test_an_acknowledged_topic_that_no_broker_shows_is_lost() -> None:
    (found,) = only("lost_topics", good().put(2).judged(*ALL, topics=(1,)))
    assert (found["topic"], found["missing_on"]) == (2, [BROKER])


def test_what_the_nemesis_changed_when_it_replaced_a_disk_is_explained() -> None:
    scripted = good()
    heal = scripted.history.append(Op(type=OpType.INVOKE, f="heal", process=NEMESIS))
    value = {"started": [3], "told": ["remove-voter: done", "add-voter: done"]}
    scripted.history.append(heal.ended(OpType.INFO, value))
    results = scripted.read(1, 2).read(*ALL).remove(3).read(1, 2).add(3).judged(*ALL, topics=(1,))
    assert results[VALID_KEY] is Verdict.VALID, results
    only("unexplained", good().read(1, 2).read(*ALL).judged(*ALL, topics=(1,)))


def test_the_search_stays_small_with_many_changes_in_doubt() -> None:
    changes = [Change(place % 2 == 0, "disk", place, None) for place in range(300)]
    changes += [Change(place % 2 == 0, "disk", 300 + 2 * place, 301 + 2 * place) for place in range(100)]
    assert course_of(None, changes).ends == {None, "disk"}


def test_a_leader_that_comes_after_all_have_agreed_unsettles_nothing() -> None:
    scripted = good()
    scripted.judged(*ALL, topics=(1,))
    results = scripted.read(node=2, leader=3, epoch=2, final=True).verdict()
    assert (results[VALID_KEY], results["last_voters"] is not None) == (Verdict.VALID, True)
