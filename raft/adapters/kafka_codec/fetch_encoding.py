"""The ordinary Fetch response straight to bytes: records or none, no divergence, no snapshot, no error.

Every commit passes through here once for each follower; by a message of `wire.messages` it costs five times as much.
The layout is that of `FetchResponse.json`, flexible versions 12 to 18. All other answers are messages, and the tests
compare this way with them.
"""

import struct
from functools import lru_cache

from kquorum.raft.adapters.kafka_codec.partition import PARTITION, TOPIC_NAME
from kquorum.raft.messages import NO_LEADER, FetchResponse
from kquorum.raft.voters import Endpoint
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.primitives import write_uvarint
from kquorum.wire.uuids import METADATA_TOPIC_ID

_FIRST_WITH_TOPIC_ID = 13
_FIRST_WITH_ENDPOINTS = 16
# No throttling, no error, session 0, one topic.
_START = struct.pack(">ihi", 0, 0, 0) + b"\x02"
_PARTITION = struct.Struct(">ihqqq")
# No aborted transactions, no preferred replica.
_BEFORE_RECORDS = b"\x01" + struct.pack(">i", -1)
# Tag 1, the current leader: 9 bytes; the last one says that no more tagged fields follow.
_LEADER = struct.Struct(">bbbiib")
_PORT = struct.Struct(">i")
_END_OF_TOPIC = b"\x00"
_NO_TAGS = b"\x00"


def encode_ordinary(version: int, response: FetchResponse, endpoint: Endpoint | None) -> bytes | None:
    """The body of the response, or None when it is not an ordinary one; `endpoint` is where the leader listens."""
    if (
        response.error is not ErrorCode.none
        or response.diverging is not None
        or response.snapshot_id is not None
        or response.leader_id == NO_LEADER
    ):
        return None
    records = response.records
    assert isinstance(records, bytes)
    length = bytearray()
    write_uvarint(length, len(records) + 1)
    partition = _PARTITION.pack(PARTITION, 0, response.high_watermark, -1, response.log_start_offset)
    leader = _LEADER.pack(1, 1, 9, response.leader_id, response.leader_epoch, 0)
    topic, tail = _topic(version), _tail(version, response.leader_id, endpoint)
    return b"".join((_START, topic, partition, _BEFORE_RECORDS, length, records, leader, _END_OF_TOPIC, tail))


@lru_cache(maxsize=16)
def _topic(version: int) -> bytes:
    """Which topic, and that one partition follows."""
    if version >= _FIRST_WITH_TOPIC_ID:
        return METADATA_TOPIC_ID.bytes + b"\x02"
    return bytes([len(TOPIC_NAME) + 1]) + TOPIC_NAME.encode() + b"\x02"


@lru_cache(maxsize=64)
def _tail(version: int, leader_id: int, endpoint: Endpoint | None) -> bytes:
    """The tagged fields of the response itself: tag 0 says where the leader listens."""
    if version < _FIRST_WITH_ENDPOINTS or endpoint is None:
        return _NO_TAGS
    host = endpoint.host.encode()
    node = bytearray(b"\x02" + _PORT.pack(leader_id))
    write_uvarint(node, len(host) + 1)
    node += host + _PORT.pack(endpoint.port) + b"\x00" + _NO_TAGS  # no rack
    tail = bytearray(b"\x01\x00")
    write_uvarint(tail, len(node))
    return bytes(tail + node)
