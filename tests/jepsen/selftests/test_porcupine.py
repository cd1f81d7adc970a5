"""Porcupine and our search agree; where it cannot be had, that is said and nothing else."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.jepsen.checkers.linear.checker import Linearizable
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict
from tests.jepsen.core.history import NEMESIS, History, Op, OpType, write_history
from tests.jepsen.core.register_histories import ScriptedHistory, cas, has_an_order, shown, tampered_histories
from tests.jepsen.porcupine import judge as module
from tests.jepsen.porcupine.judge import Porcupine, PorcupineUnavailable, Spec, built, judge

INFO, FAIL = OpType.INFO, OpType.FAIL
REFUSALS = Spec(refusals=True)


pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def porcupine() -> Path:
    try:
        return built()
    except PorcupineUnavailable as error:
        pytest.skip(f"no Porcupine here: {error}")


@pytest.fixture
def program(porcupine: Path, tmp_path: Path) -> Path:
    """A cache of the test's own that has the program already; the history goes beside it."""
    (tmp_path / porcupine.name).symlink_to(porcupine)
    return tmp_path


def said(scripted: ScriptedHistory, folder: Path, spec: Spec | None = None) -> Verdict:
    path = folder / "history.jsonl"
    write_history(scripted.history, path)
    return judge(path, 30, spec=spec, cache=folder)


def compared(history: History, folder: Path, spec: Spec | None = None) -> Results:
    return Porcupine(folder, spec=spec, timeout_s=30, cache=folder).check(history)


def test_a_good_history_is_ok(program: Path) -> None:
    scripted = (
        ScriptedHistory()
        .read(0)
        .cas(0, "a")
        .read(1, "a")
        .cas(1, {"b": [1]})
        .read(2, {"b": [1]})
        .read(0, key="other")
    )
    assert said(scripted, program) is Verdict.VALID


def test_a_stale_read_is_illegal(program: Path) -> None:
    assert said(ScriptedHistory().cas(0, "a").read(0), program) is Verdict.INVALID
    assert said(ScriptedHistory().cas(0, "a").read(1, "b"), program) is Verdict.INVALID
    assert said(ScriptedHistory().cas(0, "a").read(0, key="other"), program) is Verdict.VALID


def test_what_is_unfinished_may_happen_or_not(program: Path) -> None:
    assert said(ScriptedHistory().cas(0, "a", kind=INFO).read(0).read(1, "a"), program) is Verdict.VALID
    assert said(ScriptedHistory().cas(0, "a", kind=INFO).read(0), program) is Verdict.VALID
    assert said(ScriptedHistory().cas(0, "a", kind=INFO).read(1, "a").read(0), program) is Verdict.INVALID
    scripted = ScriptedHistory()
    scripted.begin("cas", cas(0, "a"))
    assert said(scripted.read(1, "a"), program) is Verdict.VALID
    assert said(ScriptedHistory().cas(0, "a", kind=FAIL).read(1, "a"), program) is Verdict.INVALID


@pytest.mark.parametrize(
    ("found", "expected"),
    [(1, Verdict.VALID), (0, Verdict.INVALID), (2, Verdict.INVALID), (None, Verdict.VALID)],
)
def test_a_refused_cas_is_a_look(program: Path, found: int | None, expected: Verdict) -> None:
    scripted = ScriptedHistory().cas(0, "a").op("cas", cas(0, "b"), {**cas(0, "b"), "found": found}, FAIL)
    assert said(scripted, program, REFUSALS) is expected
    assert said(scripted, program) is Verdict.VALID


def test_a_refusal_that_does_not_say_what_it_found_may_come_of_what_is_unfinished(program: Path) -> None:
    refused = {**cas(1, "z"), "found": None}
    scripted = ScriptedHistory().read(0).cas(0, "a", kind=INFO).op("cas", cas(1, "z"), refused, FAIL)
    assert said(scripted, program, REFUSALS) is Verdict.VALID
    assert said(scripted.read(1, "a"), program, REFUSALS) is Verdict.VALID
    gone = ScriptedHistory().cas(0, "a").cas(1, "b", kind=INFO).op("cas", cas(1, "z"), refused, FAIL)
    assert said(gone, program, REFUSALS) is Verdict.VALID
    never = ScriptedHistory().read(0).cas(3, "of no effect", kind=INFO).op("cas", cas(1, "z"), refused, FAIL)
    assert said(never, program, REFUSALS) is Verdict.VALID
    assert (
        said(ScriptedHistory().cas(0, "a").op("cas", cas(1, "z"), refused, FAIL), program, REFUSALS)
        is Verdict.INVALID
    )


def test_a_failing_search_with_many_unfinished_operations_comes_to_an_end(program: Path) -> None:
    scripted = ScriptedHistory()
    for version in range(100):
        scripted.cas(version, "lost", kind=INFO).cas(version, version).read(version + 1, version)
    scripted.cas(100, "happened", kind=INFO).read(101, "happened")
    assert said(scripted, program) is Verdict.VALID
    assert said(scripted.read(0), program) is Verdict.INVALID


def test_names_and_the_first_state_are_given(program: Path) -> None:
    spec = Spec(read="register-read", cas="register-cas", version=5, value={"b": 1, "a": [2]}, step=2)
    scripted = ScriptedHistory().op("register-read", {"key": "k"}, shown(5, {"a": [2], "b": 1}))
    scripted.op("register-cas", cas(5, "x"), {**cas(5, "x"), "version": 7}).read(99, "of another workload")
    assert said(scripted, program, spec) is Verdict.VALID
    assert compared(scripted.history, program, spec)[VALID_KEY] is Verdict.VALID
    assert said(scripted.op("register-read", {"key": "k"}, shown(6, "x")), program, spec) is Verdict.INVALID


def test_both_verdicts_are_reported_when_they_agree(program: Path) -> None:
    history = ScriptedHistory().cas(0, "a").read(1, "a").history
    history.append(Op(type=INFO, f="kill", value=None, process=NEMESIS))
    results = compared(history, program)
    assert (results[VALID_KEY], results["porcupine"], results["search"]) == (Verdict.VALID,) * 3
    bad = compared(ScriptedHistory().cas(0, "a").read(0).history, program)
    assert (bad[VALID_KEY], bad["porcupine"], bad["search"]) == (Verdict.INVALID,) * 3
    assert "error" not in bad


@pytest.mark.parametrize(
    ("theirs", "ours", "expected", "key"),
    [
        (Verdict.INVALID, Verdict.VALID, Verdict.INVALID, "error"),
        (Verdict.VALID, Verdict.INVALID, Verdict.INVALID, "error"),
        (Verdict.INVALID, Verdict.UNKNOWN, Verdict.INVALID, "note"),
        (Verdict.UNKNOWN, Verdict.VALID, Verdict.VALID, "note"),
        (Verdict.UNKNOWN, Verdict.UNKNOWN, Verdict.UNKNOWN, None),
    ],
)
def test_a_disagreement_is_invalid_and_a_missing_verdict_is_none(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    theirs: Verdict,
    ours: Verdict,
    expected: Verdict,
    key: str | None,
) -> None:
    monkeypatch.setattr(module, "judge", lambda *_, **__: theirs)
    monkeypatch.setattr(Linearizable, "check", lambda *_: {VALID_KEY: ours})
    results = Porcupine(tmp_path).check(ScriptedHistory().read(0).history)
    assert results[VALID_KEY] is expected
    assert {"error", "note"} & results.keys() == ({key} if key else set())


def test_without_go_it_is_left_out_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    with pytest.raises(PorcupineUnavailable, match="no go on the PATH"):
        built()
    results = Porcupine(tmp_path).check(ScriptedHistory().cas(0, "a").read(0).history)
    assert results == {VALID_KEY: Verdict.VALID, "left_out": "there is no go on the PATH"}


def test_a_build_that_fails_gives_its_last_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "go"
    fake.write_text("#!/bin/sh\necho first >&2\necho 'no such module' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(PorcupineUnavailable, match=r"^go build failed: no such module$"):
        built(tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_program_that_fails_is_no_verdict(tmp_path: Path, program: Path) -> None:
    with pytest.raises(PorcupineUnavailable, match="the program failed: porcupine: open"):
        judge(tmp_path / "missing.jsonl", cache=program)


def test_it_is_built_once(porcupine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert built(porcupine.parent) == porcupine


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tampered_histories())
def test_porcupine_agrees_with_the_search_and_with_trying_every_order(
    program: Path, history: History
) -> None:
    results = compared(history, program, REFUSALS)
    assert "error" not in results
    assert (results["porcupine"] is Verdict.VALID) == has_an_order(history)
