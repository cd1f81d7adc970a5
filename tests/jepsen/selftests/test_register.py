"""Partition epochs as a register: what its clients ask, what its pretend brokers do, and what its checkers find."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from rich.console import Console

from tests.jepsen.checkers.trespass import TRESPASS
from tests.jepsen.checkers.verdicts import VALID_KEY, Verdict, check_all
from tests.jepsen.core.generator import SECOND_NS, Phases
from tests.jepsen.core.history import History, Op, OpType
from tests.jepsen.core.instant import drive, setup_of
from tests.jepsen.core.judging import judge_stored
from tests.jepsen.core.members import Members
from tests.jepsen.core.run import Options, run
from tests.jepsen.porcupine.judge import Porcupine
from tests.jepsen.workloads import register
from tests.jepsen.workloads.register import EachUntilOk, Register, another_isr
from tests.jepsen.workloads.register_client import (
    ADD_KEY,
    CAS,
    LEADER,
    NO_VERSION,
    READ,
    REPLICAS,
)
from tests.jepsen.workloads.workload import Judged


class Partitions:
    """A sound cluster in a dictionary; every `info_each`-th cas is carried out without an answer."""

    def __init__(self, info_each: int = 0) -> None:
        self.states: dict[int, tuple[int, list[int]]] = {}
        self._info_each = info_each
        self._cases = 0

    def answer(self, op: Op) -> Op:
        key = op.value["key"]
        if op.f == ADD_KEY:
            self.states[key] = (0, list(REPLICAS))
            return op.ended(OpType.OK, op.value)
        version, value = self.states[key]
        if op.f == READ:
            return op.ended(OpType.OK, {"key": key, "version": version, "value": value, "fencings": 0})
        if op.f == TRESPASS:
            return op.ended(OpType.OK, {**op.value, "refused": "STALE_BROKER_EPOCH"})
        if op.value["expected"] != version:
            return op.ended(OpType.FAIL, op.value, "INVALID_UPDATE_VERSION")
        assert op.value["value"] != value, "a cas that changes nothing has no version of its own"
        self.states[key] = (version + 1, op.value["value"])
        self._cases += 1
        if self._info_each and self._cases % self._info_each == 0:
            return op.ended(OpType.INFO, op.value, "no answer")
        return op.ended(OpType.OK, {**op.value, "version": version + 1})


def driven(time_s: float, seed: int = 3, info_each: int = 0) -> History:
    workload = Register(setup_of(seed))
    cluster = Partitions(info_each)
    whole = Phases(workload.main(round(time_s * SECOND_NS)), workload.final())
    return drive(workload, whole, cluster.answer)


def verdict(history: History) -> Verdict:
    """Without Porcupine, which tests of its own compare with ours."""
    judged = Judged(folder=Path(), members=Members((1, 2, 3), (11, 12)))
    ours = [each for each in register.checkers(judged) if each.name != Porcupine.name]
    found: Verdict = check_all(ours, history)[VALID_KEY]
    return found


def changed(history: History, op: Op, value: Mapping[str, object]) -> History:
    return History(replace(each, value=value) if each.index == op.index else each for each in history)


def ends(history: History, f: str, kind: OpType = OpType.OK) -> list[Op]:
    return [op for op in history if op.f == f and op.type is kind]


def test_what_a_sound_cluster_answers_is_valid_and_mostly_ok() -> None:
    history = driven(20, info_each=25)
    assert verdict(history) is Verdict.VALID
    assert len(ends(history, CAS, OpType.INFO)) > 5
    assert len(ends(history, CAS)) > 4 * len(ends(history, CAS, OpType.FAIL)) > 0


def test_cases_that_rest_on_an_old_epoch_are_tried_on_purpose() -> None:
    history = driven(10)
    refused = ends(history, CAS, OpType.FAIL)
    assert len(refused) > 10
    assert {op.error for op in refused} == {"INVALID_UPDATE_VERSION"}


def test_keys_are_given_up_after_some_operations_and_new_ones_take_their_place() -> None:
    history = driven(40)
    counts: dict[int, int] = {}
    for op in history:
        if op.type is OpType.OK and op.f in (READ, CAS) and not op.final:
            counts[op.value["key"]] = counts.get(op.value["key"], 0) + 1
    assert len(counts) > 10
    assert max(counts.values()) == 100
    assert sum(count < 100 for count in counts.values()) == 5


def test_every_key_is_read_at_the_end() -> None:
    history = driven(20)
    final = [op.value["key"] for op in ends(history, READ) if op.final]
    assert sorted(final) == sorted(op.value["key"] for op in ends(history, ADD_KEY))


def test_a_tampered_read_is_invalid() -> None:
    history = driven(5)
    shown = ends(history, READ)[20]
    other = another_isr(shown.value["value"], Random(1))
    assert verdict(changed(history, shown, {**shown.value, "value": other})) is Verdict.INVALID
    older = {**shown.value, "version": shown.value["version"] - 1}
    assert verdict(changed(history, shown, older)) is Verdict.INVALID


def test_a_cas_that_should_have_been_refused_is_invalid() -> None:
    history = driven(5)
    refused = ends(history, CAS, OpType.FAIL)[3]
    value = {**refused.value, "version": refused.value["expected"] + 1}
    accepted = History(
        replace(op, type=OpType.OK, value=value, error=None) if op.index == refused.index else op
        for op in history
    )
    assert verdict(accepted) is Verdict.INVALID


def test_a_key_that_is_gone_is_invalid() -> None:
    history = driven(5)
    last = ends(history, READ)[-1]
    gone = {"key": last.value["key"], "version": NO_VERSION, "value": None, "fencings": 0}
    assert verdict(changed(history, last, gone)) is Verdict.INVALID


def test_violations_are_in_doubt_where_a_controller_had_reason_to_fence() -> None:
    history = driven(5)
    last = ends(history, READ)[-1]
    bumped = {**last.value, "version": last.value["version"] + 2, "fencings": 1}
    assert verdict(changed(history, last, bumped)) is Verdict.UNKNOWN
    assert verdict(changed(history, last, {**last.value, "fencings": 1})) is Verdict.VALID


def test_a_violation_long_before_a_fencing_is_none_of_its_doing() -> None:
    history = driven(5)
    early, last = ends(history, READ)[20], ends(history, READ)[-1]
    tampered = changed(history, early, {**early.value, "version": early.value["version"] + 7})
    late_ns = last.time_ns + 200 * SECOND_NS
    noticed = [replace(op, time_ns=late_ns) if op.index >= last.index else op for op in tampered]
    noticed[last.index] = replace(noticed[last.index], value={**last.value, "fencings": 1})
    assert verdict(History(noticed)) is Verdict.INVALID


def test_another_isr_has_the_leader_and_is_another() -> None:
    random_source = Random(5)
    current = list(REPLICAS)
    for _ in range(200):
        isr = another_isr(current, random_source)
        assert LEADER in isr
        assert isr != current
        assert len(set(isr)) == len(isr)
        assert set(isr) <= set(REPLICAS)
        current = isr


def test_what_did_not_end_well_is_asked_again_until_it_does() -> None:
    tries: list[int] = []

    def answer(op: Op) -> Op:
        tries.append(op.value)
        return op.ended(OpType.OK if tries.count(op.value) == 3 else OpType.FAIL, op.value)

    each = EachUntilOk(lambda: (1, 2), lambda turn, key: turn.invoke(READ, key))
    drive(Register(setup_of(1)), each, answer)
    assert sorted(tries) == [1, 1, 1, 2, 2, 2]


@pytest.mark.jepsen
@pytest.mark.slow
def test_a_run_with_an_isolated_leader_is_valid_and_tampered_with_it_is_not(tmp_path: Path) -> None:
    options = Options(
        workload="register,config-set",
        nemesis="isolate-leader",
        time_s=14.0,
        brokers=2,
        rate=25.0,
        concurrency=6,
        quiet_s=3.0,
        seed=8,
    )
    outcome = run(options, tmp_path, Console())
    assert outcome.verdict is Verdict.VALID, outcome.results
    for f in (READ, CAS, "append", "describe", "read-items"):
        assert len(ends(outcome.history, f)) > 10, f
    assert judge_stored(outcome.folder)[VALID_KEY] is Verdict.VALID
    shown = ends(outcome.history, READ)[-1]
    lie = {**shown.value, "version": shown.value["version"] + 1}
    assert verdict(changed(outcome.history, shown, lie)) is Verdict.INVALID
