"""Requests and answers with their headers, as a client that speaks in kio's entities writes and reads them."""

from typing import Any

from kquorum.wire.message_schema import Message
from kquorum.wire.protocol import headers
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import api_version
from kquorum.wire.protocol.headers import EncodedBody
from tests.support.kio.classes import response_class
from tests.support.kio.codec import decode, encode

_CORRELATION_ID_BYTES = 4
_UNSUPPORTED_VERSION = (35).to_bytes(2, "big")


def _body(body: Any) -> Message | EncodedBody:
    return body if isinstance(body, Message | EncodedBody) else EncodedBody(encode(body))


def encode_request(
    api_key: int,
    version: int,
    correlation_id: int,
    client_id: str | None,
    body: Any,
    tagged_fields: tuple[tuple[int, bytes], ...] = (),
) -> bytes:
    """`body` is kio's entity, or what the product's `encode_request` takes."""
    return headers.encode_request(api_key, version, correlation_id, client_id, _body(body), tagged_fields)


def encode_response(api_key: int, version: int, correlation_id: int, body: Any) -> bytes:
    """`body` is kio's entity, or what the product's `encode_response` takes."""
    return headers.encode_response(api_key, version, correlation_id, _body(body))


def decode_response(api_key: int, version: int, frame: bytes) -> tuple[int, Any]:
    """Answers the correlation id and kio's entity; of version 0 where a server does not know the version of ApiVersions
    (KIP-511)."""
    correlation_id = headers.read_correlation_id(frame)
    position = _CORRELATION_ID_BYTES
    if api_key == ApiKey.API_VERSIONS and frame[position : position + 2] == _UNSUPPORTED_VERSION:
        version = 0
    if api_version(api_key, version).response_header_version:
        position = headers.skip_tagged_fields(frame, position)
    return correlation_id, decode(response_class(api_key, version), frame, position)[0]
