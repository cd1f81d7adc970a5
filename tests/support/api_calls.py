"""Requests as a listener reads them, and answers as a client does: through bytes."""

from collections.abc import Mapping
from typing import Any

from kquorum.metadata.controller_apis import QUESTIONS, Question
from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.wire import message_codec
from kquorum.wire.codec import decode, encode
from kquorum.wire.message_schema import Request, Response
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import message_types, request_class, response_class
from kquorum.wire.protocol.bodies import read_request
from kquorum.wire.protocol.entities import build
from kquorum.wire.protocol.headers import encode_body

_MOST_ELEMENTS = 10_000_000


def request_of(api_key: int, version: int, values: Mapping[str, object]) -> Any:
    """The body that a handler gets."""
    return as_read(api_key, version, build(request_class(api_key, version), values))


def as_read(api_key: int, version: int, entity: Any) -> Any:
    """What a handler gets of a request, which is a message or kio's entity."""
    data = message_codec.encode(entity, version) if isinstance(entity, Request) else encode(entity)
    return read_request(api_key, version, data, 0, _MOST_ELEMENTS)[0]


def answer_of(api_key: int, version: int, answer: Any) -> Any:
    """What a client reads: a message if a handler answered with one, else kio's entity."""
    encoded = encode(build(response_class(api_key, version), answer))
    if isinstance(answer, Response):
        return message_codec.decode(message_types(api_key)[1], version, encoded)[0]
    return decode(response_class(api_key, version), encoded)[0]


def described(api_key: int, question: DescribeRequest) -> Any:
    """What a client reads of a node's answer to a question."""
    asked = QUESTIONS[ApiKey(api_key)]
    if isinstance(asked, Question):
        return answer_of(api_key, question.version, asked.describe(question))
    *_, answer = asked.slices(question, ())
    return read_answer(api_key, question.version, answer)


def read_answer(api_key: int, version: int, answer: Any) -> Any:
    """The message that a client reads: of a message, of values, of bytes, or of kio's entity."""
    entity = build(response_class(api_key, version), answer) if isinstance(answer, dict) else answer
    encoded = encode_body(entity, version)
    message, end = message_codec.decode(message_types(api_key)[1], version, encoded)
    assert end == len(encoded), f"{len(encoded) - end} bytes follow the answer"
    return message
