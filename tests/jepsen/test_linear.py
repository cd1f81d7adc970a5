"""The search finds an order where there is one, and says where it got stuck where there is none."""

import time
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.jepsen.checkers.linear.checker import Linearizable
from tests.jepsen.checkers.linear.models import ConfigSet, Model, Register
from tests.jepsen.checkers.linear.versioned import VersionedRegister
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.history import History, Operation, OpType
from tests.jepsen.register_histories import (
    Told,
    cas,
    correct_histories,
    has_an_order,
    shown,
    tampered_histories,
    wild_histories,
)

VERSIONED = ("read", "cas")
PLAIN = ("read", "write", "cas")
CONFIG = ("append", "subtract", "set", "describe")
INFO, FAIL = OpType.INFO, OpType.FAIL


def judged(history: History, model: Model | None = None, fs: Any = VERSIONED, **more: Any) -> Results:
    return Linearizable(model or VersionedRegister(), fs, **more).check(history)


def verdict(told: Told, model: Model | None = None, fs: Any = VERSIONED) -> Verdict:
    found: Verdict = judged(told.history, model, fs)[VALID_KEY]
    return found


# ------------------------------------------------------------------------------ the versioned register


def test_reads_and_cas_one_after_the_other_are_valid() -> None:
    results = judged(Told().read(0).cas(0, "a").read(1, "a").cas(1, "b").read(2, "b").history)
    assert results[VALID_KEY] is Verdict.VALID
    assert (results["keys"], results["operations"]) == (1, 5)


def test_a_read_of_what_an_unfinished_cas_wrote_is_valid() -> None:
    assert verdict(Told().cas(0, "a", kind=INFO).read(1, "a")) is Verdict.VALID


def test_an_unfinished_cas_may_happen_after_later_operations() -> None:
    assert verdict(Told().cas(0, "a", kind=INFO).read(0).read(0).read(1, "a")) is Verdict.VALID


def test_a_read_may_show_either_side_of_a_concurrent_cas_but_not_go_back() -> None:
    story = Told()
    writer = story.begin("cas", cas(0, "a"))
    story.read(0).read(1, "a")
    assert verdict(story.end(writer, {**cas(0, "a"), "version": 1})) is Verdict.VALID
    story = Told()
    writer = story.begin("cas", cas(0, "a"))
    story.read(1, "a").read(0)
    assert verdict(story.end(writer, {**cas(0, "a"), "version": 1})) is Verdict.INVALID


def test_a_stale_read_is_invalid_and_the_report_says_what_was_possible() -> None:
    story = Told().cas(0, "a").cas(1, "b")
    slow = story.begin("cas", cas(2, "c"))
    story.read(1, "a").read(2, "b").end(slow, {**cas(2, "c"), "version": 3})
    results = judged(story.history)
    (report,) = results["invalid"]
    assert results[VALID_KEY] is Verdict.INVALID
    assert report["key"] == "k"
    assert (report["stuck"]["told"], report["stuck"]["ended"]) == (shown(1, "a"), 6)
    assert report["placed"] == 2, "the two cas before it"
    assert report["states"] == [[2, "b"]]
    assert [each["asked"] for each in report["concurrent"]] == [cas(2, "c")]


def test_the_report_names_what_may_have_happened_still() -> None:
    story = Told().cas(0, "x", kind=INFO).read(1, "x").read(0)
    (report,) = judged(story.history)["invalid"]
    assert [each["asked"] for each in report["perhaps"]] == [cas(0, "x")]
    assert report["perhaps"][0]["ended"] is None


def test_the_report_ends_where_the_contradiction_does() -> None:
    """The read is well explained by the unfinished cas, until another one is acknowledged with its version."""
    story = Told().cas(0, "a", kind=INFO).read(1, "a").read(1, "a").cas(0, "b").read(1, "a")
    (report,) = judged(story.history)["invalid"]
    assert report["stuck"]["asked"] == cas(0, "b")
    assert (report["placed"], report["states"]) == (2, [[1, "a"]])


def test_what_ended_later_was_concurrent_and_may_have_happened() -> None:
    story = Told()
    slow, reader = story.begin("cas", cas(0, "a")), story.begin("read", {"key": "k"})
    story.read(1, "a").end(slow, {**cas(0, "a"), "version": 1}).read(0).end(reader, shown(1, "a"))
    (report,) = judged(story.history)["invalid"]
    assert report["stuck"]["told"] == shown(0)
    assert [each["f"] for each in report["concurrent"]] == ["read"]
    assert report["states"] == [[1, "a"]]


def test_a_reply_with_another_version_than_the_next_is_invalid() -> None:
    assert verdict(Told().cas(0, "a", told=2)) is Verdict.INVALID
    model = VersionedRegister(step=2)
    assert verdict(Told().cas(0, "a", told=2).read(2, "a"), model) is Verdict.VALID


def test_the_first_version_and_value_are_the_models() -> None:
    story = Told().read(7, "first").cas(7, "a")
    assert verdict(story, VersionedRegister(version=7, value="first")) is Verdict.VALID
    assert verdict(story) is Verdict.INVALID


def test_a_failed_cas_has_no_effect() -> None:
    assert verdict(Told().cas(0, "a", kind=FAIL).read(0)) is Verdict.VALID
    assert verdict(Told().cas(0, "a", kind=FAIL).read(1, "a")) is Verdict.INVALID


@pytest.mark.parametrize(
    ("found", "expected"),
    [(1, Verdict.VALID), (0, Verdict.INVALID), (2, Verdict.INVALID), (None, Verdict.VALID)],
)
def test_a_refused_cas_counts_as_a_look_where_asked_for(found: int | None, expected: Verdict) -> None:
    story = Told().cas(0, "a").op("cas", cas(0, "b"), {**cas(0, "b"), "found": found}, FAIL)
    assert verdict(story, VersionedRegister(refusals=True)) is expected
    assert verdict(story) is Verdict.VALID


def test_a_cas_refused_though_nobody_else_wrote_is_invalid() -> None:
    story = Told().read(0).op("cas", cas(0, "b"), {**cas(0, "b"), "found": None}, FAIL)
    assert verdict(story, VersionedRegister(refusals=True)) is Verdict.INVALID
    lost = Told().cas(0, "a", kind=INFO).op("cas", cas(0, "b"), {**cas(0, "b"), "found": None}, FAIL)
    lost.read(1, "a")
    assert verdict(lost, VersionedRegister(refusals=True)) is Verdict.VALID


def test_keys_are_judged_by_themselves() -> None:
    good = Told().cas(0, "a", key="k").read(0, key="other").read(1, "a", key="k")
    assert verdict(good) is Verdict.VALID
    results = judged(good.read(5, "?", key="other").history)
    assert [each["key"] for each in results["invalid"]] == ["other"]


def test_only_operations_of_the_given_names_are_looked_at() -> None:
    story = Told().read(9, "?").op("register-read", {"key": "k"}, shown(0)).op("list", None, ["t"])
    assert verdict(story, fs={"register-read": "read"}) is Verdict.VALID


def test_a_name_that_the_model_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="no append"):
        Linearizable(VersionedRegister(), ("read", "append"))


def test_without_an_operation_that_succeeded_nothing_is_known() -> None:
    assert verdict(Told()) is Verdict.UNKNOWN
    assert verdict(Told().cas(0, "a", kind=INFO)) is Verdict.UNKNOWN


def test_an_operation_without_an_end_may_have_happened() -> None:
    story = Told()
    story.begin("cas", cas(0, "a"))
    assert verdict(story.read(1, "a")) is Verdict.VALID


# ------------------------------------------------------------------------------ plain registers and sets


def plain(told: Told) -> Verdict:
    return verdict(told, Register(), PLAIN)


def test_a_plain_register_reads_writes_and_swaps() -> None:
    story = Told().op("read", None, None).op("write", 1, 1).op("cas", [1, 2], [1, 2]).op("read", None, 2)
    assert plain(story) is Verdict.VALID
    assert plain(story.op("read", None, 1)) is Verdict.INVALID
    assert plain(Told().op("write", 1, 1).op("cas", [3, 4], [3, 4])) is Verdict.INVALID


def test_a_chain_of_unfinished_operations_can_explain_a_read() -> None:
    story = Told().op("cas", [1, 2], None, INFO).op("write", 1, None, INFO)
    assert plain(story.op("read", None, 2)) is Verdict.VALID
    assert plain(story.op("read", None, 1)) is Verdict.INVALID, "one write of 1 is all there was"


def test_an_unfinished_write_explains_one_appearance_only_if_nothing_came_between() -> None:
    story = Told().op("write", 1, None, INFO).op("read", None, 1).op("write", 2, 2).op("read", None, 1)
    assert plain(story) is Verdict.INVALID
    twice = Told().op("write", 1, None, INFO).op("write", 1, None, INFO)
    twice.op("read", None, 1).op("write", 2, 2).op("read", None, 1)
    assert plain(twice) is Verdict.VALID


def test_lists_and_maps_can_be_values_of_keyed_registers() -> None:
    value = {"isr": [1, 2]}
    story = Told().op("write", {"key": ["t", 0], "value": value}, None)
    story.op("read", {"key": ["t", 0]}, {"key": ["t", 0], "value": {"isr": [1, 2]}})
    assert plain(story) is Verdict.VALID
    story.op("read", {"key": ["t", 0]}, {"key": ["t", 0], "value": {"isr": [2, 1]}})
    results = judged(story.history, Register(), PLAIN)
    assert results["invalid"][0]["states"] == [[["isr", [1, 2]]]]


def config(told: Told, *start: str) -> Verdict:
    return verdict(told, ConfigSet(start), CONFIG)


def test_a_config_set_appends_and_subtracts() -> None:
    story = Told().op("append", "a", None).op("append", "b", None).op("describe", None, ["b", "a"])
    assert config(story) is Verdict.VALID
    story.op("subtract", "a", None).op("append", "b", None).op("describe", None, ["b"])
    assert config(story) is Verdict.VALID
    assert config(story.op("set", ["c"], None).op("describe", None, ["c"])) is Verdict.VALID
    assert config(story.op("describe", None, ["b"])) is Verdict.INVALID


def test_a_config_set_loses_nothing() -> None:
    story = Told().op("append", "a", None).op("describe", None, [])
    assert config(story) is Verdict.INVALID
    assert config(Told().op("describe", None, ["a"]), "a") is Verdict.VALID


def test_a_value_twice_in_a_described_list_is_invalid() -> None:
    assert config(Told().op("append", "a", None).op("describe", None, ["a", "a"])) is Verdict.INVALID


def test_unfinished_appends_and_subtractions_may_happen_when_they_are_needed() -> None:
    story = Told().op("subtract", "a", None, INFO).op("append", "a", None, INFO)
    story.op("describe", None, []).op("describe", None, ["a"]).op("describe", None, [])
    assert config(story) is Verdict.VALID
    assert config(story.op("describe", None, ["a"])) is Verdict.INVALID


# ------------------------------------------------------------------------------ against every order


@settings(max_examples=50, deadline=None)
@given(correct_histories(operations_max=12, keys=2))
def test_a_correct_register_is_never_accused(history: History) -> None:
    results = judged(history, VersionedRegister(refusals=True))
    assert results["invalid"] == []
    assert results["unfinished"] == []


@settings(max_examples=60, deadline=None)
@given(tampered_histories())
def test_the_search_agrees_with_trying_every_order(history: History) -> None:
    results = judged(history, VersionedRegister(refusals=True))
    assert (results["invalid"] == []) == has_an_order(history)


VALUES = st.integers(0, 2)
SWAPS = st.lists(VALUES, min_size=2, max_size=2)
SETS = st.lists(st.sampled_from("ab"), unique=True)


def step_of_values(operation: Operation, state: tuple[int]) -> tuple[int] | None:
    f, asked = operation.invoke.f, operation.invoke.value
    if f == "write":
        return (asked,)
    if f == "read":
        return state if state == (operation.value,) else None
    return (asked[1],) if state == (asked[0],) else None


def step_of_sets(operation: Operation, state: set[str]) -> set[str] | None:
    f, asked = operation.invoke.f, operation.invoke.value
    if f == "describe":
        return state if state == set(operation.value) else None
    if f == "set":
        return set(asked)
    return state | {asked} if f == "append" else state - {asked}


@settings(max_examples=80, deadline=None)
@given(
    wild_histories(
        st.tuples(st.just("read"), st.none(), VALUES)
        | st.tuples(st.just("write"), VALUES, st.none())
        | st.tuples(st.just("cas"), SWAPS, st.none())
    )
)
def test_a_plain_register_agrees_with_trying_every_order(history: History) -> None:
    results = judged(history, Register(0), PLAIN)
    assert (results["invalid"] == []) == has_an_order(history, step_of_values, (0,))


@settings(max_examples=80, deadline=None)
@given(
    wild_histories(
        st.tuples(st.just("describe"), st.none(), SETS)
        | st.tuples(st.sampled_from(("append", "subtract")), st.sampled_from("ab"), st.none())
        | st.tuples(st.just("set"), SETS, st.none())
    )
)
def test_a_config_set_agrees_with_trying_every_order(history: History) -> None:
    results = judged(history, ConfigSet(), CONFIG)
    assert (results["invalid"] == []) == has_an_order(history, step_of_sets, set())


def shortened(history: History, end: int) -> History:
    """Up to a line; what failed later is known not to have happened."""
    failed = {op.process for op in history[end + 1 :] if op.type is FAIL}
    return History(op for op in history[: end + 1] if op.process not in failed)


@settings(max_examples=60, deadline=None)
@given(tampered_histories())
def test_the_report_is_of_the_smallest_prefix_without_an_order(history: History) -> None:
    results = judged(history, VersionedRegister(refusals=True))
    for report in results["invalid"]:
        ended = report["stuck"]["ended"]
        assert not has_an_order(shortened(history, ended))
        assert has_an_order(shortened(history, ended - 1))


# ------------------------------------------------------------------------------ size


def long_history(operations: int, infos: int, seed: int) -> Told:
    """Five clients on one key; infos begin all along, and every third of them happens."""
    dice = Random(seed)
    story = Told()
    version = 0
    value: str | int | None = None
    for number in range(operations):
        if number % (operations // infos) == 0:
            story.cas(version, f"info-{number}", kind=INFO)
            if number % 3 == 0:
                version, value = version + 1, f"info-{number}"
        elif dice.random() < 0.5:
            others = [story.begin("read", {"key": "k"}) for _ in range(4)]
            story.read(version, value)
            for process in others:
                story.end(process, shown(version, value))
        else:
            story.cas(version, number)
            version, value = version + 1, number
    return story.read(version, value)


def test_two_thousand_operations_with_hundreds_of_unfinished_ones_take_a_moment() -> None:
    story = long_history(2_000, infos=300, seed=1)
    begun = time.monotonic()
    results = judged(story.history)
    assert results[VALID_KEY] is Verdict.VALID
    assert results["steps"] < 10_000
    assert time.monotonic() - begun < 5
    assert judged(story.read(0).history)[VALID_KEY] is Verdict.INVALID


def test_a_search_that_takes_too_many_steps_is_in_doubt_and_says_where() -> None:
    story = long_history(100, infos=10, seed=2)
    results = judged(story.history, max_steps=5)
    assert results[VALID_KEY] is Verdict.UNKNOWN
    assert (results["unfinished_count"], results["steps"]) == (1, 5)
    assert results["unfinished"][0]["key"] == "k"


def test_unfinished_writes_to_a_plain_register_do_not_make_the_search_explode() -> None:
    story = Told()
    for number in range(30):
        story.op("write", f"info-{number}", None, INFO)
    for number in range(500):
        story.op("write", number, None).op("read", None, number)
        if number % 50 == 0:
            story.op("read", None, f"info-{number // 50}")
    assert plain(story) is Verdict.VALID
    assert plain(story.op("read", None, "info-3")) is Verdict.INVALID


def test_unfinished_appends_do_not_make_the_search_explode() -> None:
    story = Told()
    for number in range(30):
        story.op("append", f"info-{number}", None, INFO)
    for number in range(1, 15):
        story.op("describe", None, [f"info-{each}" for each in range(number)])
    assert config(story) is Verdict.VALID
    assert config(story.op("describe", None, ["info-0"])) is Verdict.INVALID
