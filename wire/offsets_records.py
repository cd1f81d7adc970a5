"""The records of `__consumer_offsets`: keys and values, byte for byte as Kafka's group coordinator writes them.

A key is an int16 with the type of the record, then its fields; a value is an int16 with its version, then its fields. A
null value (tombstone) removes what the key names. Types 0 to 2 belong to offsets and classic groups. The types above
are those of consumer, share and streams groups (KIP-848, KIP-932, KIP-1071): of these only the group id is read here.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

from kquorum.wire import message_schema
from kquorum.wire.errors import BufferUnderflow, DecodeError, UnsupportedVersion
from kquorum.wire.message_codec import decode, encode
from kquorum.wire.message_schema import Data, Struct, kafka, message
from kquorum.wire.uuids import ZERO_UUID

M = TypeVar("M", bound=Data)

NO_TIMESTAMP: Final = -1
NO_EPOCH: Final = -1


class RecordType(IntEnum):
    LEGACY_OFFSET_COMMIT = 0
    OFFSET_COMMIT = 1
    GROUP_METADATA = 2
    CONSUMER_GROUP_METADATA = 3
    CONSUMER_GROUP_PARTITION_METADATA = 4
    CONSUMER_GROUP_MEMBER_METADATA = 5
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = 6
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = 7
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = 8
    SHARE_GROUP_PARTITION_METADATA = 9
    SHARE_GROUP_MEMBER_METADATA = 10
    SHARE_GROUP_METADATA = 11
    SHARE_GROUP_TARGET_ASSIGNMENT_METADATA = 12
    SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER = 13
    SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT = 14
    SHARE_GROUP_STATE_PARTITION_METADATA = 15
    CONSUMER_GROUP_REGULAR_EXPRESSION = 16
    STREAMS_GROUP_METADATA = 17
    STREAMS_GROUP_PARTITION_METADATA = 18
    STREAMS_GROUP_MEMBER_METADATA = 19
    STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA = 20
    STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER = 21
    STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT = 22
    STREAMS_GROUP_TOPOLOGY = 23


class OffsetKey(NamedTuple):
    group_id: str
    topic: str
    partition: int


class GroupKey(NamedTuple):
    """Of a classic group."""

    group_id: str


class ModernKey(NamedTuple):
    """Of a consumer, share or streams group."""

    type: RecordType
    group_id: str


class UnknownKey(NamedTuple):
    """Of a release of Kafka later than this code: a reader skips it."""

    type: int


Key = OffsetKey | GroupKey | ModernKey | UnknownKey


@message(versions=(0, 0), flexible_since=None)
class _OffsetCommitKey(Data):
    group: str = kafka("string", default="")
    topic: str = kafka("string", default="")
    partition: int = kafka("int32", default=0)


@message(versions=(0, 0), flexible_since=None)
class _GroupKey(Data):
    group: str = kafka("string", default="")


@message(versions=(0, 4), flexible_since=4)
class OffsetCommitValue(Data):
    offset: int = kafka("int64", default=0)
    leader_epoch: int = kafka("int32", default=NO_EPOCH, since=3)
    metadata: str = kafka("string", default="")
    commit_timestamp: int = kafka("int64", default=0)
    expire_timestamp: int = kafka("int64", default=NO_TIMESTAMP, since=1, until=1)
    topic_id: UUID = kafka("uuid", default=ZERO_UUID, since=4, tag=0)


@message_schema.struct
class MemberMetadata(Struct):
    member_id: str = kafka("string", default="")
    group_instance_id: str | None = kafka("string", default=None, since=3, nullable=True)
    client_id: str = kafka("string", default="")
    client_host: str = kafka("string", default="")
    rebalance_timeout: int = kafka("int32", default=-1, since=1)
    session_timeout: int = kafka("int32", default=0)
    subscription: bytes = kafka("bytes", default=b"")
    assignment: bytes = kafka("bytes", default=b"")


@message(versions=(0, 4), flexible_since=4)
class GroupMetadataValue(Data):
    protocol_type: str = kafka("string", default="")
    generation: int = kafka("int32", default=0)
    protocol: str | None = kafka("string", default=None, nullable=True)
    leader: str | None = kafka("string", default=None, nullable=True)
    current_state_timestamp: int = kafka("int64", default=NO_TIMESTAMP, since=2)
    members: tuple[MemberMetadata, ...] = kafka([MemberMetadata], default=())


# What Kafka 4.3 writes. Version 1 alone has room for the time at which an offset expires.
WRITTEN_OFFSET_VERSION: Final = 4
_OFFSET_VERSION_WITH_EXPIRY: Final = 1
WRITTEN_GROUP_VERSION: Final = 3
INT16: Final = struct.Struct(">h")


def decode_key(data: bytes) -> Key:
    """Raises DecodeError."""
    number = value_version(data)
    try:
        record_type = RecordType(number)
    except ValueError:
        return UnknownKey(number)
    if record_type <= RecordType.OFFSET_COMMIT:
        key = decode_versioned(_OffsetCommitKey, 0, data)
        return OffsetKey(key.group, key.topic, key.partition)
    if record_type is RecordType.GROUP_METADATA:
        return GroupKey(decode_versioned(_GroupKey, 0, data).group)
    # The first field of each of these keys is the group's id.
    group, _ = decode(_GroupKey, 0, data, INT16.size)
    return ModernKey(record_type, group.group)


def encode_offset_key(key: OffsetKey) -> bytes:
    fields = _OffsetCommitKey(group=key.group_id, topic=key.topic, partition=key.partition)
    return INT16.pack(RecordType.OFFSET_COMMIT) + encode(fields, 0)


def encode_group_key(group_id: str) -> bytes:
    return INT16.pack(RecordType.GROUP_METADATA) + encode(_GroupKey(group=group_id), 0)


def decode_offset_value(data: bytes) -> OffsetCommitValue:
    """Raises DecodeError, for a version that is not known too: what it says is lost if it is skipped (KAFKA-18672)."""
    return decode_versioned(OffsetCommitValue, value_version(data), data)


def encode_offset_value(value: OffsetCommitValue, version: int | None = None) -> bytes:
    if version is None:
        expires = value.expire_timestamp != NO_TIMESTAMP
        version = _OFFSET_VERSION_WITH_EXPIRY if expires else WRITTEN_OFFSET_VERSION
    return INT16.pack(version) + encode(value, version)


def decode_group_value(data: bytes) -> GroupMetadataValue:
    """Raises DecodeError."""
    return decode_versioned(GroupMetadataValue, value_version(data), data)


def encode_group_value(value: GroupMetadataValue, version: int = WRITTEN_GROUP_VERSION) -> bytes:
    return INT16.pack(version) + encode(value, version)


def value_version(data: bytes) -> int:
    if len(data) < INT16.size:
        raise BufferUnderflow("a record of __consumer_offsets is cut short", len(data))
    number: int = INT16.unpack_from(data)[0]
    return number


def decode_versioned(cls: type[M], version: int, data: bytes) -> M:
    try:
        found, end = decode(cls, version, data, INT16.size)
    except UnsupportedVersion as error:
        raise DecodeError(str(error)) from None
    if end != len(data):
        raise DecodeError(f"{cls.__name__} has {len(data) - end} bytes too many")
    return found
