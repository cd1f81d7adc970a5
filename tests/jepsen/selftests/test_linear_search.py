"""The search agrees with trying every order, and does not grow with what is unfinished."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.jepsen.checkers.linear.models import ConfigSet, Register
from tests.jepsen.checkers.linear.versioned import VersionedRegister
from tests.jepsen.checkers.verdicts import VALID_KEY, Verdict
from tests.jepsen.core.history import History, Operation
from tests.jepsen.core.register_histories import (
    CONFIG,
    FAIL,
    INFO,
    PLAIN,
    ScriptedHistory,
    correct_histories,
    has_an_order,
    judged,
    shown,
    tampered_histories,
    wild_histories,
)


def plain(told: ScriptedHistory) -> Verdict:
    found: Verdict = judged(told.history, Register(), PLAIN)[VALID_KEY]
    return found


def config(told: ScriptedHistory) -> Verdict:
    found: Verdict = judged(told.history, ConfigSet(), CONFIG)[VALID_KEY]
    return found


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


def long_history(operations: int, infos: int, seed: int) -> ScriptedHistory:
    """Five clients on one key; infos begin all along, and every third of them happens."""
    random_source = Random(seed)
    scripted = ScriptedHistory()
    version = 0
    value: str | int | None = None
    for number in range(operations):
        if number % (operations // infos) == 0:
            scripted.cas(version, f"info-{number}", kind=INFO)
            if number % 3 == 0:
                version, value = version + 1, f"info-{number}"
        elif random_source.random() < 0.5:
            others = [scripted.begin("read", {"key": "k"}) for _ in range(4)]
            scripted.read(version, value)
            for process in others:
                scripted.end(process, shown(version, value))
        else:
            scripted.cas(version, number)
            version, value = version + 1, number
    return scripted.read(version, value)


def test_two_thousand_operations_with_hundreds_of_unfinished_ones_take_few_steps() -> None:
    scripted = long_history(2_000, infos=300, seed=1)
    results = judged(scripted.history)
    assert results[VALID_KEY] is Verdict.VALID
    assert results["steps"] < results["operations"]


def test_an_invalid_history_with_many_unfinished_operations_takes_no_longer() -> None:
    results = judged(long_history(500, infos=80, seed=1).read(0).history)
    assert results[VALID_KEY] is Verdict.INVALID
    assert results["steps"] < results["operations"]


def test_a_search_that_takes_too_many_steps_is_in_doubt_and_says_where() -> None:
    scripted = long_history(100, infos=10, seed=2)
    results = judged(scripted.history, max_steps=5)
    assert results[VALID_KEY] is Verdict.UNKNOWN
    assert (results["unfinished_count"], results["steps"]) == (1, 5)
    assert results["unfinished"][0]["key"] == "k"


def test_unfinished_writes_to_a_plain_register_do_not_make_the_search_explode() -> None:
    scripted = ScriptedHistory()
    for number in range(30):
        scripted.op("write", f"info-{number}", None, INFO)
    for number in range(500):
        scripted.op("write", number, None).op("read", None, number)
        if number % 50 == 0:
            scripted.op("read", None, f"info-{number // 50}")
    assert plain(scripted) is Verdict.VALID
    assert plain(scripted.op("read", None, "info-3")) is Verdict.INVALID


def test_unfinished_appends_do_not_make_the_search_explode() -> None:
    scripted = ScriptedHistory()
    for number in range(30):
        scripted.op("append", f"info-{number}", None, INFO)
    for number in range(1, 15):
        scripted.op("describe", None, [f"info-{each}" for each in range(number)])
    assert config(scripted) is Verdict.VALID
    assert config(scripted.op("describe", None, ["info-0"])) is Verdict.INVALID
