"""Partition epochs as a register: what its clients ask, what its pretend brokers do, and what its checkers find."""

import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from tests.jepsen.checkers.verdicts import VALID_KEY, Verdict, check_all
from tests.jepsen.client import RawClient
from tests.jepsen.errors import ClientError
from tests.jepsen.generator import SECOND_NS, Phases
from tests.jepsen.history import History, Op, OpType
from tests.jepsen.inspector import Inspector
from tests.jepsen.instant import drive, setup_of
from tests.jepsen.judging import judge_stored
from tests.jepsen.members import Members
from tests.jepsen.porcupine.judge import Porcupine
from tests.jepsen.run import Options, run
from tests.jepsen.workloads import register
from tests.jepsen.workloads.pretend_broker import SESSION_TIMEOUT_MS, PretendBrokers
from tests.jepsen.workloads.register import EachUntilOk, Register, another_isr
from tests.jepsen.workloads.register_client import (
    ADD_KEY,
    CAS,
    LEADER,
    NO_VERSION,
    READ,
    REPLICAS,
    RegisterWorker,
    alter,
    read,
)
from tests.jepsen.workloads.register_controllers import Controllers
from tests.jepsen.workloads.workload import Judged
from wire.proto import inspect_pb2 as pb
from wire.protocol.entities import ErrorCode

EPOCHS = dict.fromkeys(REPLICAS, 7)
TOPIC_ID = uuid.UUID(int=1)


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


def test_another_isr_has_the_leader_and_is_another() -> None:
    dice = Random(5)
    current = list(REPLICAS)
    for _ in range(200):
        isr = another_isr(current, dice)
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


def pretend_brokers() -> tuple[PretendBrokers, Any]:
    brokers = PretendBrokers(setup_of(1), REPLICAS)
    first: Any = brokers.brokers[0]
    for each in brokers.brokers:
        each.epoch = 7
        brokers.hear(each, 0, is_fenced=False)
    return brokers, first


def test_epochs_are_those_of_brokers_that_are_all_alive() -> None:
    brokers, first = pretend_brokers()
    assert brokers.epochs() == EPOCHS
    brokers.hear(first, 0, is_fenced=True)
    with pytest.raises(ClientError, match="fenced: 101") as refusal:
        brokers.epochs()
    assert refusal.value.definite


def test_a_fence_counts_only_after_a_silence_that_allows_it() -> None:
    brokers, first = pretend_brokers()
    brokers.hear(first, 0, is_fenced=True)
    assert brokers.fencings == 0
    brokers.hear(first, 0, is_fenced=False)
    first.heard_s = time.monotonic() - SESSION_TIMEOUT_MS / 1000
    brokers.hear(first, 0, is_fenced=True)
    assert brokers.fencings == 1


def test_a_broker_whose_epoch_is_stale_registers_anew() -> None:
    brokers, first = pretend_brokers()
    brokers.hear(first, ErrorCode.stale_broker_epoch, is_fenced=False)
    assert first.epoch is None
    with pytest.raises(ClientError):
        brokers.epochs()


class Answers:
    """A RawClient that has one answer."""

    def __init__(self, response: object) -> None:
        self._response = response

    def request(self, _api_key: object, values: Mapping[str, Any]) -> object:
        self.asked = values
        return self._response


def altered(error: ErrorCode, partition_epoch: int = 0) -> Answers:
    partition = SimpleNamespace(error_code=error, partition_epoch=partition_epoch)
    topic = SimpleNamespace(partitions=(partition,))
    return Answers(SimpleNamespace(error_code=ErrorCode.none, topics=(topic,)))


def alter_at(answers: Answers) -> int:
    return alter(cast("RawClient", answers), TOPIC_ID, EPOCHS, 4, [LEADER])


def test_an_accepted_report_tells_the_new_epoch() -> None:
    assert alter_at(altered(ErrorCode.none, 5)) == 5


@pytest.mark.parametrize(
    ("error", "definite"),
    [
        (ErrorCode.invalid_update_version, True),
        (ErrorCode.fenced_leader_epoch, True),
        (ErrorCode.ineligible_replica, True),
        (ErrorCode.stale_broker_epoch, True),
        (ErrorCode.not_controller, False),
        (ErrorCode.new_leader_elected, False),
        (ErrorCode.unknown_server_error, False),
        (ErrorCode.request_timed_out, False),
    ],
)
def test_a_refused_report_is_definite_if_nothing_was_written(error: ErrorCode, definite: bool) -> None:
    of_all = Answers(SimpleNamespace(error_code=error, topics=()))
    for answers in (altered(error), of_all):
        with pytest.raises(ClientError) as refusal:
            alter_at(answers)
        assert refusal.value.definite is definite


class Images:
    def __init__(self, *chunks: pb.ImageChunk) -> None:
        self._chunks = chunks

    def image(self, consistency: int, _topics: tuple[str, ...]) -> list[pb.ImageChunk]:
        assert consistency == pb.LINEARIZABLE
        return list(self._chunks)


def test_a_read_shows_epoch_and_isr_or_that_there_is_no_such_key() -> None:
    partition = pb.Partition(partition_epoch=3, isr=[103, 101])
    chunk = pb.ImageChunk(topics=pb.TopicChunk(topics=[pb.Topic(partitions=[partition])]))
    shown = read(cast("Inspector", Images(chunk)), 9)
    assert shown == {"key": 9, "version": 3, "value": [103, 101]}
    assert read(cast("Inspector", Images()), 9)["version"] == NO_VERSION


def test_a_read_that_failed_had_no_effect_and_a_cas_may_have_had_one() -> None:
    brokers, _ = pretend_brokers()
    controllers: Any = SimpleNamespace(
        leader=lambda: 1, client=lambda _: unanswering, inspector=lambda _: unanswering
    )
    unanswering: Any = Unanswering()
    worker = RegisterWorker(setup_of(1).network, controllers, brokers, {1: TOPIC_ID}, 1.0)
    cas = Op(type=OpType.INVOKE, f=CAS, value={"key": 1, "expected": 0, "value": [101]}, process=0)
    assert worker.invoke(cas).type is OpType.INFO
    assert worker.invoke(replace(cas, f=READ, value={"key": 1})).type is OpType.FAIL


class Unanswering:
    def request(self, *_: object) -> object:
        raise ClientError("no answer", definite=False)

    def image(self, *_: object) -> object:
        raise ClientError("no answer", definite=False)


class Voices(Controllers):
    """Controllers that say whom they follow; None: it does not answer. `leading` say of themselves that they lead."""

    def __init__(self, home: int, says: Mapping[int, int | None], leading: set[int]) -> None:
        super().__init__(setup_of(1), home, 1.0)
        self._says = says
        self._leading = leading

    def _named_by(self, node_id: int) -> int | None:
        return self._says[node_id]

    def _leads(self, node_id: int) -> bool:
        return node_id in self._leading


def test_a_client_stays_with_a_leader_that_was_left_behind_if_its_home_is_there() -> None:
    says = {1: 1, 2: 3, 3: 3}
    assert Voices(1, says, {1, 3}).leader() == 1
    assert Voices(2, says, {1, 3}).leader() == 3


def test_a_leader_that_has_resigned_or_a_home_that_is_down_is_passed_by() -> None:
    assert Voices(1, {1: 1, 2: 3, 3: 3}, {3}).leader() == 3
    assert Voices(1, {1: None, 2: 3, 3: 3}, {3}).leader() == 3


def test_nothing_is_sent_while_the_home_knows_of_no_leader() -> None:
    with pytest.raises(ClientError) as refusal:
        Voices(2, {1: 1, 2: -1, 3: 1}, {1}).leader()
    assert refusal.value.definite


@pytest.mark.jepsen
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
