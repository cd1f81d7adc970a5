"""Headers against kio's codec as the oracle, and what a peer may send that no encoder of ours would."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.request_header.v1.header import RequestHeader as RequestHeaderV1
from kio.schema.request_header.v2.header import RequestHeader as RequestHeaderV2
from kio.schema.response_header.v0.header import ResponseHeader as ResponseHeaderV0
from kio.schema.response_header.v1.header import ResponseHeader as ResponseHeaderV1

from kquorum.wire import message_codec
from kquorum.wire.errors import BufferUnderflow, DecodeError, UnsupportedVersion
from kquorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kquorum.wire.protocol.apis import ApiKey, api_version
from kquorum.wire.protocol.headers import (
    MAX_TAGGED_FIELDS,
    EncodedBody,
    UnsupportedRequest,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    encode_response_frame,
    read_correlation_id,
)
from tests.support.api_calls import as_read, read_answer
from tests.support.kio.classes import request_class, response_class
from tests.support.kio.codec import encode, kio_encode
from tests.support.kio.entities import build

HEARTBEAT = {"group_id": "g", "generation_id": 1, "member_id": "m", "group_instance_id": None}
CLIENT_IDS = st.none() | st.text(max_size=40)
INT32 = st.integers(-(2**31), 2**31 - 1)


@given(version=st.sampled_from([3, 4]), correlation_id=INT32, client_id=CLIENT_IDS)
def test_requests_are_written_as_kio_writes_them(
    version: int, correlation_id: int, client_id: str | None
) -> None:
    entity = build(request_class(ApiKey.HEARTBEAT, version), HEARTBEAT)
    header_class: Any = RequestHeaderV2 if version == 4 else RequestHeaderV1
    header = header_class(
        request_api_key=12, request_api_version=version, correlation_id=correlation_id, client_id=client_id
    )
    message = as_read(ApiKey.HEARTBEAT, version, entity)
    frame = encode_request(ApiKey.HEARTBEAT, version, correlation_id, client_id, message)
    assert frame == kio_encode(header) + kio_encode(entity)
    decoded, position = decode_request_header(frame)
    assert (decoded.api_key, decoded.api_version) == (ApiKey.HEARTBEAT, version)
    assert (decoded.correlation_id, decoded.client_id) == (correlation_id, client_id)
    assert frame[position:] == kio_encode(entity)


@given(version=st.sampled_from([3, 4]), correlation_id=INT32)
def test_responses_are_written_as_kio_writes_them(version: int, correlation_id: int) -> None:
    entity = build(response_class(ApiKey.HEARTBEAT, version), {"error_code": 27, "throttle_time_ms": 3})
    header_class: Any = ResponseHeaderV1 if version == 4 else ResponseHeaderV0
    message = read_answer(ApiKey.HEARTBEAT, version, entity)
    frame = encode_response(ApiKey.HEARTBEAT, version, correlation_id, message)
    assert frame == kio_encode(header_class(correlation_id=correlation_id)) + kio_encode(entity)
    assert read_correlation_id(frame) == correlation_id
    assert decode_response(HeartbeatRequest, version, frame) == message
    whole = b"".join(encode_response_frame(api_version(ApiKey.HEARTBEAT, version), correlation_id, message))
    assert whole == struct.pack(">i", len(frame)) + frame


def test_an_encoded_body_is_taken_as_it_is() -> None:
    message = HeartbeatResponse()
    encoded = EncodedBody(message_codec.encode(message, 4))
    assert encode_response(ApiKey.HEARTBEAT, 4, 9, encoded) == encode_response(
        ApiKey.HEARTBEAT, 4, 9, message
    )


def test_api_versions_has_the_old_response_header_in_every_version() -> None:
    for version in range(5):
        values = {"error_code": 0, "api_keys": [{"api_key": 1, "min_version": 4, "max_version": 12}]}
        entity = build(response_class(ApiKey.API_VERSIONS, version), values)
        message = read_answer(ApiKey.API_VERSIONS, version, entity)
        frame = encode_response(ApiKey.API_VERSIONS, version, 5, message)
        assert frame == struct.pack(">i", 5) + encode(entity)
        assert decode_response(ApiVersionsRequest, version, frame) == message


def test_an_unsupported_api_versions_request_is_answered_in_version_zero() -> None:
    message = ApiVersionsResponse(error_code=ErrorCode.unsupported_version)
    frame = encode_response(ApiKey.API_VERSIONS, 0, 5, message)
    assert decode_response(ApiVersionsRequest, 4, frame) == message


@pytest.mark.parametrize(
    ("api_key", "version"), [(999, 0), (ApiKey.FETCH, 99), (ApiKey.API_VERSIONS, 9), (4, 1)]
)
def test_an_unknown_api_or_version_keeps_the_fields_of_the_header(api_key: int, version: int) -> None:
    frame = struct.pack(">hhih", api_key, version, 77, 3) + b"abc" + b"whatever follows"
    with pytest.raises(UnsupportedRequest, match=f"version {version} is not supported") as refusal:
        decode_request_header(frame)
    assert isinstance(refusal.value, UnsupportedVersion)
    header = refusal.value.header
    assert (header.api_key, header.api_version, header.correlation_id) == (api_key, version, 77)
    assert header.client_id == "abc"


def test_unknown_tagged_fields_of_headers_are_passed_over() -> None:
    tags = b"\x02" + b"\x00\x01x" + b"\xac\x02\x02yz"  # tag 0 with one byte, tag 300 with two
    frame = struct.pack(">hhih", ApiKey.HEARTBEAT, 4, 1, -1) + tags + b"body"
    header, position = decode_request_header(frame)
    assert frame[position:] == b"body"
    assert header.client_id is None
    response = struct.pack(">i", 1) + tags + message_codec.encode(HeartbeatResponse(), 4)
    assert decode_response(HeartbeatRequest, 4, response) == HeartbeatResponse()


def test_a_header_has_few_tagged_fields() -> None:
    """Two bytes each, before it is known who sent them."""
    start = struct.pack(">hhih", ApiKey.HEARTBEAT, 4, 1, -1)
    most = bytes((MAX_TAGGED_FIELDS,)) + b"".join(bytes((tag, 0)) for tag in range(MAX_TAGGED_FIELDS))
    header, position = decode_request_header(start + most)
    assert (len(header.tagged_fields), position) == (MAX_TAGGED_FIELDS, len(start + most))
    for count in (b"\x41", b"\x80\x80\x10", b"\xff\xff\xff\xff\x0f"):
        words = "the header has [0-9]+ tagged fields; at most 64 are read"
        with pytest.raises(DecodeError, match=words):
            decode_request_header(start + count + most[1:])
        with pytest.raises(DecodeError, match=words):
            decode_response(HeartbeatRequest, 4, struct.pack(">i", 1) + count + most[1:])


@pytest.mark.parametrize("tags", [(0, 0), (3, 2)])
def test_tags_of_a_header_ascend(tags: tuple[int, int]) -> None:
    fields = b"\x02" + b"".join(bytes((tag, 0)) for tag in tags)
    with pytest.raises(DecodeError, match=f"tagged field {tags[1]} of the header follows {tags[0]}"):
        decode_request_header(struct.pack(">hhih", ApiKey.HEARTBEAT, 4, 1, -1) + fields)


@given(cut=st.integers(0, 14))
def test_a_header_that_is_cut_short_says_so(cut: int) -> None:
    frame = encode_request(ApiKey.HEARTBEAT, 4, 1, "test", HeartbeatRequest(group_id="g", member_id="m"))
    with pytest.raises(BufferUnderflow):
        decode_request_header(frame[:cut])


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (struct.pack(">hhih", 12, 4, 1, -2), "the client id has length -2"),
        (struct.pack(">hhih", 12, 4, 1, 2) + b"\xff\xfe\x00", "the client id is not UTF-8"),
        (struct.pack(">hhih", 12, 4, 1, -1) + b"\x01\x00\x7f", "a tagged field of 127 bytes ends outside"),
    ],
)
def test_a_malformed_header_is_refused(frame: bytes, words: str) -> None:
    with pytest.raises(DecodeError, match=words):
        decode_request_header(frame)


@given(data=st.binary(max_size=40))
def test_no_bytes_make_the_header_reader_fail_otherwise(data: bytes) -> None:
    try:
        header, position = decode_request_header(data)
    except DecodeError:
        return
    assert 10 <= position <= len(data)
    assert header.api_key in set(ApiKey)


def test_a_response_without_a_whole_header_is_refused() -> None:
    with pytest.raises(BufferUnderflow, match="a response header needs 4 bytes, 2 are there"):
        read_correlation_id(b"\x00\x00")
