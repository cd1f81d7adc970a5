"""Clients of the register and its pretend brokers: what answers mean, and where the clients go."""

import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.proto import inspect_pb2 as pb
from tests.jepsen.checkers.trespass import (
    BROKER_EPOCH,
    LEADER_EPOCH,
    MEMBER_EPOCH,
    NOT_LEADER,
    OWN_CODES,
    TRESPASS,
)
from tests.jepsen.core.client import RawClient
from tests.jepsen.core.errors import ClientError, not_sent
from tests.jepsen.core.history import Op, OpType
from tests.jepsen.core.inspector import Inspector
from tests.jepsen.core.instant import setup_of
from tests.jepsen.workloads.pretend_broker import SESSION_TIMEOUT_MS, PretendBrokers
from tests.jepsen.workloads.register_client import (
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

EPOCHS = dict.fromkeys(REPLICAS, 7)
TOPIC_ID = uuid.UUID(int=1)


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


def test_a_broker_whose_epoch_is_stale_registers_again() -> None:
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


def sent(trespass: str | None) -> dict[str, Any]:
    """The fields of the request that identify a broker and its epoch; in the in-sync set 103 is the last one."""
    answers = altered(ErrorCode.none, 5)
    alter(cast("RawClient", answers), TOPIC_ID, EPOCHS, 4, [LEADER, 103], trespass)
    ((partition,),) = (topic["partitions"] for topic in answers.asked["topics"])
    assert (partition["partition_epoch"], partition["new_isr"]) == (4, [LEADER, 103])
    return {
        "sender": (answers.asked["broker_id"], answers.asked["broker_epoch"]),
        "leader_epoch": partition["leader_epoch"],
        "members": {each["broker_id"]: each["broker_epoch"] for each in partition["new_isr_with_epochs"]},
    }


@pytest.mark.parametrize(
    ("trespass", "wrong"),
    [
        (None, {}),
        (LEADER_EPOCH, {"leader_epoch": -1}),
        (BROKER_EPOCH, {"sender": (LEADER, 6)}),
        (MEMBER_EPOCH, {"members": {LEADER: 7, 103: 6}}),
        (NOT_LEADER, {"sender": (102, 7)}),
    ],
)
def test_of_each_trespass_one_thing_is_wrong(trespass: str | None, wrong: dict[str, Any]) -> None:
    right = {"sender": (LEADER, 7), "leader_epoch": 0, "members": {LEADER: 7, 103: 7}}
    assert sent(trespass) == right | wrong


def trespassed(client: object) -> Op:
    brokers, _ = pretend_brokers()
    controllers: Any = SimpleNamespace(leader=lambda: 1, client=lambda _: client)
    worker = RegisterWorker(setup_of(1).network, controllers, brokers, {1: TOPIC_ID}, 1.0)
    value = {"as": NOT_LEADER, "key": 1, "expected": 0, "value": [LEADER]}
    return worker.invoke(Op(type=OpType.INVOKE, f=TRESPASS, value=value, process=0))


def test_a_trespass_that_is_refused_is_ok_and_says_by_which_code() -> None:
    for code in OWN_CODES.values():
        error = ErrorCode[code.lower()]
        for answers in (altered(error), Answers(SimpleNamespace(error_code=error, topics=()))):
            op = trespassed(answers)
            assert (op.type, op.value["refused"], op.value["as"]) == (OpType.OK, code, NOT_LEADER)


def test_a_trespass_that_is_accepted_is_ok_and_says_so() -> None:
    answers = altered(ErrorCode.none, 1)
    op = trespassed(answers)
    assert (op.type, op.value["refused"]) == (OpType.OK, None)
    assert answers.asked["broker_id"] != LEADER, "it was the one that was asked for"


def test_a_trespass_without_a_clear_answer_is_in_doubt_and_one_that_was_not_sent_is_none() -> None:
    for client in (altered(ErrorCode.not_controller), altered(ErrorCode.unknown_server_error), Unanswering()):
        assert trespassed(client).type is OpType.INFO
    assert trespassed(NotConnected()).type is OpType.FAIL


class NotConnected:
    def request(self, *_: object) -> object:
        raise not_sent("cannot connect")


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
