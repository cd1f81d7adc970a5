"""Requests as a listener reads them, and answers as a client does: through bytes."""

from collections.abc import Mapping
from typing import Any

from kquorum.wire import message_codec
from kquorum.wire.codec import decode, encode
from kquorum.wire.message_schema import Response
from kquorum.wire.protocol.apis import message_types, request_class, response_class
from kquorum.wire.protocol.bodies import read_request
from kquorum.wire.protocol.entities import build

_MOST_ELEMENTS = 10_000_000


def request_of(api_key: int, version: int, values: Mapping[str, object]) -> Any:
    """The body that a handler gets."""
    return as_read(api_key, version, build(request_class(api_key, version), values))


def as_read(api_key: int, version: int, entity: Any) -> Any:
    """What a handler gets for kio's entity of a request."""
    return read_request(api_key, version, encode(entity), 0, _MOST_ELEMENTS)[0]


def answer_of(api_key: int, version: int, answer: Any) -> Any:
    """What a client reads: a message if a handler answered with one, else kio's entity."""
    encoded = encode(build(response_class(api_key, version), answer))
    if isinstance(answer, Response):
        return message_codec.decode(message_types(api_key)[1], version, encoded)[0]
    return decode(response_class(api_key, version), encoded)[0]


def read_answer(api_key: int, version: int, answer: Any) -> Any:
    """The message that a client reads, whatever a handler answered with."""
    encoded = encode(build(response_class(api_key, version), answer))
    message, end = message_codec.decode(message_types(api_key)[1], version, encoded)
    assert end == len(encoded), f"{len(encoded) - end} bytes follow the answer"
    return message
