"""The records of `__consumer_offsets` are Kafka's, byte for byte."""

import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from kquorum.wire.consumer_group_records import (
    CONSUMER_TYPES,
    AssignedTopicPartitions,
    ClassicMemberMetadata,
    ClassicProtocolEntry,
    ConsumerKey,
    CurrentAssignmentValue,
    GroupEpochValue,
    MemberMetadataValue,
    RegularExpressionValue,
    TargetAssignmentValue,
    TargetEpochValue,
    Value,
    assigned_entries,
    assigned_of,
    decode_consumer_key,
    decode_consumer_value,
    encode_consumer_key,
    encode_consumer_value,
    target_entries,
)
from kquorum.wire.data_batch import data_headers, read_data_records
from kquorum.wire.errors import DecodeError
from kquorum.wire.offsets_records import (
    GroupKey,
    GroupMetadataValue,
    MemberMetadata,
    ModernKey,
    OffsetCommitValue,
    OffsetKey,
    RecordType,
    UnknownKey,
    decode_group_value,
    decode_key,
    decode_offset_value,
    encode_group_key,
    encode_group_value,
    encode_offset_key,
    encode_offset_value,
)
from kquorum.wire.record_parsing import Record

OFFSET = OffsetCommitValue(
    offset=7, leader_epoch=3, metadata="note", commit_timestamp=1_000, topic_id=UUID(int=9)
)
GROUP = GroupMetadataValue(
    protocol_type="consumer",
    generation=4,
    protocol="range",
    leader="a",
    current_state_timestamp=2_000,
    members=(
        MemberMetadata(
            member_id="a",
            group_instance_id="static",
            client_id="c",
            client_host="/127.0.0.1",
            rebalance_timeout=30,
            session_timeout=10,
            subscription=b"sub",
            assignment=b"as",
        ),
    ),
)


def test_keys_as_kafka_writes_them() -> None:
    key = OffsetKey("g", "orders", 5)
    encoded = b"\x00\x01\x00\x01g\x00\x06orders\x00\x00\x00\x05"
    assert encode_offset_key(key) == encoded
    assert decode_key(encoded) == key
    # The type of the oldest records; their fields are the same.
    assert decode_key(b"\x00\x00" + encoded[2:]) == key
    assert encode_group_key("g") == b"\x00\x02\x00\x01g"
    assert decode_key(b"\x00\x02\x00\x01g") == GroupKey("g")


def test_the_group_of_a_later_kind_of_group_is_read_and_types_of_later_releases_are_named() -> None:
    member = b"\x00\x05\x00\x01g\x00\x01m"
    assert decode_key(member) == ModernKey(RecordType.CONSUMER_GROUP_MEMBER_METADATA, "g")
    assert decode_key(b"\x00\x63what follows") == UnknownKey(99)


def test_a_committed_offset_is_version_4_with_the_topic_id_as_a_tag() -> None:
    encoded = encode_offset_value(OFFSET)
    tagged = b"\x01\x00\x10" + UUID(int=9).bytes
    assert encoded == b"\x00\x04" + struct.pack(">qi", 7, 3) + b"\x05note" + struct.pack(">q", 1_000) + tagged
    assert decode_offset_value(encoded) == OFFSET


def test_an_offset_that_expires_at_a_time_is_version_1() -> None:
    value = OffsetCommitValue(offset=7, metadata="", commit_timestamp=1_000, expire_timestamp=5_000)
    encoded = encode_offset_value(value)
    assert encoded == b"\x00\x01" + struct.pack(">qhqq", 7, 0, 1_000, 5_000)
    assert decode_offset_value(encoded) == value


@pytest.mark.parametrize("version", range(5))
def test_all_versions_of_values_are_read(version: int) -> None:
    offset = decode_offset_value(encode_offset_value(OFFSET, version))
    assert (offset.offset, offset.metadata, offset.commit_timestamp) == (7, "note", 1_000)
    assert offset.leader_epoch == (3 if version >= 3 else -1)
    group = decode_group_value(encode_group_value(GROUP, version))
    assert (group.protocol_type, group.generation, group.protocol, group.leader) == (
        "consumer",
        4,
        "range",
        "a",
    )
    assert group.current_state_timestamp == (2_000 if version >= 2 else -1)
    [member] = group.members
    assert member.group_instance_id == ("static" if version >= 3 else None)
    assert member.rebalance_timeout == (30 if version >= 1 else -1)


def test_a_group_is_written_in_version_3() -> None:
    assert encode_group_value(GROUP)[:2] == b"\x00\x03"
    assert decode_group_value(encode_group_value(GROUP)) == GROUP


@pytest.mark.parametrize(
    "damaged",
    [b"", b"\x00", b"\x00\x09", encode_offset_value(OFFSET)[:-1], encode_offset_value(OFFSET) + b"\0"],
)
def test_a_value_that_cannot_be_read_is_an_error(damaged: bytes) -> None:
    """One of an unknown version too: skipped, it would lose what it says."""
    with pytest.raises(DecodeError):
        decode_offset_value(damaged)


def real_records(real_data: Path) -> Iterator[Record]:
    for path in sorted(real_data.glob("*/__consumer_offsets-*/*.log")):
        data = path.read_bytes()
        for position, header in data_headers(data):
            if not header.is_control:
                yield from read_data_records(data, position, header)


def test_records_of_real_clusters_encode_to_the_same_bytes(real_data: Path) -> None:
    counted: Counter[tuple[str, int]] = Counter()
    for record in real_records(real_data):
        assert record.key is not None
        key = decode_key(record.key)
        if isinstance(key, OffsetKey):
            assert encode_offset_key(key) == record.key
        elif isinstance(key, GroupKey):
            assert encode_group_key(key.group_id) == record.key
        if record.value is None:
            counted["tombstone", 0] += 1
        elif isinstance(key, OffsetKey):
            version = record.value[1]
            counted["offset", version] += 1
            assert encode_offset_value(decode_offset_value(record.value), version) == record.value
        elif isinstance(key, GroupKey):
            version = record.value[1]
            counted["group", version] += 1
            assert encode_group_value(decode_group_value(record.value), version) == record.value
        else:
            assert isinstance(key, ModernKey)
    assert counted["offset", 3] > 1_000
    assert counted["offset", 4] > 10
    assert counted["group", 3] > 100
    assert counted["tombstone", 0] > 10


def test_records_of_consumer_groups_encode_to_the_same_bytes(real_data: Path) -> None:
    counted: Counter[RecordType] = Counter()
    for record in real_records(real_data):
        assert record.key is not None
        key = decode_key(record.key)
        if not isinstance(key, ModernKey) or key.type not in CONSUMER_TYPES:
            continue
        assert encode_consumer_key(decode_consumer_key(key.type, record.key)) == record.key
        if record.value is not None:
            counted[key.type] += 1
            assert encode_consumer_value(decode_consumer_value(key.type, record.value)) == record.value
    assert set(counted) >= {
        RecordType.CONSUMER_GROUP_METADATA,
        RecordType.CONSUMER_GROUP_MEMBER_METADATA,
        RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
        RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
        RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    }


# A member's metadata as Kafka 4.3.1 wrote it: that it does not speak the classic protocol is a tag with a zero.
KAFKAS_MEMBER = "000000000872646b61666b610b2f3132372e302e302e310307636f6465637303747801000493e00001000100"


def test_a_member_of_kafkas_reads_and_encodes_to_the_same_bytes() -> None:
    data = bytes.fromhex(KAFKAS_MEMBER)
    found = decode_consumer_value(RecordType.CONSUMER_GROUP_MEMBER_METADATA, data)
    assert isinstance(found, MemberMetadataValue)
    assert found.classic_member_metadata is None
    assert found.subscribed_topic_names == ("codecs", "tx")
    assert encode_consumer_value(found) == data


CLASSIC = ClassicMemberMetadata(
    session_timeout_ms=10, supported_protocols=(ClassicProtocolEntry(name="range", metadata=b"\0\1"),)
)
CONSUMER_RECORDS: list[tuple[ConsumerKey, Value]] = [
    (
        ConsumerKey(RecordType.CONSUMER_GROUP_METADATA, "g"),
        GroupEpochValue(epoch=3, metadata_hash=-5),
    ),
    (
        ConsumerKey(RecordType.CONSUMER_GROUP_MEMBER_METADATA, "g", "m"),
        MemberMetadataValue(client_id="c", classic_member_metadata=CLASSIC),
    ),
    (
        ConsumerKey(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, "g"),
        TargetEpochValue(assignment_epoch=2, assignment_timestamp=7),
    ),
    (
        ConsumerKey(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, "g", "m"),
        TargetAssignmentValue(topic_partitions=target_entries({UUID(int=4): frozenset({2, 1})})),
    ),
    (
        ConsumerKey(RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, "g", "m"),
        CurrentAssignmentValue(member_epoch=2, assigned_partitions=assigned_entries({UUID(int=4): {1: 2}})),
    ),
    (
        ConsumerKey(RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION, "g", "a.*"),
        RegularExpressionValue(topics=("ab",), version=9, timestamp=11),
    ),
]


@pytest.mark.parametrize(("key", "value"), CONSUMER_RECORDS, ids=lambda each: type(each).__name__)
def test_records_of_consumer_groups_read_as_they_were_written(key: ConsumerKey, value: Value) -> None:
    assert decode_key(encode_consumer_key(key)) == ModernKey(key.type, "g")
    assert decode_consumer_key(key.type, encode_consumer_key(key)) == key
    assert decode_consumer_value(key.type, encode_consumer_value(value)) == value


def test_epochs_that_earlier_brokers_did_not_write_are_those_of_the_member() -> None:
    entries = (AssignedTopicPartitions(topic_id=UUID(int=1), partitions=(3, 4)),)
    assert assigned_of(entries, 5) == {UUID(int=1): {3: 5, 4: 5}}
    # A static member that left for a while has the epoch -2.
    assert assigned_of(entries, -2) == {UUID(int=1): {3: 0, 4: 0}}


@pytest.mark.parametrize("damaged", [b"", b"\0", b"\0\1\0", b"\0\0"])
def test_a_value_of_a_consumer_group_that_cannot_be_read_is_an_error(damaged: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_consumer_value(RecordType.CONSUMER_GROUP_METADATA, damaged)
