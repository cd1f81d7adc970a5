"""Deadlines, requests for nothing, and faults of our own (rules C1, C2)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kquorum.metadata.controller import controller as controller_module
from kquorum.metadata.controller.config import ControllerConfig
from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.controller import Controller
from kquorum.metadata.controller.periodic import Outcome, PeriodicTask
from kquorum.metadata.controller.quorum.activation import LogUnsupported
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.controller.results import ControllerResult
from kquorum.metadata.controller_apis import HANDLERS
from kquorum.metadata.image.errors import ReplayError
from kquorum.snapshots.bootstrap import bootstrap_records
from kquorum.wire.log_batch import build_batch
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.configs import ClientQuotaRecord, EntityData
from kquorum.wire.metadata_records.features import BeginTransactionRecord, NoOpRecord
from kquorum.wire.metadata_records.topics import RemoveTopicRecord
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.record_frame import encode_record
from kquorum.wire.uuids import METADATA_TOPIC_ID
from tests.support import api_calls
from tests.support.api_calls import Values
from tests.support.controller_world import CLUSTER_ID, NODE_ID, SeededRandomSource, World, topic
from tests.support.metadata.faulty_world import FaultyWorld


def codes(answer: Values) -> list[ErrorCode]:
    return [entry.error_code for entry in answer.topics]


def request_of(api_key: ApiKey, version: int, **values: Any) -> ControllerRequest:
    body = api_calls.request_of(api_key, version, values)
    return ControllerRequest(api_key=api_key, api_version=version, body=body)


def broken(_context: DecisionContext, _request: ControllerRequest) -> ControllerResult:
    raise ZeroDivisionError("something private")


Break = Callable[[ApiKey], None]


@pytest.fixture
def break_handler(monkeypatch: pytest.MonkeyPatch) -> Break:
    def do(api_key: ApiKey) -> None:
        handlers = {**HANDLERS, api_key: broken}
        monkeypatch.setattr(controller_module, "HANDLERS", handlers)

    return do


# Deadlines


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_a_request_without_time_has_no_effect(timeout_ms: int) -> None:
    world = World().lead().add_brokers(0)
    start = world.raft.log_end_offset
    answers = world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("a")], timeout=timeout_ms)
    assert codes(answers[0]) == [ErrorCode.request_timed_out]
    assert "no effect" in answers[0].topics[0].error_message
    assert world.raft.records(start) == []


def test_time_counts_from_the_arrival() -> None:
    world = World().lead().add_brokers(0)
    answers: list[Values] = []
    asked = request_of(ApiKey.CREATE_TOPICS, 7, topics=[topic("late")], timeout=1000)
    late = replace(asked, received_at_ms=world.now_ms - 1000)
    world.controller.handle_request(world.now_ms, late, answers.append)
    assert codes(answers[0]) == [ErrorCode.request_timed_out]
    in_time = replace(asked, received_at_ms=world.now_ms - 999)
    world.controller.handle_request(world.now_ms, in_time, answers.append)
    world.commit()
    assert codes(answers[1]) == [ErrorCode.none]


def test_what_was_begun_is_answered_when_it_is_committed_however_late() -> None:
    world = World().lead().add_brokers(0)
    answers = world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("a")], timeout=1000)
    world.advance(5000)
    assert answers == []
    world.commit()
    assert codes(answers[0]) == [ErrorCode.none]


def test_requests_without_a_timeout_have_no_deadline() -> None:
    world = World().lead().add_brokers(0)
    answers: list[Values] = []
    asked = request_of(ApiKey.UNREGISTER_BROKER, 0, broker_id=0)
    world.controller.handle_request(world.now_ms, replace(asked, received_at_ms=0), answers.append)
    world.advance(0)
    world.commit()
    assert answers[0].error_code is ErrorCode.none


# Requests for nothing


def test_requests_for_nothing_are_answered_at_once_and_by_standbys_too() -> None:
    world = World().lead().add_brokers(0)
    held = world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("a")], timeout=1000)
    assert world.send(ApiKey.CREATE_TOPICS, 7, topics=[], timeout=1000)[0].topics == ()
    assert world.send(ApiKey.DELETE_TOPICS, 6, topics=[], timeout=1000)[0].responses == ()
    assert world.send(ApiKey.DELETE_TOPICS, 5, topic_names=[], timeout=1000)[0].responses == ()
    assert held == []
    world.follow(1, 2)
    assert world.send(ApiKey.CREATE_TOPICS, 7, topics=[], timeout=0)[0].topics == ()


def test_all_partitions_is_not_nothing() -> None:
    world = World()
    answer = world.send(ApiKey.ELECT_LEADERS, 2, election_type=0, topic_partitions=None, timeout=1000)[0]
    assert answer.error_code is ErrorCode.not_controller
    nothing = world.send(ApiKey.ELECT_LEADERS, 2, election_type=0, topic_partitions=[], timeout=1000)[0]
    assert nothing.error_code is ErrorCode.none


# Our own faults


def test_a_handler_that_fails_answers_and_another_controller_takes_over(break_handler: Break) -> None:
    world = FaultyWorld()
    world.lead().add_brokers(0)
    waiting = world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("a")], timeout=1000)
    break_handler(ApiKey.DELETE_TOPICS)
    answers = world.send(ApiKey.DELETE_TOPICS, 6, topics=[{"name": "a", "topic_id": None}], timeout=1000)
    entry = answers[0].responses[0]
    assert entry.error_code is ErrorCode.unknown_server_error
    assert "private" not in entry.error_message
    assert codes(waiting[0]) == [ErrorCode.not_controller]
    assert world.raft.resigned == [1]
    assert not world.controller.is_active
    assert [type(error) for _, error in world.faults] == [ZeroDivisionError]
    assert world.controller.next_deadline_ms() is None


def test_the_node_goes_on_as_a_standby_and_may_lead_again(break_handler: Break) -> None:
    world = FaultyWorld()
    world.lead().add_brokers(0)
    break_handler(ApiKey.DELETE_TOPICS)
    world.send(ApiKey.DELETE_TOPICS, 6, topics=[{"name": "a", "topic_id": None}], timeout=1000)
    world.follow(-1, 1)
    world.lead(3)
    assert world.create({"name": "a"})["a"].error_code is ErrorCode.none


def test_a_decision_that_was_due_and_fails_hands_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_context: DecisionContext) -> Outcome:
        raise ZeroDivisionError

    task = PeriodicTask(name="broken", interval_ms=lambda _: 300, run=run)
    monkeypatch.setattr(controller_module, "PERIODIC_TASKS", (task,))
    world = FaultyWorld()
    world.lead().add_brokers(0)
    world.advance(400)
    assert world.raft.resigned == [1]
    assert len(world.faults) == 1
    assert not world.controller.is_active


def test_what_cannot_be_replayed_is_not_written_and_hands_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka's controller dies of it, as its record is on the way to the log by then; ours is not."""
    record = RemoveTopicRecord(topic_id=METADATA_TOPIC_ID)
    handlers = {
        **HANDLERS,
        ApiKey.DELETE_TOPICS: lambda *_: ControllerResult(records=(record,), response={}),
    }
    monkeypatch.setattr(controller_module, "HANDLERS", handlers)
    world = FaultyWorld()
    world.lead().add_brokers(0)
    start = world.raft.log_end_offset
    answers = world.send(ApiKey.DELETE_TOPICS, 6, topics=[{"name": "a", "topic_id": None}], timeout=1000)
    assert answers[0].responses[0].error_code is ErrorCode.unknown_server_error
    assert world.raft.records(start) == []
    assert world.raft.resigned == [1]


def test_without_a_fault_handler_a_fault_is_raised(break_handler: Break) -> None:
    world = FaultyWorld()
    world.controller = Controller(ControllerConfig(), world.raft, SeededRandomSource(), CLUSTER_ID)
    world.lead()
    break_handler(ApiKey.CREATE_TOPICS)
    with pytest.raises(ZeroDivisionError):
        world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("a")], timeout=1000)


def test_committed_records_that_cannot_be_replayed_are_fatal() -> None:
    """A standby that went on would have another state than the rest; the driver ends the node on this error."""
    world = FaultyWorld()
    value = encode_record(RemoveTopicRecord(topic_id=METADATA_TOPIC_ID))
    world.raft.batches.append(build_batch(0, 1, world.now_ms, [(None, value)]))
    with pytest.raises(ReplayError):
        world.commit()
    assert world.faults == []


def test_after_a_fault_the_next_request_is_refused(break_handler: Break) -> None:
    world = FaultyWorld()
    world.lead()
    break_handler(ApiKey.CREATE_TOPICS)
    first = world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("a")], timeout=1000)
    second = world.send(ApiKey.CREATE_TOPICS, 7, topics=[topic("a")], timeout=1000)
    assert codes(first[0]) == [ErrorCode.unknown_server_error]
    assert codes(second[0]) == [ErrorCode.not_controller]
    assert NODE_ID not in world.raft.resigned


# Activation, and what is written apart


@pytest.mark.parametrize("is_empty", [True, False])
def test_an_open_transaction_at_a_level_without_transactions_is_fatal(is_empty: bool) -> None:
    level = 12
    world = World(ControllerConfig(bootstrap_records=bootstrap_records(level, {})))
    lost = [BeginTransactionRecord(name="lost"), NoOpRecord()]
    values = [*([] if is_empty else bootstrap_records(level, {})), *lost]
    world.raft.append(world.now_ms, [(None, encode_record(record)) for record in values])
    with pytest.raises(LogUnsupported, match=r"metadata\.version 12 has no transactions"):
        world.lead()
    assert len(world.raft.records()) == len(values)


def test_what_is_not_atomic_is_written_in_parts_and_answered_after_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records = tuple(
        ClientQuotaRecord(entity=(EntityData(entity_type="user", entity_name=str(n)),), key="k", value=1.0)
        for n in range(25)
    )
    result = ControllerResult(records=records, response={"marker": 1}, is_atomic=False, audit_reason="many")
    monkeypatch.setattr(
        controller_module, "HANDLERS", {**HANDLERS, ApiKey.UNREGISTER_BROKER: lambda *_: result}
    )
    world = World(ControllerConfig(max_records_per_batch=10)).lead()
    world.commit()
    start = len(world.raft.batches)
    answers: list[Values] = []
    world.controller.handle_request(
        world.now_ms, request_of(ApiKey.UNREGISTER_BROKER, 0, broker_id=1), answers.append
    )
    batches = world.raft.batches[start:]
    assert [len(batch.records) for batch in batches] == [11, 11, 6], "each with a note of its own"
    world.commit(2)
    assert answers == []
    assert len(world.controller.committed_image.client_quotas.entities) == 20
    world.commit(1)
    assert answers == [{"marker": 1}]
