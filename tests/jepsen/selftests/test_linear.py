"""The search finds an order where there is one, and says where it got stuck where there is none."""

from typing import Any

import pytest

from tests.jepsen.checkers.linear.checker import Linearizable, calls_by_key
from tests.jepsen.checkers.linear.models import ConfigSet, Model, Register
from tests.jepsen.checkers.linear.versioned import VersionedRegister
from tests.jepsen.checkers.verdicts import VALID_KEY, Verdict
from tests.jepsen.core.register_histories import (
    CONFIG,
    FAIL,
    INFO,
    PLAIN,
    VERSIONED,
    ScriptedHistory,
    cas,
    judged,
    shown,
)


def verdict(told: ScriptedHistory, model: Model | None = None, fs: Any = VERSIONED) -> Verdict:
    found: Verdict = judged(told.history, model, fs)[VALID_KEY]
    return found


# ------------------------------------------------------------------------------ the versioned register


def test_reads_and_cas_one_after_the_other_are_valid() -> None:
    results = judged(ScriptedHistory().read(0).cas(0, "a").read(1, "a").cas(1, "b").read(2, "b").history)
    assert results[VALID_KEY] is Verdict.VALID
    assert (results["keys"], results["operations"]) == (1, 5)


def test_a_read_of_what_an_unfinished_cas_wrote_is_valid() -> None:
    assert verdict(ScriptedHistory().cas(0, "a", kind=INFO).read(1, "a")) is Verdict.VALID


def test_an_unfinished_cas_may_happen_after_later_operations() -> None:
    assert verdict(ScriptedHistory().cas(0, "a", kind=INFO).read(0).read(0).read(1, "a")) is Verdict.VALID


def test_a_read_may_show_either_side_of_a_concurrent_cas_but_not_go_back() -> None:
    scripted = ScriptedHistory()
    writer = scripted.begin("cas", cas(0, "a"))
    scripted.read(0).read(1, "a")
    assert verdict(scripted.end(writer, {**cas(0, "a"), "version": 1})) is Verdict.VALID
    scripted = ScriptedHistory()
    writer = scripted.begin("cas", cas(0, "a"))
    scripted.read(1, "a").read(0)
    assert verdict(scripted.end(writer, {**cas(0, "a"), "version": 1})) is Verdict.INVALID


def test_a_stale_read_is_invalid_and_the_report_says_what_was_possible() -> None:
    scripted = ScriptedHistory().cas(0, "a").cas(1, "b")
    slow = scripted.begin("cas", cas(2, "c"))
    scripted.read(1, "a").read(2, "b").end(slow, {**cas(2, "c"), "version": 3})
    results = judged(scripted.history)
    (report,) = results["invalid"]
    assert results[VALID_KEY] is Verdict.INVALID
    assert report["key"] == "k"
    assert (report["stuck"]["told"], report["stuck"]["ended"]) == (shown(1, "a"), 6)
    assert report["placed"] == 2, "the two cas before it"
    assert report["states"] == [[2, "b"]]
    assert [each["asked"] for each in report["concurrent"]] == [cas(2, "c")]


def test_the_report_names_what_may_have_happened_still() -> None:
    scripted = ScriptedHistory().cas(0, "x", kind=INFO).read(1, "x").read(0)
    (report,) = judged(scripted.history)["invalid"]
    assert [each["asked"] for each in report["perhaps"]] == [cas(0, "x")]
    assert report["perhaps"][0]["ended"] is None


def test_what_ended_while_the_stuck_operation_was_open_was_concurrent_too() -> None:
    scripted = ScriptedHistory().cas(0, "a")
    reader = scripted.begin("read", {"key": "k"})
    (report,) = judged(scripted.cas(1, "b").end(reader, shown(0)).history)["invalid"]
    assert report["stuck"]["told"] == shown(0)
    assert [each["asked"] for each in report["concurrent"]] == [cas(1, "b")]


def test_the_report_ends_where_the_contradiction_does() -> None:
    """The read is well explained by the unfinished cas, until another one is acknowledged with its version."""
    scripted = ScriptedHistory().cas(0, "a", kind=INFO).read(1, "a").read(1, "a").cas(0, "b").read(1, "a")
    (report,) = judged(scripted.history)["invalid"]
    assert report["stuck"]["asked"] == cas(0, "b")
    assert (report["placed"], report["states"]) == (2, [[1, "a"]])


def test_what_ended_later_was_concurrent_and_may_have_happened() -> None:
    scripted = ScriptedHistory()
    slow, reader = scripted.begin("cas", cas(0, "a")), scripted.begin("read", {"key": "k"})
    scripted.read(1, "a").end(slow, {**cas(0, "a"), "version": 1}).read(0).end(reader, shown(1, "a"))
    (report,) = judged(scripted.history)["invalid"]
    assert report["stuck"]["told"] == shown(0)
    assert [each["f"] for each in report["concurrent"]] == ["read"]
    assert report["states"] == [[1, "a"]]


def test_a_reply_with_another_version_than_the_next_is_invalid() -> None:
    assert verdict(ScriptedHistory().cas(0, "a", told=2)) is Verdict.INVALID
    model = VersionedRegister(step=2)
    assert verdict(ScriptedHistory().cas(0, "a", told=2).read(2, "a"), model) is Verdict.VALID


def test_the_first_version_and_value_are_the_models() -> None:
    scripted = ScriptedHistory().read(7, "first").cas(7, "a")
    assert verdict(scripted, VersionedRegister(version=7, value="first")) is Verdict.VALID
    assert verdict(scripted) is Verdict.INVALID


def test_a_failed_cas_has_no_effect() -> None:
    assert verdict(ScriptedHistory().cas(0, "a", kind=FAIL).read(0)) is Verdict.VALID
    assert verdict(ScriptedHistory().cas(0, "a", kind=FAIL).read(1, "a")) is Verdict.INVALID


@pytest.mark.parametrize(
    ("found", "expected"),
    [(1, Verdict.VALID), (0, Verdict.INVALID), (2, Verdict.INVALID), (None, Verdict.VALID)],
)
def test_a_refused_cas_counts_as_a_look_where_asked_for(found: int | None, expected: Verdict) -> None:
    scripted = ScriptedHistory().cas(0, "a").op("cas", cas(0, "b"), {**cas(0, "b"), "found": found}, FAIL)
    assert verdict(scripted, VersionedRegister(refusals=True)) is expected
    assert verdict(scripted) is Verdict.VALID


def test_a_cas_refused_without_another_write_is_invalid() -> None:
    scripted = ScriptedHistory().read(0).op("cas", cas(0, "b"), {**cas(0, "b"), "found": None}, FAIL)
    assert verdict(scripted, VersionedRegister(refusals=True)) is Verdict.INVALID
    lost = (
        ScriptedHistory().cas(0, "a", kind=INFO).op("cas", cas(0, "b"), {**cas(0, "b"), "found": None}, FAIL)
    )
    lost.read(1, "a")
    assert verdict(lost, VersionedRegister(refusals=True)) is Verdict.VALID


def test_keys_are_judged_by_themselves() -> None:
    good = ScriptedHistory().cas(0, "a", key="k").read(0, key="other").read(1, "a", key="k")
    assert verdict(good) is Verdict.VALID
    results = judged(good.read(5, "?", key="other").history)
    assert [each["key"] for each in results["invalid"]] == ["other"]


def test_only_operations_of_the_given_names_are_looked_at() -> None:
    scripted = (
        ScriptedHistory().read(9, "?").op("register-read", {"key": "k"}, shown(0)).op("list", None, ["t"])
    )
    assert verdict(scripted, fs={"register-read": "read"}) is Verdict.VALID


def test_a_name_that_the_model_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="no append"):
        Linearizable(VersionedRegister(), ("read", "append"))


def test_without_an_operation_that_succeeded_nothing_is_known() -> None:
    assert verdict(ScriptedHistory()) is Verdict.UNKNOWN
    assert verdict(ScriptedHistory().cas(0, "a", kind=INFO)) is Verdict.UNKNOWN


def test_of_unfinished_cas_only_those_are_kept_that_an_order_can_need() -> None:
    scripted = ScriptedHistory().cas(0, "replaced by another", kind=INFO).cas(0, "a")
    scripted.cas(1, "first", kind=INFO).cas(1, "later", kind=INFO).cas(2, "b")
    scripted.cas(3, "not shown", kind=INFO).cas(3, "shown", kind=INFO).read(4, "shown")
    scripted.cas(4, "never seen", kind=INFO)
    model = VersionedRegister()
    calls = calls_by_key(scripted.history, {"read": "read", "cas": "cas"}, model)["k"]
    kept = [
        call.operation.invoke.value["value"] for call in model.needed((0, None), calls) if not call.required
    ]
    assert kept == ["first", "shown"]
    assert verdict(scripted) is Verdict.VALID


def test_of_unfinished_cas_that_could_have_written_a_version_the_first_may_have_done_it_in_time() -> None:
    assert (
        verdict(ScriptedHistory().cas(0, "x", kind=INFO).cas(1, "b").cas(0, "y", kind=INFO)) is Verdict.VALID
    )
    assert verdict(ScriptedHistory().cas(1, "b").cas(0, "y", kind=INFO)) is Verdict.INVALID


def test_an_operation_without_an_end_may_have_happened() -> None:
    scripted = ScriptedHistory()
    scripted.begin("cas", cas(0, "a"))
    assert verdict(scripted.read(1, "a")) is Verdict.VALID


# ------------------------------------------------------------------------------ plain registers and sets


def plain(told: ScriptedHistory) -> Verdict:
    return verdict(told, Register(), PLAIN)


def test_a_plain_register_reads_writes_and_swaps() -> None:
    scripted = (
        ScriptedHistory()
        .op("read", None, None)
        .op("write", 1, 1)
        .op("cas", [1, 2], [1, 2])
        .op("read", None, 2)
    )
    assert plain(scripted) is Verdict.VALID
    assert plain(scripted.op("read", None, 1)) is Verdict.INVALID
    assert plain(ScriptedHistory().op("write", 1, 1).op("cas", [3, 4], [3, 4])) is Verdict.INVALID


def test_a_chain_of_unfinished_operations_can_explain_a_read() -> None:
    scripted = ScriptedHistory().op("cas", [1, 2], None, INFO).op("write", 1, None, INFO)
    assert plain(scripted.op("read", None, 2)) is Verdict.VALID
    assert plain(scripted.op("read", None, 1)) is Verdict.INVALID, "one write of 1 is all there was"


def test_an_unfinished_write_explains_one_appearance_only_if_nothing_came_between() -> None:
    scripted = (
        ScriptedHistory().op("write", 1, None, INFO).op("read", None, 1).op("write", 2, 2).op("read", None, 1)
    )
    assert plain(scripted) is Verdict.INVALID
    twice = ScriptedHistory().op("write", 1, None, INFO).op("write", 1, None, INFO)
    twice.op("read", None, 1).op("write", 2, 2).op("read", None, 1)
    assert plain(twice) is Verdict.VALID


@pytest.mark.parametrize("first", ["write", "cas"])
def test_of_two_unfinished_operations_the_one_is_spent_that_is_not_needed_later(first: str) -> None:
    """Both lead to 1, but only the write can do it once more after the 2."""
    scripted = ScriptedHistory()
    for f in ("write", "cas") if first == "write" else ("cas", "write"):
        scripted.op(f, 1 if f == "write" else [0, 1], None, INFO)
    scripted.op("read", None, 1).op("write", 2, None).op("read", None, 1)
    assert verdict(scripted, Register(0), PLAIN) is Verdict.VALID
    assert verdict(scripted.op("write", 0, None).op("read", None, 1), Register(0), PLAIN) is Verdict.INVALID


def test_lists_and_maps_can_be_values_of_keyed_registers() -> None:
    value = {"isr": [1, 2]}
    scripted = ScriptedHistory().op("write", {"key": ["t", 0], "value": value}, None)
    scripted.op("read", {"key": ["t", 0]}, {"key": ["t", 0], "value": {"isr": [1, 2]}})
    assert plain(scripted) is Verdict.VALID
    scripted.op("read", {"key": ["t", 0]}, {"key": ["t", 0], "value": {"isr": [2, 1]}})
    results = judged(scripted.history, Register(), PLAIN)
    assert results["invalid"][0]["states"] == [[["isr", [1, 2]]]]


def config(told: ScriptedHistory, *start: str) -> Verdict:
    return verdict(told, ConfigSet(start), CONFIG)


def test_a_config_set_appends_and_subtracts() -> None:
    scripted = (
        ScriptedHistory().op("append", "a", None).op("append", "b", None).op("describe", None, ["b", "a"])
    )
    assert config(scripted) is Verdict.VALID
    scripted.op("subtract", "a", None).op("append", "b", None).op("describe", None, ["b"])
    assert config(scripted) is Verdict.VALID
    assert config(scripted.op("set", ["c"], None).op("describe", None, ["c"])) is Verdict.VALID
    assert config(scripted.op("describe", None, ["b"])) is Verdict.INVALID


def test_a_config_set_loses_nothing() -> None:
    scripted = ScriptedHistory().op("append", "a", None).op("describe", None, [])
    assert config(scripted) is Verdict.INVALID
    assert config(ScriptedHistory().op("describe", None, ["a"]), "a") is Verdict.VALID


def test_a_value_twice_in_a_described_list_is_invalid() -> None:
    assert (
        config(ScriptedHistory().op("append", "a", None).op("describe", None, ["a", "a"])) is Verdict.INVALID
    )


def test_unfinished_appends_and_subtractions_may_happen_when_they_are_needed() -> None:
    scripted = ScriptedHistory().op("subtract", "a", None, INFO).op("append", "a", None, INFO)
    scripted.op("describe", None, []).op("describe", None, ["a"]).op("describe", None, [])
    assert config(scripted) is Verdict.VALID
    assert config(scripted.op("describe", None, ["a"])) is Verdict.INVALID
