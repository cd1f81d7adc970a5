"""Frames of metadata records: what is refused, what a tool is still told, and which versions can carry what."""

import dataclasses
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquorum.wire.errors import BufferUnderflow, DecodeError, UnsupportedVersion
from kquorum.wire.metadata_records.cluster import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from kquorum.wire.metadata_records.features import FeatureLevelRecord, NoOpRecord
from kquorum.wire.metadata_records.registry import ALL, BY_API_KEY
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, PartitionRecord, TopicRecord
from kquorum.wire.record_frame import decode_record, decode_record_lenient, encode_record
from kquorum.wire.schema import MetadataRecord

U = UUID(int=77)
TOPIC = TopicRecord(name="foo", topic_id=U)
# Types and their highest versions in Kafka 4.3 and its trunk; 6, 13 and 16 were given up before the first release.
KNOWN = {
    0: 4,
    1: 0,
    2: 0,
    3: 2,
    4: 0,
    5: 2,
    7: 0,
    8: 0,
    9: 0,
    10: 0,
    11: 0,
    12: 0,
    14: 0,
    15: 0,
    17: 3,
} | dict.fromkeys(range(18, 30), 0)


def test_the_registry_knows_every_type_of_kafka_4() -> None:
    assert {key: cls.versions for key, cls in BY_API_KEY.items()} == {
        key: (0, top) for key, top in KNOWN.items()
    }
    assert len(ALL) == len(BY_API_KEY)


@pytest.mark.parametrize(
    ("value", "error", "reason"),
    [
        ("00140000", UnsupportedVersion, "frame version 0"),
        ("02140000", UnsupportedVersion, "frame version 2"),
        ("01060000", UnsupportedVersion, "record type 6 is unknown"),
        ("011e0000", UnsupportedVersion, "record type 30 is unknown"),
        ("01140100", UnsupportedVersion, "NoOpRecord version 1 is unknown"),
        ("01808002", DecodeError, "32768 in the frame is larger than 32767"),
        ("01ffffffffff00", DecodeError, "longer than 5 bytes"),
        ("", BufferUnderflow, "1 bytes needed"),
        ("0114", BufferUnderflow, "1 bytes needed"),
        ("011400", BufferUnderflow, "cut short"),
        ("0114000000", DecodeError, "1 bytes are left"),
        ("01020002ff" + "00" * 17, DecodeError, "not UTF-8"),
        ("01020000" + "00" * 17, DecodeError, "name is null"),
    ],
)
def test_what_kafka_would_refuse_is_refused(value: str, error: type[DecodeError], reason: str) -> None:
    with pytest.raises(error, match=reason):
        decode_record(bytes.fromhex(value))
    lenient = decode_record_lenient(bytes.fromhex(value))
    assert lenient.record is None
    assert lenient.value == bytes.fromhex(value)
    assert reason in (lenient.problem or "")


def test_the_lenient_reader_names_type_and_version_of_what_it_cannot_read() -> None:
    unknown = decode_record_lenient(bytes.fromhex("01630700"))
    assert (unknown.api_key, unknown.version, unknown.record) == (99, 7, None)
    known = decode_record_lenient(encode_record(TOPIC))
    assert (known.api_key, known.version, known.record, known.problem) == (2, 0, TOPIC, None)


def test_numbers_in_the_frame_may_be_longer_than_they_need() -> None:
    assert decode_record(bytes.fromhex("8100 9400 8000 00")) == NoOpRecord()


def test_every_prefix_of_a_record_is_refused() -> None:
    value = encode_record(
        PartitionRecord(topic_id=U, replicas=(1, 2), directories=(U, U), last_known_elr=(3,))
    )
    for length in range(len(value)):
        with pytest.raises(DecodeError):
            decode_record(value[:length])


@given(st.binary(max_size=120) | st.binary(max_size=120).map(lambda rest: b"\x01\x00\x03" + rest))
def test_the_lenient_reader_never_raises(value: bytes) -> None:
    found = decode_record_lenient(value)
    assert (found.record is None) == (found.problem is not None)


@pytest.mark.parametrize(
    ("record", "version", "field"),
    [
        (PartitionRecord(topic_id=U, directories=(U,)), 0, "directories"),
        (PartitionRecord(topic_id=U, eligible_leader_replicas=()), 1, "eligible_leader_replicas"),
        (PartitionChangeRecord(topic_id=U, last_known_elr=()), 1, "last_known_elr"),
        (
            BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, in_controlled_shutdown=1),
            0,
            "in_controlled",
        ),
        (
            BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, cordoned_log_dirs=()),
            2,
            "cordoned_log_dirs",
        ),
        (RegisterBrokerRecord(broker_id=1, incarnation_id=U, broker_epoch=1, log_dirs=(U,)), 2, "log_dirs"),
    ],
)
def test_a_version_refuses_to_drop_a_field_that_is_set(
    record: MetadataRecord, version: int, field: str
) -> None:
    with pytest.raises(UnsupportedVersion, match=rf"version {version} has no field {field}"):
        encode_record(record, version)
    assert decode_record(encode_record(record, version + 1)) == record


@pytest.mark.parametrize("version", [-1, 1, 300])
def test_versions_that_do_not_exist_are_not_written(version: int) -> None:
    with pytest.raises(UnsupportedVersion, match="TopicRecord has versions 0 to 0"):
        encode_record(TOPIC, version)


def test_a_tag_of_a_later_version_is_refused() -> None:
    value = encode_record(PartitionRecord(topic_id=U, last_known_elr=(3,)), 2)
    with pytest.raises(DecodeError, match="tagged field 2 is not valid in version 1"):
        decode_record(value[:2] + b"\x01" + value[3:])


def test_unknown_tagged_fields_are_kept_and_written_back_in_order() -> None:
    audit = NoOpRecord(unknown_tagged_fields=((7000, b"who did it"),))
    assert encode_record(audit).hex() == "01140001d8360a" + b"who did it".hex()
    assert decode_record(encode_record(audit)) == audit
    change = PartitionChangeRecord(topic_id=U, directories=(U,), unknown_tagged_fields=((7, b"x"), (9, b"")))
    with pytest.raises(DecodeError, match="tagged field 7 is not valid in version 1"):
        decode_record(encode_record(change, 1))
    later = dataclasses.replace(change, unknown_tagged_fields=((9, b""), (300, b"y" * 200)))
    assert decode_record(encode_record(later, 1)) == later


def test_a_tag_that_is_known_and_unknown_at_once_is_our_mistake() -> None:
    with pytest.raises(ValueError, match="a tag occurs twice"):
        encode_record(PartitionChangeRecord(topic_id=U, isr=(1,), unknown_tagged_fields=((0, b"x"),)))


@pytest.mark.parametrize(
    "record",
    [
        FeatureLevelRecord(name="f", feature_level=40000),
        TopicRecord(name=None, topic_id=U),  # type: ignore[arg-type]
        TopicRecord(name="t", topic_id=None),  # type: ignore[arg-type]
        TopicRecord(name="t" * 40000, topic_id=U),
    ],
)
def test_values_that_do_not_fit_are_our_mistake(record: MetadataRecord) -> None:
    with pytest.raises(ValueError, match=r"cannot be encoded|longer than"):
        encode_record(record)


def test_records_are_frozen_and_compare_by_value() -> None:
    decoded = decode_record(encode_record(TOPIC))
    assert decoded == TOPIC
    assert hash(decoded) == hash(TOPIC)
    with pytest.raises(AttributeError):
        decoded.name = "bar"  # type: ignore[attr-defined]
