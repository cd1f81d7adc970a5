"""Envelopes: what a broker packs, a controller unpacks; and every way in which one can be wrong has its own error."""

import asyncio
import math
import struct
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquorum.metadata.adapters import listener
from kquorum.metadata.adapters.controller_channel import ControllerChannel
from kquorum.metadata.adapters.envelope import EnvelopeRefusedError, unwrap, wrap
from kquorum.metadata.adapters.listener import controller_listener_apis
from kquorum.metadata.controller.requests import ControllerRequest
from kquorum.metadata.forwarding import (
    decode_address,
    decode_principal,
    encode_address,
    encode_principal,
    is_for_the_leader,
)
from kquorum.network.limits import ServerLimits
from kquorum.network.turns import Served
from kquorum.wire.errors import DecodeError
from kquorum.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from kquorum.wire.messages.envelope import EnvelopeResponse
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol import headers, warm_up
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import ApiVersion, supported_versions
from kquorum.wire.protocol.headers import encode_request_header
from tests.support.api_calls import Values, message_of, request_of
from tests.support.kio.entities import build
from tests.support.kio.frames import decode_response, encode_request
from tests.support.network.peers import until
from tests.support.running_controllers import RunningController, run

SERVED = controller_listener_apis()
MAX_ELEMENTS = ServerLimits().max_elements
DELETE = {"topics": [{"name": "old", "topic_id": None}], "topic_names": ["old"], "timeout_ms": 1000}


def packed(api_key: ApiKey = ApiKey.DELETE_TOPICS, version: int = 6, body: Values | None = None) -> bytes:
    entity = request_of(api_key, version, DELETE if body is None else body)
    return encode_request(api_key, version, 77, "the-client", entity)


def envelope(**fields: object) -> Any:
    values = {
        "request_data": packed(),
        "request_principal": encode_principal("User:alice"),
        "client_host_address": encode_address("10.1.2.3"),
    } | fields
    return request_of(ApiKey.ENVELOPE, 0, values)


def refusal(**fields: object) -> ErrorCode:
    with pytest.raises(EnvelopeRefusedError) as caught:
        unwrap(envelope(**fields), SERVED).read(MAX_ELEMENTS)[0]
    return caught.value.error


def test_the_request_comes_out_with_its_own_client() -> None:
    request = unwrap(envelope(), SERVED).read(MAX_ELEMENTS)[0]
    assert (request.api_key, request.api_version, request.correlation_id) == (ApiKey.DELETE_TOPICS, 6, 77)
    assert (request.principal, request.client_id, request.client_host) == (
        "User:alice",
        "the-client",
        "10.1.2.3",
    )
    assert request.body.topics[0].name == "old"


def test_an_answer_that_cannot_be_encoded_is_an_error_of_the_envelope() -> None:
    """None at all would make the broker ask again and again."""
    request = unwrap(envelope(), SERVED).read(MAX_ELEMENTS)[0]
    answer = DeleteTopicsResponse(responses=(DeletableTopicResult(name="x" * 40_000),))
    assert wrap(request, answer) == EnvelopeResponse(error_code=ErrorCode.unknown_server_error)


def test_what_may_not_be_forwarded_is_an_invalid_request() -> None:
    heartbeat = {
        "broker_id": 1,
        "broker_epoch": 1,
        "current_metadata_offset": 1,
        "want_fence": False,
        "want_shut_down": False,
        "offline_log_dirs": (),
    }
    data = packed(ApiKey.BROKER_HEARTBEAT, 1, heartbeat)
    assert refusal(request_data=data) is ErrorCode.invalid_request


@pytest.mark.parametrize(
    "data", [b"", b"\x00", packed()[:-3], b"\x7f\xff" + packed()[2:], packed()[:3] + b"\x63" + packed()[4:]]
)
def test_an_unreadable_request_is_an_unsupported_version(data: bytes) -> None:
    assert refusal(request_data=data) is ErrorCode.unsupported_version


def test_the_request_inside_has_no_more_elements_than_one_that_comes_alone() -> None:
    asked: list[int] = []

    def three(api_key: int) -> int:
        asked.append(api_key)
        return 3

    for count in (3, 4):
        data = packed(ApiKey.DELETE_TOPICS, 5, {"topic_names": ["x"] * count, "timeout_ms": 1000})
        if count == 3:
            request, elements = unwrap(envelope(request_data=data), SERVED).read(three)
            assert len(request.body.topic_names) == elements == 3
        else:
            with pytest.raises(EnvelopeRefusedError, match="more than 3 elements of arrays") as caught:
                unwrap(envelope(request_data=data), SERVED).read(three)[0]
            assert caught.value.error is ErrorCode.unsupported_version
    assert asked == [ApiKey.DELETE_TOPICS] * 2


def test_what_may_not_be_forwarded_is_not_read() -> None:
    data = encode_request_header(ApiKey.BROKER_HEARTBEAT, 1, 7, None) + b"no body of it"
    assert refusal(request_data=data) is ErrorCode.invalid_request


def test_what_may_not_be_forwarded_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a plaintext listener every client may send an envelope."""
    looked_up: list[int] = []
    look_up = headers.api_version

    def noted(api_key: int, version: int) -> ApiVersion:
        looked_up.append(api_key)
        return look_up(api_key, version)

    monkeypatch.setattr(headers, "api_version", noted)
    monkeypatch.setattr(listener, "warm_version", lambda api_key, _: looked_up.append(api_key))
    monkeypatch.setattr(warm_up, "_WARM", warm_up._WARM - {(ApiKey.BROKER_HEARTBEAT, 0)})
    inside = struct.pack(">hhih", ApiKey.BROKER_HEARTBEAT, 0, 7, -1) + b"\x00"

    async def work() -> None:
        async with RunningController(1, lambda _: None) as running:
            channel = ControllerChannel(
                lambda: running.address, client_id="t", request_timeout_ms=5000, retry_timeout_ms=5000
            )
            answer = await channel.call(message_of(ApiKey.ENVELOPE, envelope(request_data=inside)))
            channel.close()
            assert answer.error_code is ErrorCode.invalid_request

    run(work())
    assert ApiKey.ENVELOPE in looked_up
    assert ApiKey.BROKER_HEARTBEAT not in looked_up


def test_a_flood_of_tagged_fields_is_not_read() -> None:
    header = struct.pack(">hhih", ApiKey.DELETE_TOPICS, 6, 7, -1)
    with pytest.raises(EnvelopeRefusedError, match="the header has 262143 tagged fields"):
        unwrap(envelope(request_data=header + b"\xff\xff\x0f" + bytes(100)), SERVED).read(MAX_ELEMENTS)[0]
    principal = encode_principal("User:alice")[:-1] + b"\xff\xff\x0f"
    with pytest.raises(EnvelopeRefusedError, match="more than 64 elements") as caught:
        unwrap(envelope(request_principal=principal), SERVED).read(MAX_ELEMENTS)[0]
    assert caught.value.error is ErrorCode.principal_deserialization_failure


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"\x00\x01" + encode_principal("User:a")[2:],
        b"\x00\x00\x09",
        encode_principal("User:a") + b"x",
    ],
)
def test_an_unreadable_principal_has_its_own_error(data: bytes | None) -> None:
    assert refusal(request_principal=data) is ErrorCode.principal_deserialization_failure


@pytest.mark.parametrize("address", [b"", b"abc", bytes(15)])
def test_an_address_of_another_length_is_an_invalid_request(address: bytes) -> None:
    assert refusal(client_host_address=address) is ErrorCode.invalid_request


def test_the_answer_is_packed_with_its_header() -> None:
    request = unwrap(envelope(), SERVED).read(MAX_ELEMENTS)[0]
    values = {
        "responses": [{"name": "old", "topic_id": None, "error_code": ErrorCode.none, "error_message": None}]
    }
    wrapped = wrap(request, DeleteTopicsResponse(responses=(DeletableTopicResult(name="old"),)))
    assert wrapped.error_code is ErrorCode.none
    correlation_id, inner = decode_response(ApiKey.DELETE_TOPICS, 6, wrapped.response_data or b"")
    assert correlation_id == 77
    assert inner == build(type(inner), values)


def test_not_controller_inside_is_raised_to_the_envelope() -> None:
    request = unwrap(envelope(), SERVED).read(MAX_ELEMENTS)[0]
    entry = DeletableTopicResult(name="old", error_code=ErrorCode.not_controller)
    answer = DeleteTopicsResponse(responses=(entry,))
    assert wrap(request, answer) == EnvelopeResponse(error_code=ErrorCode.not_controller)
    values = {"error_code": 0, "topics": ({"error_code": 36},)}
    assert not is_for_the_leader(ApiKey.CREATE_TOPICS, values)


def test_not_leader_or_follower_is_raised_only_where_the_replica_answers() -> None:
    """Elsewhere it speaks of a partition of a topic's."""
    values = {"error_code": 0, "directories": ({"error_code": ErrorCode.not_leader_or_follower},)}
    assert not is_for_the_leader(ApiKey.ASSIGN_REPLICAS_TO_DIRS, values)
    assert is_for_the_leader(ApiKey.DESCRIBE_QUORUM, values)


@given(st.text(min_size=1, max_size=20).filter(lambda text: ":" not in text), st.text(max_size=50))
def test_principals_come_back_as_they_were(kind: str, name: str) -> None:
    for is_token in (False, True):
        data = encode_principal(f"{kind}:{name}", is_token_authenticated=is_token)
        assert decode_principal(data) == (f"{kind}:{name}", is_token)


@given(st.binary(max_size=40))
def test_any_bytes_are_a_principal_or_a_decode_error(data: bytes) -> None:
    try:
        decode_principal(data)
    except DecodeError:
        return


@given(st.ip_addresses())
def test_addresses_come_back_as_they_were(address: Any) -> None:
    assert decode_address(encode_address(str(address))) == str(address)


def test_a_zone_is_left_off_an_address() -> None:
    assert decode_address(encode_address("fe80::1%eth0")) == "fe80::1"


def test_a_forwarded_describe_quorum_reaches_the_replica_with_the_client_in_its_context() -> None:
    question = {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}
    version = supported_versions(ApiKey.DESCRIBE_QUORUM)[1]
    values = {
        "request_data": packed(ApiKey.DESCRIBE_QUORUM, version, question),
        "request_principal": encode_principal("User:alice"),
        "client_host_address": encode_address("10.1.2.3"),
    }

    async def work() -> None:
        async with RunningController(1, lambda _: None) as running:
            channel = ControllerChannel(
                lambda: running.address, client_id="t", request_timeout_ms=5000, retry_timeout_ms=5000
            )
            answer = await channel.call(message_of(ApiKey.ENVELOPE, values))
            channel.close()
            correlation_id, _ = decode_response(ApiKey.DESCRIBE_QUORUM, version, answer.response_data)
            assert correlation_id == 77
            (context,) = running.controller.raft_requests
            assert (context.principal, context.header.client_id) == ("User:alice", "the-client")

    run(work())


def test_what_the_listener_takes_holds_inside_of_envelopes() -> None:
    limits = ServerLimits(max_elements_by_api={ApiKey.DELETE_TOPICS: 3})
    requests = [
        envelope(
            request_data=packed(ApiKey.DELETE_TOPICS, 5, {"topic_names": ["x"] * count, "timeout_ms": 9})
        )
        for count in (4, 3)
    ]

    async def work() -> None:
        async with RunningController(1, lambda _: {"responses": ()}, limits) as running:
            channel = ControllerChannel(
                lambda: running.address, client_id="t", request_timeout_ms=5000, retry_timeout_ms=5000
            )
            errors = [
                (await channel.call(message_of(ApiKey.ENVELOPE, request))).error_code for request in requests
            ]
            channel.close()
            assert errors == [ErrorCode.unsupported_version, ErrorCode.none]
            assert len(running.controller.requests) == 1

    run(work())


def test_a_long_request_inside_that_was_read_aside_is_handled_when_its_turn_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Several may have been read meanwhile, and each may take long."""
    topics = ["a-topic-of-a-long-name"] * 1_900
    body = {"topic_names": topics, "timeout_ms": 1}
    asked = envelope(request_data=packed(ApiKey.DELETE_TOPICS, 5, body))
    line: list[Served] = []

    class HeldTurns:
        def ask(self, served: Served) -> None:
            line.append(served)

    monkeypatch.setattr(listener, "turns_of", lambda _loop: HeldTurns())

    async def work() -> None:
        async with RunningController(1, lambda _: {"responses": ()}) as running:
            channel = ControllerChannel(
                lambda: running.address, client_id="t", request_timeout_ms=5000, retry_timeout_ms=5000
            )
            answering = asyncio.ensure_future(channel.call(message_of(ApiKey.ENVELOPE, asked)))
            await until(lambda: bool(line))
            assert running.controller.requests == []
            assert not line[0].goes_first()
            assert not line.pop().take_turn(math.inf)
            assert (await answering).error_code is ErrorCode.none
            assert len(running.controller.requests) == 1
            channel.close()

    warm_up.warm_version(ApiKey.DELETE_TOPICS, 5)
    run(work())


def test_an_old_version_inside_is_imported_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client chooses the version, and a controller may be the first that it is new to."""
    warmed: list[int] = []

    def noted(*version: int) -> None:
        warmed.append(threading.get_ident())
        warm_up.warm_version(*version)

    monkeypatch.setattr(listener, "warm_version", noted)

    async def work() -> None:
        async with RunningController(1, lambda _: {"responses": ()}) as running:
            channel = ControllerChannel(
                lambda: running.address, client_id="t", request_timeout_ms=5000, retry_timeout_ms=5000
            )
            for version in (6, 6, 5):
                monkeypatch.setattr(warm_up, "_WARM", warm_up._WARM - {(ApiKey.DELETE_TOPICS, 5)})
                reply = await channel.call(
                    message_of(ApiKey.ENVELOPE, envelope(request_data=packed(version=version)))
                )
                assert reply.error_code is ErrorCode.none
            channel.close()

    warm_up.warm_version(ApiKey.DELETE_TOPICS, 6)
    run(work())
    assert len(warmed) == 1
    assert threading.get_ident() not in warmed


def test_a_forwarded_request_is_given_to_the_controller_and_the_driver_is_woken() -> None:
    def answer(request: ControllerRequest) -> Values:
        entry = {"name": "old", "topic_id": None, "error_code": ErrorCode.none, "error_message": None}
        assert request.principal == "User:alice"
        return {"responses": [entry]}

    async def work() -> None:
        async with RunningController(1, answer) as running:
            channel = ControllerChannel(
                lambda: running.address, client_id="t", request_timeout_ms=5000, retry_timeout_ms=5000
            )
            reply = await channel.call(message_of(ApiKey.ENVELOPE, envelope()))
            channel.close()
            assert reply.error_code is ErrorCode.none
            assert running.controller.turns == 1

    run(work())
