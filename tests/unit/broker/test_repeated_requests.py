"""The plug is pulled between commit and answer: the request goes out again, and what it has done is no failure."""

from typing import Any

import pytest

from kquorum.broker.repeated_requests import Watched
from kquorum.broker.request_effects import Change
from kquorum.metadata.controller.refusals import refusal
from kquorum.metadata.controller.requests import ApiError, ControllerRequest
from kquorum.wire.forwarding_id import FORWARDING_ID_BYTES
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.cluster import UnregisterBrokerRecord
from kquorum.wire.metadata_records.topics import RemoveTopicRecord
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from tests.support.api_calls import Values
from tests.support.broker.listening_broker import CREATE, IMAGE, TOPIC, Broker, created, with_broker
from tests.support.broker.repeated_requests import (
    BEFORE,
    FORWARDING_ID,
    NEW,
    asked,
    note_of,
    requests,
    second_answer,
)
from tests.support.images import after, partition_record, topic_id, topic_records
from tests.support.running_controllers import RunningController


def deletion(**named: Any) -> ControllerRequest:
    entry = {"name": None, "topic_id": None, **named}
    return asked(ApiKey.DELETE_TOPICS, {"topics": [entry], "timeout_ms": 1000})


def growth(name: str, count: int) -> ControllerRequest:
    topic = {"name": name, "count": count, "assignments": None}
    values = {"topics": [topic], "timeout_ms": 1000, "validate_only": False}
    return asked(ApiKey.CREATE_PARTITIONS, values)


def test_a_topic_that_the_first_attempt_created_is_created() -> None:
    [topic] = second_answer(asked(ApiKey.CREATE_TOPICS, CREATE), ErrorCode.topic_already_exists, NEW).topics
    assert (topic.error_code, topic.topic_id) == (ErrorCode.none, topic_id(2))
    assert (topic.num_partitions, topic.replication_factor) == (1, 1)
    assert [each.name for each in topic.configs] == ["retention.ms"]


def test_every_version_can_tell_it() -> None:
    lowest, highest = supported_versions(ApiKey.CREATE_TOPICS)
    for version in range(lowest, highest + 1):
        old = asked(ApiKey.CREATE_TOPICS, CREATE, version=version)
        [topic] = second_answer(old, ErrorCode.topic_already_exists, NEW).topics
        assert topic.error_code is ErrorCode.none


@pytest.mark.parametrize("case", ["another's note", "an older version's note", "no doubt", "there before"])
def test_a_topic_that_another_client_created_exists_already(case: str) -> None:
    """The other one may be called the same in all that a client says of itself."""
    noted = {"another's note": bytes(16), "an older version's note": b""}
    answer = second_answer(
        asked(ApiKey.CREATE_TOPICS, CREATE),
        ErrorCode.topic_already_exists,
        () if case == "there before" else NEW,
        noted=asked(ApiKey.CREATE_TOPICS, CREATE, noted.get(case, FORWARDING_ID)),
        is_in_doubt=case != "no doubt",
        is_whole=case != "there before",
        before=after(BEFORE, *NEW)[1] if case == "there before" else BEFORE,
    )
    assert answer.topics[0].error_code is ErrorCode.topic_already_exists


def test_of_a_request_that_was_refused_in_part_the_rest_keeps_its_errors() -> None:
    answer = second_answer(
        asked(ApiKey.CREATE_TOPICS, CREATE), ErrorCode.invalid_replication_factor, NEW, is_whole=False
    )
    assert answer.topics[0].error_code is ErrorCode.invalid_replication_factor


def test_a_note_of_the_same_client_before_does_not_stand_for_this_one() -> None:
    """Each run of a tool numbers its requests alike."""
    repeated, request = requests(), asked(ApiKey.CREATE_TOPICS, CREATE)
    with repeated.watch(FORWARDING_ID, request) as watched:
        watched.doubt()
        other = asked(ApiKey.CREATE_TOPICS, CREATE, forwarding_id=bytes(16))
        _, image = delta_and_image = after(BEFORE, note_of(other), *topic_records(5, "before"))
        repeated.observe(0, *delta_and_image)
        assert watched.change is None
        repeated.observe(0, *after(image, note_of(request), *NEW))
        [topic] = repeated.lost_answer(watched).topics
    assert (topic.error_code, topic.topic_id) == (ErrorCode.none, topic_id(2))


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (deletion(name="orders"), ErrorCode.unknown_topic_or_partition),
        (deletion(topic_id=topic_id(1)), ErrorCode.unknown_topic_id),
    ],
)
def test_a_topic_that_the_first_attempt_deleted_is_deleted(
    request_: ControllerRequest, error: ErrorCode
) -> None:
    [entry] = second_answer(request_, error, [RemoveTopicRecord(topic_id=topic_id(1))]).responses
    assert (entry.error_code, entry.name, entry.topic_id) == (ErrorCode.none, "orders", topic_id(1))


def test_a_topic_that_was_never_there_is_not_deleted() -> None:
    [entry] = second_answer(
        deletion(name="none"), ErrorCode.unknown_topic_or_partition, (), is_whole=False
    ).responses
    assert entry.error_code is ErrorCode.unknown_topic_or_partition


def test_partitions_that_the_first_attempt_added_are_added() -> None:
    more = [partition_record(1, 1, (101,))]
    [entry] = second_answer(growth("orders", 2), ErrorCode.invalid_partitions, more).results
    assert entry.error_code is ErrorCode.none
    [entry] = second_answer(growth("orders", 3), ErrorCode.invalid_partitions, more, is_whole=False).results
    assert entry.error_code is ErrorCode.invalid_partitions


def test_a_broker_that_the_first_attempt_unregistered_is_unregistered() -> None:
    request = asked(ApiKey.UNREGISTER_BROKER, {"broker_id": 102})
    gone = [UnregisterBrokerRecord(broker_id=102, broker_epoch=1020)]
    answer = second_answer(request, ErrorCode.broker_id_not_registered, gone)
    assert answer.error_code is ErrorCode.none


@pytest.mark.parametrize(
    ("others", "is_whole", "is_done"), [(0, False, True), (300, False, False), (300, True, True)]
)
def test_what_a_controller_may_have_decided_in_parts_is_sent_again_after_the_first(
    others: int, is_whole: bool, is_done: bool
) -> None:
    """The controller may have lost the leadership after the part that the note is of; the rest is for the next one."""
    names = [TOPIC["name"], *(f"other-{number}" for number in range(others))]
    topics = [TOPIC | {"name": name} for name in names]
    request = asked(ApiKey.CREATE_TOPICS, CREATE | {"topics": topics})
    repeated = requests()
    with repeated.watch(FORWARDING_ID, request) as watched:
        watched.doubt()
        repeated.observe(0, *after(BEFORE, note_of(request, is_whole=is_whole), *NEW))
        assert repeated.can_tell(watched)
        assert repeated.is_done(watched) == is_done


def test_only_what_may_have_been_done_is_waited_for() -> None:
    repeated = requests()
    request = asked(ApiKey.CREATE_TOPICS, CREATE)
    exists, done = (
        refusal(request, ApiError(error, "no")) for error in (ErrorCode.topic_already_exists, ErrorCode.none)
    )
    watched = Watched(request)
    assert not repeated.has_to_wait(exists, watched)
    watched.doubt()
    assert repeated.has_to_wait(exists, watched)
    assert not repeated.has_to_wait(done, watched)
    watched.change = Change(BEFORE, BEFORE, is_whole=True)
    assert not repeated.has_to_wait(exists, watched)


def test_nothing_is_kept_of_requests_that_are_answered() -> None:
    repeated = requests()
    request = asked(ApiKey.CREATE_TOPICS, CREATE)
    with repeated.watch(FORWARDING_ID, request) as first, repeated.watch(bytes(16), request) as second:
        repeated.observe(0, *after(BEFORE, note_of(request), *NEW))
        assert first.change is not None
        assert second.change is None
    with repeated.watch(FORWARDING_ID, request) as third:
        assert third.change is None


@pytest.mark.parametrize("is_late", [False, True])
def test_a_client_of_a_controller_that_dies_with_its_answer_hears_of_success(is_late: bool) -> None:
    """Over real sockets; late: the broker's image has the topic only after the second answer. Otherwise the request is
    not sent again: another client may have deleted the topic since, and not want it back."""
    nodes: list[Broker] = []
    requests: list[ControllerRequest] = []

    def apply(node: Broker) -> None:
        delta, image = after(IMAGE, note_of(requests[0]), *NEW)
        node.cache.swap(image)
        node.repeated.observe(0, delta, image)

    def answer(request: ControllerRequest) -> Values:
        import asyncio

        requests.append(request)
        if len(requests) == 1:
            if not is_late:
                apply(nodes[0])
            raise RuntimeError("the plug is pulled")
        if is_late:
            asyncio.get_running_loop().call_later(0.05, apply, nodes[0])
        return created(request, ErrorCode.topic_already_exists)

    async def test(node: Broker, _controller: RunningController) -> None:
        nodes.append(node)
        response = await node.ask(ApiKey.CREATE_TOPICS, CREATE)
        [topic] = response.topics
        assert (topic.error_code, topic.topic_id) == (ErrorCode.none, topic_id(2))

    with_broker(test, answer)
    assert len(requests) == (2 if is_late else 1)
    assert {request.forwarding_id for request in requests} == {requests[0].forwarding_id}
    assert len(requests[0].forwarding_id) == FORWARDING_ID_BYTES


def test_a_creation_of_which_a_part_was_done_is_completed_by_the_next_controller() -> None:
    """The first attempt's part is reported as created, and the rest is created by the second."""
    got: list[ControllerRequest] = []
    nodes: list[Broker] = []
    others = [f"other-{number}" for number in range(300)]

    def answer(request: ControllerRequest) -> Values:
        got.append(request)
        if len(got) == 1:
            node = nodes[0]
            delta, image = after(node.cache.image, note_of(request, is_whole=False), *NEW)
            node.repeated.observe(0, delta, image)
            raise RuntimeError("the plug is pulled between two parts")
        done = created(request)
        codes = (ErrorCode.topic_already_exists, *(ErrorCode.none for _ in others))
        entries = zip(done["topics"], codes, strict=True)
        return done | {"topics": [entry | {"error_code": code} for entry, code in entries]}

    async def test(node: Broker, _controller: RunningController) -> None:
        nodes.append(node)
        topics = [TOPIC, *(TOPIC | {"name": name} for name in others)]
        response = await node.ask(ApiKey.CREATE_TOPICS, CREATE | {"topics": topics})
        assert {topic.error_code for topic in response.topics} == {ErrorCode.none}
        assert response.topics[0].topic_id == topic_id(2)

    with_broker(test, answer)
    assert len(got) == 2
