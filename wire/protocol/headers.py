"""Request and response headers (`RequestHeader.json`, `ResponseHeader.json`), and messages: header and body.

All bytes here are the inside of a frame; `wire.protocol.frames` adds the length. The client id keeps its
int16 length even in the flexible header, so the four fields of a header can be read before the version is
known to be one of ours.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast

from kquorum.wire import message_codec
from kquorum.wire.errors import BufferUnderflow, DecodeError, UnsupportedVersion
from kquorum.wire.message_schema import Message, R, Request, Response, response_type_of
from kquorum.wire.primitives import read_uvarint, write_uvarint
from kquorum.wire.protocol.apis import ApiKey, ApiVersion, api_name, api_version, is_supported

_REQUEST_START = struct.Struct(">hhih")  # api key, version, correlation id, length of the client id
_RESPONSE_START = struct.Struct(">ii")  # length of the frame, correlation id
_CORRELATION_ID = struct.Struct(">i")
_NO_TAGGED_FIELDS = b"\x00"
_UNSUPPORTED_VERSION = (35).to_bytes(2, "big")
# Kafka defines none for headers, and we two. A header is read before it is known who sent it.
MAX_TAGGED_FIELDS = 64
NO_BOUND = 2**63 - 1


@dataclass(frozen=True, slots=True)
class EncodedBody:
    """A body that is encoded already, in the version that was asked; a header is added to it.

    For answers that many readers get alike, such as parked fetches: encode once, send to each.
    """

    data: bytes


class NoAnswer:
    """The request gets no response: a producer that asked for no acknowledgement (acks=0) does not read one."""


NO_ANSWER: Final = NoAnswer()


@dataclass(slots=True, init=False)
class RequestHeader:
    """`api_key` is an ApiKey where the key is known, else the number as it came. `tagged_fields` are a flexible
    header's, as (tag, bytes)."""

    api_key: Final[int]
    api_version: Final[int]
    correlation_id: Final[int]
    client_id: Final[str | None]
    tagged_fields: Final[tuple[tuple[int, bytes], ...]]

    def __init__(
        self,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        tagged_fields: tuple[tuple[int, bytes], ...] = (),
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.tagged_fields = tagged_fields


class UnsupportedRequest(UnsupportedVersion):
    """An API or version that is not in the table; `header` holds what came, so that it can be answered."""

    def __init__(self, header: RequestHeader) -> None:
        self.header = header
        super().__init__(f"{api_name(header.api_key)} version {header.api_version} is not supported")


def decode_request_header(
    frame: bytes, is_read: Callable[[int, int], bool] = is_supported
) -> tuple[RequestHeader, int]:
    """Answers the header and the position of the body. `is_read` takes an API key and a version: a version that is not
    read here is not imported either, and counts as not supported.

    Raises UnsupportedRequest, BufferUnderflow or DecodeError.
    """
    try:
        api_key, version, correlation_id, client_id_length = _REQUEST_START.unpack_from(frame)
    except struct.error:
        raise BufferUnderflow(
            f"a request header needs {_REQUEST_START.size} bytes, {len(frame)} are there", 0
        ) from None
    client_id, position = _read_client_id(frame, client_id_length)
    try:
        api = api_version(api_key, version) if is_read(api_key, version) else None
    except UnsupportedVersion:
        api = None
    if api is None:
        raise UnsupportedRequest(RequestHeader(api_key, version, correlation_id, client_id))
    tagged_fields: tuple[tuple[int, bytes], ...] = ()
    if api.request_header_version >= 2:
        tagged_fields, position = read_tagged_fields(frame, position)
    return RequestHeader(api.api_key, version, correlation_id, client_id, tagged_fields), position


def _read_client_id(frame: bytes, length: int) -> tuple[str | None, int]:
    start = _REQUEST_START.size
    if length < 0:
        if length == -1:
            return None, start
        raise DecodeError(f"the client id has length {length}", start - 2)
    end = start + length
    if end > len(frame):
        raise BufferUnderflow(f"the client id has {length} bytes, {len(frame) - start} are there", start)
    try:
        return frame[start:end].decode(), end
    except UnicodeDecodeError:
        raise DecodeError("the client id is not UTF-8", start) from None


def read_tagged_fields(frame: bytes, position: int) -> tuple[tuple[tuple[int, bytes], ...], int]:
    """A header's tagged fields (KIP-482), in ascending order and few, and the position after them; Kafka defines none
    yet. Raises BufferUnderflow or DecodeError."""
    if position < len(frame) and not frame[position]:
        return (), position + 1
    count, position = read_uvarint(frame, position)
    if count > MAX_TAGGED_FIELDS:
        raise DecodeError(
            f"the header has {count} tagged fields; at most {MAX_TAGGED_FIELDS} are read", position
        )
    fields: list[tuple[int, bytes]] = []
    last_tag = -1
    for _ in range(count):
        tag, position = read_uvarint(frame, position)
        if tag <= last_tag:
            raise DecodeError(
                f"tagged field {tag} of the header follows {last_tag}, but tags must ascend", position
            )
        last_tag = tag
        size, position = read_uvarint(frame, position)
        if position + size > len(frame):
            raise BufferUnderflow(f"a tagged field of {size} bytes ends outside of the frame", position)
        fields.append((tag, bytes(frame[position : position + size])))
        position += size
    return tuple(fields), position


def skip_tagged_fields(frame: bytes, position: int) -> int:
    """The position after a header's tagged fields."""
    return read_tagged_fields(frame, position)[1]


def encode_request_header(
    api_key: int,
    version: int,
    correlation_id: int,
    client_id: str | None,
    tagged_fields: tuple[tuple[int, bytes], ...] = (),
) -> bytes:
    """Tagged fields, ascending by tag, are left out of headers that have none. Raises UnsupportedVersion."""
    api = api_version(api_key, version)
    name = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(name)
    tail = _tagged(tagged_fields) if api.request_header_version >= 2 else b""
    return _REQUEST_START.pack(api_key, version, correlation_id, length) + name + tail


def _tagged(fields: tuple[tuple[int, bytes], ...]) -> bytes:
    if not fields:
        return _NO_TAGGED_FIELDS
    out = bytearray()
    write_uvarint(out, len(fields))
    for tag, value in fields:
        write_uvarint(out, tag)
        write_uvarint(out, len(value))
        out += value
    return bytes(out)


def encode_request(
    api_key: int,
    version: int,
    correlation_id: int,
    client_id: str | None,
    request: Request[Response] | EncodedBody,
    tagged_fields: tuple[tuple[int, bytes], ...] = (),
) -> bytes:
    """Header and body. Raises UnsupportedVersion, also where the version lacks a field that is set."""
    header = encode_request_header(api_key, version, correlation_id, client_id, tagged_fields)
    return header + encode_body(request, version)


def encode_response_header(api_key: int, version: int, correlation_id: int) -> bytes:
    """Raises UnsupportedVersion."""
    header = _CORRELATION_ID.pack(correlation_id)
    return header + _NO_TAGGED_FIELDS if api_version(api_key, version).response_header_version else header


def encode_response(api_key: int, version: int, correlation_id: int, answer: Response | EncodedBody) -> bytes:
    """Header and body. Raises UnsupportedVersion."""
    return encode_response_header(api_key, version, correlation_id) + encode_body(answer, version)


def encode_response_frame(
    api: ApiVersion, correlation_id: int, answer: Response | EncodedBody
) -> list[bytes | memoryview]:
    """A whole frame, length first, in the pieces that a server writes one after the other. Long record batches are
    pieces of their own, which are not copied."""
    if isinstance(answer, Response):
        parts = message_codec.encode_parts(answer, api.version)
    else:
        parts = [answer.data]
    is_tagged = api.response_header_version > 0
    start = _RESPONSE_START.pack(sum(map(len, parts)) + (5 if is_tagged else 4), correlation_id)
    first = b"".join((start, _NO_TAGGED_FIELDS, parts[0]) if is_tagged else (start, parts[0]))
    return [first, *parts[1:]]


def encode_body(message: Message | EncodedBody, version: int) -> bytes:
    """`version` is that of the request."""
    return message.data if isinstance(message, EncodedBody) else message_codec.encode(message, version)


def read_correlation_id(frame: bytes) -> int:
    """The first field of every response. Raises BufferUnderflow."""
    try:
        return cast(int, _CORRELATION_ID.unpack_from(frame)[0])
    except struct.error:
        raise BufferUnderflow(f"a response header needs 4 bytes, {len(frame)} are there", 0) from None


def decode_response(cls: type[Request[R]], version: int, frame: bytes, most_elements: int = NO_BOUND) -> R:
    """The response to a request of `cls`. Raises UnsupportedVersion, BufferUnderflow or DecodeError; TooManyElements
    if its arrays have more than `most_elements` together.

    A server that does not know the asked version of ApiVersions answers in the layout of version 0 (KIP-511), which is
    read then. Bytes after the body are passed over, as Kafka's own reader does.
    """
    if cls.api_key == ApiKey.API_VERSIONS and _is_unsupported_version(frame):
        version = 0
    position = _CORRELATION_ID.size
    if api_version(cls.api_key, version).response_header_version:
        position = skip_tagged_fields(frame, position)
    return message_codec.decode_bounded(response_type_of(cls), version, frame, position, most_elements)[0]


def _is_unsupported_version(frame: bytes) -> bool:
    start = _CORRELATION_ID.size
    return frame[start : start + 2] == _UNSUPPORTED_VERSION
