"""Messages as Kafka's bytes: what one host sends is encoded and decoded as between real processes.

In a world of mixed releases some hosts know only older versions of the quorum's APIs, without pre-votes (KIP-996),
the leader's endpoints (KIP-853) or the high watermark in a Fetch (KIP-1166); a pair uses the newest that both know.
"""

from typing import TypeVar

from kquorum.raft.adapters.kafka_codec.codec import (
    CALLED_APIS,
    api_key_of,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from kquorum.raft.messages import Request, Response
from kquorum.wire.errors import UnsupportedVersion
from kquorum.wire.message_codec import decode, encode
from kquorum.wire.message_schema import Message
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import message_types
from kquorum.wire.protocol.headers import encode_body
from tests.simulation.errors import InvariantBroken
from tests.simulation.hosts import Host

M = TypeVar("M", bound=Message)

LISTENER = "CONTROLLER"
# What a host of an older release knows at most.
OLD_VERSIONS = {
    ApiKey.VOTE: 1,
    ApiKey.FETCH: 16,
    ApiKey.FETCH_SNAPSHOT: 0,
    ApiKey.BEGIN_QUORUM_EPOCH: 0,
    ApiKey.END_QUORUM_EPOCH: 0,
}

__all__ = ("UnsupportedVersion", "request_over_wire", "response_over_wire", "version_between")


def version_between(one: Host, other: Host, request: Request) -> int:
    api_key = api_key_of(request)
    newest = CALLED_APIS[api_key][1]
    return min(newest, OLD_VERSIONS.get(api_key, newest)) if one.is_old or other.is_old else newest


def request_over_wire(request: Request, version: int) -> Request:
    """What arrives of a request; raises UnsupportedVersion when that version cannot say it."""
    api_key = api_key_of(request)
    data = encode(encode_request(request, version), version)
    decoded = decode_request(api_key, _decode(message_types(api_key)[0], version, data))
    if not isinstance(decoded, type(request)):
        raise InvariantBroken(f"{request} was understood as {decoded}")
    return decoded


def response_over_wire(request: Request, response: Response, version: int) -> Response:
    """What arrives of the answer to a request that came in `version`."""
    api_key = api_key_of(request)
    data = encode_body(encode_response(api_key, version, response, {}, LISTENER), version)
    return decode_response(api_key, _decode(message_types(api_key)[1], version, data), LISTENER)


def _decode(cls: type[M], version: int, data: bytes) -> M:
    message, end = decode(cls, version, data)
    if end != len(data):
        raise InvariantBroken(f"{len(data) - end} bytes are left over behind {message}")
    return message
