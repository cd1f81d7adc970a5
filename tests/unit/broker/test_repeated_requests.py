"""The plug is pulled between commit and answer: the request goes out again, and what it has done is no failure."""

from collections.abc import Sequence
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from broker.repeated_requests import RepeatedRequests, RequestIdentity, Watched
from metadata.controller.audit import audit_record
from metadata.controller.refusals import refusal
from metadata.controller.requests import ApiError, ControllerRequest, Values
from metadata.image.image import MetadataImage
from tests.support.images import after, broker_record, image_of, partition_record, topic_id, topic_records
from tests.unit.broker.test_listener import CREATE, IMAGE, Broker, created, with_broker
from tests.unit.metadata_adapters.controllers import RunningController
from wire.metadata_records.cluster import UnregisterBrokerRecord
from wire.metadata_records.topics import RemoveTopicRecord
from wire.protocol.api_keys import ApiKey
from wire.protocol.apis import request_class, response_class, supported_versions
from wire.protocol.entities import build
from wire.schema import MetadataRecord

NEW = topic_records(2, "new", partition_record(2, 0, (101,)))
BEFORE = image_of(
    broker_record(101),
    broker_record(102),
    *topic_records(1, "orders", partition_record(1, 0, (101,))),
)
CONFIGS: list[Values] = [
    {"name": "retention.ms", "value": "1", "read_only": False, "config_source": 5, "is_sensitive": False}
]


def note_of(request: ControllerRequest) -> MetadataRecord:
    return audit_record(request, reason="done", previous_note_hash=b"", covered_records=1)


def asked(api_key: ApiKey, values: dict[str, Any], correlation_id: int = 7) -> ControllerRequest:
    version = supported_versions(api_key)[1]
    return ControllerRequest(
        api_key=api_key,
        api_version=version,
        body=build(request_class(api_key, version), values),
        principal="User:alice",
        client_id="the-client",
        client_host="127.0.0.1",
        correlation_id=correlation_id,
    )


def identity(request: ControllerRequest) -> RequestIdentity:
    return RequestIdentity(
        request.principal,
        request.client_id or "",
        request.client_host,
        request.api_key,
        request.correlation_id,
    )


def second_answer(
    request: ControllerRequest,
    error: ErrorCode,
    records: Sequence[MetadataRecord],
    *,
    noted: ControllerRequest | None = None,
    is_in_doubt: bool = True,
    before: MetadataImage = BEFORE,
) -> Any:
    """What the client gets when its first attempt wrote `records`, and the second is refused with `error`."""
    repeated = RepeatedRequests(lambda: before, lambda _image, _name: CONFIGS)
    with repeated.watch(identity(request)) as watched:
        if is_in_doubt:
            watched.doubt()
        repeated.observe(0, *after(before, note_of(noted or request), *records))
        response = build(
            response_class(request.api_key, request.api_version), refusal(request, ApiError(error, "no"))
        )
        return repeated.first_answer(request.api_key, request.body, response, watched)


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
        request = asked(ApiKey.CREATE_TOPICS, CREATE)
        body = build(request_class(ApiKey.CREATE_TOPICS, version), CREATE)
        old = ControllerRequest(
            api_key=request.api_key,
            api_version=version,
            body=body,
            principal=request.principal,
            client_id=request.client_id,
            client_host=request.client_host,
            correlation_id=request.correlation_id,
        )
        [topic] = second_answer(old, ErrorCode.topic_already_exists, NEW).topics
        assert topic.error_code is ErrorCode.none


@pytest.mark.parametrize("case", ["another's note", "no doubt", "there before", "another error"])
def test_a_topic_that_somebody_else_created_exists_already(case: str) -> None:
    request = asked(ApiKey.CREATE_TOPICS, CREATE)
    error = (
        ErrorCode.invalid_replication_factor if case == "another error" else ErrorCode.topic_already_exists
    )
    answer = second_answer(
        request,
        error,
        () if case == "there before" else NEW,
        noted=asked(ApiKey.CREATE_TOPICS, CREATE, correlation_id=8) if case == "another's note" else None,
        is_in_doubt=case != "no doubt",
        before=after(BEFORE, *NEW)[1] if case == "there before" else BEFORE,
    )
    assert answer.topics[0].error_code is error


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
    [entry] = second_answer(deletion(name="none"), ErrorCode.unknown_topic_or_partition, ()).responses
    assert entry.error_code is ErrorCode.unknown_topic_or_partition


def test_partitions_that_the_first_attempt_added_are_added() -> None:
    more = [partition_record(1, 1, (101,))]
    [entry] = second_answer(growth("orders", 2), ErrorCode.invalid_partitions, more).results
    assert entry.error_code is ErrorCode.none
    [entry] = second_answer(growth("orders", 3), ErrorCode.invalid_partitions, more).results
    assert entry.error_code is ErrorCode.invalid_partitions


def test_a_broker_that_the_first_attempt_unregistered_is_unregistered() -> None:
    request = asked(ApiKey.UNREGISTER_BROKER, {"broker_id": 102})
    gone = [UnregisterBrokerRecord(broker_id=102, broker_epoch=1020)]
    answer = second_answer(request, ErrorCode.broker_id_not_registered, gone)
    assert answer.error_code is ErrorCode.none


def test_only_what_may_have_been_done_is_waited_for() -> None:
    repeated = RepeatedRequests(lambda: BEFORE, lambda _image, _name: CONFIGS)
    request = asked(ApiKey.CREATE_TOPICS, CREATE)
    exists = build(
        response_class(ApiKey.CREATE_TOPICS, request.api_version),
        refusal(request, ApiError(ErrorCode.topic_already_exists, "no")),
    )
    watched = Watched(BEFORE)
    assert not repeated.has_to_wait(ApiKey.CREATE_TOPICS, exists, watched)
    watched.doubt()
    assert repeated.has_to_wait(ApiKey.CREATE_TOPICS, exists, watched)
    assert not repeated.has_to_wait(ApiKey.ALTER_CONFIGS, exists, watched)
    watched.after = BEFORE
    assert not repeated.has_to_wait(ApiKey.CREATE_TOPICS, exists, watched)


def test_nothing_is_kept_of_requests_that_are_answered() -> None:
    repeated = RepeatedRequests(lambda: BEFORE, lambda _image, _name: CONFIGS)
    request = asked(ApiKey.CREATE_TOPICS, CREATE)
    with repeated.watch(identity(request)) as first, repeated.watch(identity(request)) as second:
        repeated.observe(0, *after(BEFORE, note_of(request), *NEW))
        assert first.after is second.after is not None
    with repeated.watch(identity(request)) as third:
        assert third.after is None


@pytest.mark.parametrize("is_late", [False, True])
def test_a_client_of_a_controller_that_dies_with_its_answer_hears_of_success(is_late: bool) -> None:
    """Over real sockets; late: the broker's image has the topic only after the second answer."""
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
    assert len(requests) == 2
