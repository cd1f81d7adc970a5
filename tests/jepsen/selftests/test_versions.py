"""Each anomaly of versions has its name, good histories have none, and the search says the same."""

import pytest
from hypothesis import given, settings

from tests.jepsen.checkers.linear.checker import Linearizable
from tests.jepsen.checkers.linear.versioned import VersionedRegister
from tests.jepsen.checkers.linear.versions import ANOMALIES, VersionOrder
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.history import History, OpType
from tests.jepsen.core.register_histories import (
    ScriptedHistory,
    cas,
    correct_histories,
    has_an_order,
    shown,
    tampered_histories,
)

INFO, FAIL = OpType.INFO, OpType.FAIL
FS = ("read", "cas")


def judged(history: History, *, refusals: bool = True) -> Results:
    return VersionOrder(VersionedRegister(refusals=refusals), FS).check(history)


def anomalies(told: ScriptedHistory) -> set[str]:
    results = judged(told.history)
    named = {each for each in ANOMALIES if results[each]}
    assert (results[VALID_KEY] is Verdict.INVALID) == bool(named)
    assert all(results[f"{each}_count"] == len(results[each]) for each in ANOMALIES)
    return named


def test_a_good_history_has_no_anomaly() -> None:
    scripted = (
        ScriptedHistory()
        .read(0)
        .cas(0, "a")
        .read(1, "a")
        .cas(1, "b", kind=INFO)
        .read(1, "a")
        .read(2, "b")
        .cas(2, "c")
    )
    results = judged(scripted.history)
    assert results[VALID_KEY] is Verdict.VALID
    assert results["versions"] == {"k": 3}


def test_two_cas_with_one_version_are_a_version_reused_and_a_lost_update() -> None:
    scripted = ScriptedHistory()
    slow = scripted.begin("cas", cas(0, "a"))
    scripted.cas(0, "b").end(slow, {**cas(0, "a"), "version": 1})
    assert anomalies(scripted) == {"version-reused", "lost-update"}


def test_two_cas_that_replaced_one_version_are_a_lost_update() -> None:
    scripted = ScriptedHistory().cas(0, "a").cas(0, "b", told=2)
    assert "lost-update" in anomalies(scripted)
    assert {row["why"] for row in judged(scripted.history)["lost-update"]} == {
        "two cas replaced one version",
        "it replaced version 0 and was acknowledged with 2",
    }


def test_a_read_of_another_value_than_the_acknowledged_one_is_a_lost_update() -> None:
    assert anomalies(ScriptedHistory().cas(0, "b", kind=INFO).cas(0, "a").read(1, "b")) == {"lost-update"}


def test_two_values_under_one_version_are_a_version_reused() -> None:
    scripted = ScriptedHistory().cas(0, "a", kind=INFO).cas(0, "b", kind=INFO).read(1, "a").read(1, "b")
    assert anomalies(scripted) == {"version-reused"}


def test_a_cas_acknowledged_with_the_first_version_is_a_version_reused() -> None:
    assert "version-reused" in anomalies(ScriptedHistory().cas(-1, "a"))


def test_a_value_that_was_not_written_is_a_phantom() -> None:
    assert anomalies(ScriptedHistory().cas(0, "a", kind=INFO).read(1, "z")) == {"phantom"}
    assert anomalies(ScriptedHistory().read(0, "z")) == {"phantom"}


def test_a_version_that_was_not_written_is_a_phantom() -> None:
    assert anomalies(ScriptedHistory().read(0).cas(3, "a")) == {"phantom"}
    assert anomalies(ScriptedHistory().cas(0, "a", kind=FAIL).read(1, "a")) == {"phantom"}
    assert anomalies(ScriptedHistory().cas(0, "a", kind=INFO).cas(2, "c", kind=INFO).read(3, "c")) == {
        "phantom"
    }


def test_a_version_seen_before_any_attempt_to_write_it_is_a_phantom() -> None:
    assert anomalies(ScriptedHistory().read(1, "a").cas(0, "a", kind=INFO)) == {"phantom"}
    earlier = ScriptedHistory().cas(1, "b", kind=INFO).read(2, "b").cas(0, "a", kind=INFO)
    assert anomalies(earlier) == {"phantom"}, "version 1 had to be written before 2"


def test_an_enormous_version_is_a_phantom_and_takes_no_time() -> None:
    assert anomalies(ScriptedHistory().read(10**15, "z")) == {"phantom"}


def test_a_read_behind_what_was_known_is_stale() -> None:
    scripted = ScriptedHistory().cas(0, "a").read(0)
    assert anomalies(scripted) == {"stale-read"}
    (row,) = judged(scripted.history)["stale-read"]
    assert (row["key"], row["version"], row["index"], row["other"]) == ("k", 0, 3, 1)


def test_a_read_that_began_before_the_write_ended_is_not_stale() -> None:
    scripted = ScriptedHistory()
    reader = scripted.begin("read", {"key": "k"})
    assert anomalies(scripted.cas(0, "a").end(reader, shown(0))) == set()


def test_a_read_is_stale_after_another_read_had_shown_more() -> None:
    assert anomalies(ScriptedHistory().cas(0, "a", kind=INFO).read(1, "a").read(0)) == {"stale-read"}


def test_a_cas_acknowledged_behind_what_was_known_has_gone_back() -> None:
    scripted = ScriptedHistory().cas(0, "a", kind=INFO).cas(1, "b").cas(0, "a")
    assert anomalies(scripted) == {"gone-back", "phantom"}, (
        "version 1 was there before any client had written it"
    )
    (row,) = judged(scripted.history)["gone-back"]
    assert (row["version"], row["index"], row["other"]) == (1, 5, 3)


def test_a_refusal_tells_a_version_too() -> None:
    refused = {**cas(0, "z"), "found": 1}
    assert anomalies(ScriptedHistory().cas(0, "a").cas(1, "b").op("cas", cas(0, "z"), refused, FAIL)) == {
        "stale-read"
    }
    assert anomalies(ScriptedHistory().op("cas", cas(0, "z"), refused, FAIL)) == {"phantom"}
    assert anomalies(ScriptedHistory().cas(0, "a").op("cas", cas(0, "z"), refused, FAIL)) == set()
    wrongly = {**cas(0, "z"), "found": 0}
    assert anomalies(ScriptedHistory().op("cas", cas(0, "z"), wrongly, FAIL)) == {"wrongly-refused"}


def test_refusals_are_left_out_unless_asked_for() -> None:
    scripted = ScriptedHistory().read(0).op("cas", cas(0, "z"), {**cas(0, "z"), "found": 5}, FAIL)
    assert judged(scripted.history, refusals=False)[VALID_KEY] is Verdict.VALID


def test_versions_of_two_keys_do_not_mix() -> None:
    scripted = (
        ScriptedHistory()
        .cas(0, "a", key="k")
        .cas(0, "b", key="other")
        .read(1, "a", key="k")
        .read(1, "b", key="other")
    )
    assert anomalies(scripted) == set()


@pytest.mark.parametrize(
    "told",
    [ScriptedHistory(), ScriptedHistory().cas(0, "a", kind=INFO), ScriptedHistory().op("list", None, [])],
)
def test_without_an_operation_that_succeeded_nothing_is_known(told: ScriptedHistory) -> None:
    assert judged(told.history)[VALID_KEY] is Verdict.UNKNOWN


@settings(max_examples=40, deadline=None)
@given(correct_histories(operations_max=12, keys=2))
def test_a_correct_register_is_never_accused(history: History) -> None:
    assert judged(history)[VALID_KEY] is not Verdict.INVALID


@settings(max_examples=50, deadline=None)
@given(tampered_histories())
def test_the_order_of_versions_is_right_exactly_when_some_order_is(history: History) -> None:
    assert (judged(history)[VALID_KEY] is not Verdict.INVALID) == has_an_order(history)


@settings(max_examples=40, deadline=None)
@given(tampered_histories(operations_max=14))
def test_the_order_of_versions_and_the_search_agree(history: History) -> None:
    found = Linearizable(VersionedRegister(refusals=True), FS).check(history)
    assert (judged(history)[VALID_KEY] is Verdict.INVALID) == (found[VALID_KEY] is Verdict.INVALID)


def test_ten_thousand_operations_are_judged_too() -> None:
    scripted = ScriptedHistory()
    for version in range(5_000):
        scripted.cas(version, version).read(version + 1, version)
    assert judged(scripted.history)[VALID_KEY] is Verdict.VALID
