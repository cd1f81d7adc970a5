"""The records of consumer groups in `__consumer_offsets` (KIP-848), byte for byte as Kafka's group coordinator writes
them.

The types 3 to 8 and 16. Keys have version 0 and are not flexible, values have version 0 and are flexible. Kafka since
4.1 writes only tombstones of type 4, whose values said what a hash in the type 3 says now (KIP-1101).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

from kquorum.wire import message_schema
from kquorum.wire.errors import DecodeError
from kquorum.wire.message_codec import encode
from kquorum.wire.message_schema import Data, Struct, kafka, message
from kquorum.wire.offsets_records import INT16, RecordType, decode_versioned, value_version
from kquorum.wire.uuids import ZERO_UUID

M = TypeVar("M", bound=Data)
Target = Mapping[UUID, frozenset[int]]
"""The partitions that a member is to have, by topic id."""
Assigned = Mapping[UUID, Mapping[int, int]]
"""The partitions that a member has, by topic id, each with the member epoch at which it got it (KIP-1251)."""

VERSION: Final = 0


class ConsumerKey(NamedTuple):
    """`name` is the member's id, or a regular expression, or empty in a type that has one record for each group."""

    type: RecordType
    group_id: str
    name: str = ""


@message(versions=(0, 0), flexible_since=None)
class _GroupKey(Data):
    group: str = kafka("string", default="")


@message(versions=(0, 0), flexible_since=None)
class _NamedKey(Data):
    group: str = kafka("string", default="")
    name: str = kafka("string", default="")


@message_schema.struct
class TopicPartitions(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[int, ...] = kafka("[]int32", default=())


@message_schema.struct
class AssignedTopicPartitions(Struct):
    """`assignment_epochs` is Kafka 4.3's (KIP-1251): one for each partition; empty in records of earlier brokers."""

    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[int, ...] = kafka("[]int32", default=())
    assignment_epochs: tuple[int, ...] | None = kafka("[]int32", default=(), nullable=True, tag=0)


@message(versions=(0, 0), flexible_since=0)
class GroupEpochValue(Data):
    epoch: int = kafka("int32", default=0)
    metadata_hash: int = kafka("int64", default=0, tag=0)


@message_schema.struct
class _PartitionRacks(Struct):
    partition: int = kafka("int32", default=0)
    racks: tuple[str, ...] = kafka("[]string", default=())


@message_schema.struct
class _TopicMetadata(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    topic_name: str = kafka("string", default="")
    num_partitions: int = kafka("int32", default=0)
    partition_metadata: tuple[_PartitionRacks, ...] = kafka([_PartitionRacks], default=())


@message(versions=(0, 0), flexible_since=0)
class PartitionMetadataValue(Data):
    topics: tuple[_TopicMetadata, ...] = kafka([_TopicMetadata], default=())


@message_schema.struct
class ClassicProtocolEntry(Struct):
    name: str = kafka("string", default="")
    metadata: bytes = kafka("bytes", default=b"")


@message_schema.frozen_struct
class ClassicMemberMetadata(Struct):
    """Of a member that speaks the classic protocol."""

    session_timeout_ms: int = kafka("int32", default=0)
    supported_protocols: tuple[ClassicProtocolEntry, ...] = kafka([ClassicProtocolEntry], default=())


@message(versions=(0, 0), flexible_since=0)
class MemberMetadataValue(Data):
    instance_id: str | None = kafka("string", default=None, nullable=True)
    rack_id: str | None = kafka("string", default=None, nullable=True)
    client_id: str = kafka("string", default="")
    client_host: str = kafka("string", default="")
    subscribed_topic_names: tuple[str, ...] = kafka("[]string", default=())
    subscribed_topic_regex: str | None = kafka("string", default=None, nullable=True)
    rebalance_timeout_ms: int = kafka("int32", default=-1)
    server_assignor: str | None = kafka("string", default=None, nullable=True)
    # What is not there reads as an empty struct, not as null, in Kafka's classes: null is always written.
    classic_member_metadata: ClassicMemberMetadata | None = kafka(
        ClassicMemberMetadata, default=ClassicMemberMetadata(), nullable=True, tag=0
    )


@message(versions=(0, 0), flexible_since=0)
class TargetEpochValue(Data):
    """`assignment_timestamp` is Kafka 4.3's (KIP-1263): when the assignment was computed, in ms; 0 is unknown."""

    assignment_epoch: int = kafka("int32", default=0)
    assignment_timestamp: int = kafka("int64", default=0, tag=0)


@message(versions=(0, 0), flexible_since=0)
class TargetAssignmentValue(Data):
    topic_partitions: tuple[TopicPartitions, ...] = kafka([TopicPartitions], default=())


@message(versions=(0, 0), flexible_since=0)
class CurrentAssignmentValue(Data):
    member_epoch: int = kafka("int32", default=0)
    previous_member_epoch: int = kafka("int32", default=0)
    state: int = kafka("int8", default=0)
    assigned_partitions: tuple[AssignedTopicPartitions, ...] = kafka([AssignedTopicPartitions], default=())
    partitions_pending_revocation: tuple[AssignedTopicPartitions, ...] = kafka(
        [AssignedTopicPartitions], default=()
    )


@message(versions=(0, 0), flexible_since=0)
class RegularExpressionValue(Data):
    """`version` is the offset of the metadata image that the topics were found in, `timestamp` when that was, in ms."""

    topics: tuple[str, ...] = kafka("[]string", default=())
    version: int = kafka("int64", default=0)
    timestamp: int = kafka("int64", default=0)


Value = (
    GroupEpochValue
    | PartitionMetadataValue
    | MemberMetadataValue
    | TargetEpochValue
    | TargetAssignmentValue
    | CurrentAssignmentValue
    | RegularExpressionValue
)

_VALUES: Final[Mapping[RecordType, type[Value]]] = {
    RecordType.CONSUMER_GROUP_METADATA: GroupEpochValue,
    RecordType.CONSUMER_GROUP_PARTITION_METADATA: PartitionMetadataValue,
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: MemberMetadataValue,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: TargetEpochValue,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: TargetAssignmentValue,
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: CurrentAssignmentValue,
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: RegularExpressionValue,
}
_NAMED: Final = frozenset(
    {
        RecordType.CONSUMER_GROUP_MEMBER_METADATA,
        RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
        RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION,
    }
)
CONSUMER_TYPES: Final = frozenset(_VALUES)


def encode_consumer_key(key: ConsumerKey) -> bytes:
    fields = (
        _NamedKey(group=key.group_id, name=key.name) if key.type in _NAMED else _GroupKey(group=key.group_id)
    )
    return INT16.pack(key.type) + encode(fields, VERSION)


def decode_consumer_key(record_type: RecordType, data: bytes) -> ConsumerKey:
    """Of a key whose type is one of `CONSUMER_TYPES`. Raises DecodeError."""
    if record_type in _NAMED:
        named = decode_versioned(_NamedKey, VERSION, data)
        return ConsumerKey(record_type, named.group, named.name)
    return ConsumerKey(record_type, decode_versioned(_GroupKey, VERSION, data).group)


def encode_consumer_value(value: Value) -> bytes:
    return INT16.pack(VERSION) + encode(value, VERSION)


def decode_consumer_value(record_type: RecordType, data: bytes) -> Value:
    """Raises DecodeError, for a version that is not known too (KAFKA-18672)."""
    cls = _VALUES.get(record_type)
    if cls is None:
        raise DecodeError(f"the type {record_type} is none of consumer groups")
    return decode_versioned(cls, value_version(data), data)


def target_of(entries: Iterable[TopicPartitions]) -> Target:
    return {each.topic_id: frozenset(each.partitions) for each in entries}


def target_entries(target: Target) -> tuple[TopicPartitions, ...]:
    """In the order of topic ids and partitions, so that equal assignments are equal bytes."""
    return tuple(
        TopicPartitions(topic_id=topic_id, partitions=tuple(sorted(target[topic_id])))
        for topic_id in sorted(target)
    )


def assigned_of(entries: Iterable[AssignedTopicPartitions], default_epoch: int) -> Assigned:
    """`default_epoch` stands for the epochs that records of brokers before Kafka 4.3 lack."""
    found: dict[UUID, Mapping[int, int]] = {}
    for each in entries:
        epochs = each.assignment_epochs
        if epochs is not None and len(epochs) == len(each.partitions):
            found[each.topic_id] = dict(zip(each.partitions, epochs, strict=True))
        else:
            found[each.topic_id] = dict.fromkeys(each.partitions, max(default_epoch, 0))
    return found


def assigned_entries(assigned: Assigned) -> tuple[AssignedTopicPartitions, ...]:
    entries = []
    for topic_id in sorted(assigned):
        epochs = assigned[topic_id]
        partitions = tuple(sorted(epochs))
        entries.append(
            AssignedTopicPartitions(
                topic_id=topic_id,
                partitions=partitions,
                assignment_epochs=tuple([epochs[each] for each in partitions]),
            )
        )
    return tuple(entries)
