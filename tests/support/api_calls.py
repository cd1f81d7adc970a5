"""Requests as a listener reads them, and answers as a client does: through bytes."""

from collections.abc import Mapping
from typing import Any

from kquorum.metadata.controller_apis import QUESTIONS, Question
from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.metadata.features import SUPPORTED_FEATURES
from kquorum.wire import message_codec
from kquorum.wire.message_schema import Request, Response
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import message_types, supported_versions
from kquorum.wire.protocol.bodies import read_request
from kquorum.wire.protocol.headers import EncodedBody, encode_body
from tests.support.kio.classes import request_class, response_class
from tests.support.kio.codec import encode
from tests.support.kio.entities import build

_MOST_ELEMENTS = 10_000_000
# The fields of a request or a response by their names, structs as mappings (`tests.support.kio.entities`).
Values = dict[str, Any]


def request_of(api_key: int, version: int, values: Mapping[str, object]) -> Any:
    """The body that a handler gets."""
    return as_read(api_key, version, build(request_class(api_key, version), values))


def response_of(api_key: int, version: int, values: Mapping[str, object]) -> Any:
    """An answer with these fields."""
    return read_answer(api_key, version, EncodedBody(encode(build(response_class(api_key, version), values))))


def message_of(api_key: int, values: Mapping[str, object] | Request[Response]) -> Any:
    """A request with the fields of the newest version."""
    if isinstance(values, Request):
        return values
    return request_of(api_key, supported_versions(api_key)[1], values)


def feature_values() -> list[Values]:
    """The levels that a node of ours registers."""
    return [
        {"name": name, "min_supported_version": low, "max_supported_version": high}
        for name, (low, high) in sorted(SUPPORTED_FEATURES.items())
    ]


def as_read(api_key: int, version: int, entity: Any) -> Any:
    """What a handler gets of a request, which is a message or kio's entity."""
    data = message_codec.encode(entity, version) if isinstance(entity, Request) else encode(entity)
    return read_request(api_key, version, data, 0, _MOST_ELEMENTS)[0]


def described(api_key: int, question: DescribeRequest) -> Any:
    """What a client reads of a node's answer to a question."""
    asked = QUESTIONS[ApiKey(api_key)]
    if isinstance(asked, Question):
        return read_answer(api_key, question.version, asked.describe(question))
    *_, answer = asked.slices(question, ())
    return read_answer(api_key, question.version, answer)


def read_answer(api_key: int, version: int, answer: Any) -> Any:
    """The message that a client reads of a message, of bytes, or of kio's entity."""
    is_ours = isinstance(answer, Response | EncodedBody)
    encoded = encode_body(answer, version) if is_ours else encode(answer)
    message, end = message_codec.decode(message_types(api_key)[1], version, encoded)
    assert end == len(encoded), f"{len(encoded) - end} bytes follow the answer"
    return message
