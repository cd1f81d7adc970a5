"""What must be refused whatever the state: how the register asks for it, and what is found where it is not."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.jepsen.checkers.trespass import MEMBER_EPOCH, NOT_LEADER, OWN_CODES, TRESPASS, Trespass
from tests.jepsen.checkers.verdicts import VALID_KEY, Results, Verdict, check_all
from tests.jepsen.core.generator import SECOND_NS, Phases
from tests.jepsen.core.history import History, Op, OpType
from tests.jepsen.core.instant import drive, setup_of
from tests.jepsen.core.members import Members
from tests.jepsen.porcupine.judge import Porcupine
from tests.jepsen.workloads import register
from tests.jepsen.workloads.register import Register
from tests.jepsen.workloads.register_client import ADD_KEY, CAS, READ, REPLICAS
from tests.jepsen.workloads.workload import Judged

End = tuple[OpType, str | None]
REFUSED: Sequence[tuple[str, End]] = [(kind, (OpType.OK, code)) for kind, code in OWN_CODES.items()]


def history_of(*trespasses: tuple[str, End]) -> History:
    """Kinds and how they ended: the code counts only where that is ok."""
    ops: list[Op] = []
    for kind, (end, code) in trespasses:
        op = Op(type=OpType.INVOKE, f=TRESPASS, value={"as": kind, "key": 1}, process=len(ops))
        told = {**op.value, "refused": code} if end is OpType.OK else op.value
        ops += [op, op.ended(end, told)]
    return History(ops)


def found(history: History) -> Results:
    return Trespass().check(history)


def test_a_history_without_trespasses_has_nothing_to_judge() -> None:
    results = found(history_of())
    assert (results[VALID_KEY], results["tried"]) == (Verdict.VALID, 0)


def test_trespasses_that_are_all_refused_are_valid_and_counted_by_code() -> None:
    results = found(history_of(*REFUSED, REFUSED[0]))
    assert results[VALID_KEY] is Verdict.VALID
    assert results["answered"] == 5
    assert results["refused"]["leader-epoch"] == {"FENCED_LEADER_EPOCH": 2}
    assert results["never_refused_as_such"] == []


@pytest.mark.parametrize("kind", OWN_CODES)
def test_one_that_is_accepted_is_invalid(kind: str) -> None:
    results = found(history_of(*REFUSED, (kind, (OpType.OK, None))))
    assert results[VALID_KEY] is Verdict.INVALID
    assert [(row["index"], row["as"]) for row in results["accepted"]] == [(9, kind)]


def test_a_refusal_for_another_reason_is_valid_and_proves_less() -> None:
    results = found(history_of((MEMBER_EPOCH, (OpType.OK, "INVALID_UPDATE_VERSION")), REFUSED[0]))
    assert results[VALID_KEY] is Verdict.VALID
    assert results["never_refused_as_such"] == ["broker-epoch", MEMBER_EPOCH, NOT_LEADER]


def test_without_any_answer_nothing_was_tested() -> None:
    silent = (MEMBER_EPOCH, (OpType.INFO, None)), (NOT_LEADER, (OpType.FAIL, None))
    assert found(history_of(*silent))[VALID_KEY] is Verdict.UNKNOWN
    assert found(history_of(*silent, REFUSED[0]))[VALID_KEY] is Verdict.VALID


class Partitions:
    """A cluster in a dictionary. For a trespass `answer_trespass` says whether it is carried out, and the response."""

    def __init__(self, answer_trespass: Callable[[str], tuple[bool, str | None]]) -> None:
        self._answer_trespass = answer_trespass
        self._states: dict[int, tuple[int, list[int]]] = {}

    def answer(self, op: Op) -> Op:
        asked = op.value
        if op.f == ADD_KEY:
            self._states[asked["key"]] = (0, list(REPLICAS))
            return op.ended(OpType.OK, asked)
        version, value = self._states[asked["key"]]
        if op.f == READ:
            return op.ended(OpType.OK, {**asked, "version": version, "value": value, "fencings": 0})
        if op.f == TRESPASS:
            is_done, code = self._answer_trespass(asked["as"])
            if is_done:
                self._states[asked["key"]] = (version + 1, asked["value"])
            return op.ended(OpType.OK, {**asked, "refused": code})
        if asked["expected"] != version:
            return op.ended(OpType.FAIL, asked, "INVALID_UPDATE_VERSION")
        self._states[asked["key"]] = (version + 1, asked["value"])
        return op.ended(OpType.OK, {**asked, "version": version + 1})


def sound(kind: str) -> tuple[bool, str | None]:
    return False, OWN_CODES[kind]


def driven(answer_trespass: Callable[[str], tuple[bool, str | None]]) -> History:
    workload = Register(setup_of(4))
    whole = Phases(workload.main(12 * SECOND_NS), workload.final())
    return drive(workload, whole, Partitions(answer_trespass).answer)


def verdicts(history: History) -> dict[str, Any]:
    judged = Judged(folder=Path(), members=Members((1, 2, 3), (11, 12)))
    ours = [each for each in register.checkers(judged) if each.name != Porcupine.name]
    return {name: each for name, each in check_all(ours, history).items() if name != VALID_KEY}


def test_the_register_asks_for_trespasses_of_all_kinds_now_and_then() -> None:
    history = driven(sound)
    asked = [op for op in history if op.type is OpType.INVOKE]
    kinds = [op.value["as"] for op in asked if op.f == TRESPASS]
    assert set(kinds) == set(OWN_CODES)
    assert 0.05 < len(kinds) / len(asked) < 0.12
    assert {each[VALID_KEY] for each in verdicts(history).values()} == {Verdict.VALID}


def test_nothing_else_is_wrong_with_a_trespass_that_the_register_asks_for() -> None:
    """It names the epoch that the partition has, and an in-sync set that would be a change."""
    current: dict[int, tuple[int, list[int]]] = {}
    for op in driven(sound):
        if op.type is OpType.OK and op.f in (ADD_KEY, CAS):
            current[op.value["key"]] = op.value.get("version", 0), op.value.get("value", list(REPLICAS))
        if op.type is OpType.INVOKE and op.f == TRESPASS:
            version, value = current[op.value["key"]]
            assert op.value["expected"] == version
            assert op.value["value"] != value


def test_an_accepted_trespass_is_no_violation_by_a_cas_but_the_versions_tell_of_it_too() -> None:
    found = verdicts(driven(lambda kind: (True, None) if kind == NOT_LEADER else sound(kind)))
    assert found["trespass"][VALID_KEY] is Verdict.INVALID
    assert {row["as"] for row in found["trespass"]["accepted"]} == {NOT_LEADER}
    versions = found["register-versions"]
    assert versions["phantom_count"] > 0
    assert versions["lost-update_count"] == versions["stale-read_count"] == versions["gone-back_count"] == 0


def test_a_trespass_that_is_refused_and_carried_out_all_the_same_is_a_phantom() -> None:
    found = verdicts(driven(lambda kind: (True, OWN_CODES[kind])))
    assert found["trespass"][VALID_KEY] is Verdict.VALID
    assert found["register-versions"][VALID_KEY] is found["register-linear"][VALID_KEY] is Verdict.INVALID
