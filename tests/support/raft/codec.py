"""Messages encoded and decoded again."""

from typing import TypeVar

from kquorum.raft.adapters.kafka_codec import codec
from kquorum.wire.message_codec import decode, encode
from kquorum.wire.message_schema import Message
from kquorum.wire.protocol.api_keys import ApiKey

M = TypeVar("M", bound=Message)


def versions(api_key: ApiKey) -> range:
    lowest, highest = codec.RAFT_APIS[api_key]
    return range(lowest, highest + 1)


def over_the_wire(message: M, version: int) -> M:
    data = encode(message, version)
    decoded, end = decode(type(message), version, data)
    assert end == len(data)
    return decoded
