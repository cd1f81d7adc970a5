"""Decoders made for one shape of record: they read what the general decoder reads, or leave it to that."""

import struct
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kquorum.wire import record_frame
from kquorum.wire.codegen.compiler import compile_shape
from kquorum.wire.errors import DecodeError
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, PartitionRecord
from kquorum.wire.record_frame import decode_record, encode_record
from kquorum.wire.schema import MetadataRecord, codec_of, plan_of
from tests.support.metadata.record_versions import EVERY_VERSION
from tests.support.wire_values import entities

FRAME_BYTES = 3


def read_generally(cls: type[MetadataRecord], version: int, value: bytes) -> object:
    """The record, or None for bytes that are none."""
    try:
        record, end = codec_of(cls, version).decode(value, FRAME_BYTES)
    except (DecodeError, struct.error, IndexError, UnicodeDecodeError):
        return None
    return record if end == len(value) else None


@pytest.mark.parametrize(("cls", "version"), EVERY_VERSION)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_shape_reads_what_the_general_decoder_reads(
    cls: type[MetadataRecord], version: int, data: st.DataObject
) -> None:
    plan = plan_of(cls, version)
    value = encode_record(data.draw(entities(plan)), version)
    decode_shape = compile_shape(plan, value, FRAME_BYTES)
    if decode_shape is None:
        return
    assert decode_shape(value) == read_generally(cls, version, value)
    other = bytearray(value)
    for _ in range(data.draw(st.integers(1, 4))):
        other[data.draw(st.integers(FRAME_BYTES, len(value) - 1))] = data.draw(st.integers(0, 255))
    expected = read_generally(cls, version, bytes(other))
    try:
        record = decode_shape(bytes(other))
    except UnicodeDecodeError:
        assert expected is None
        return
    assert record is None or (record == expected and type(record) is cls)


@pytest.fixture
def nothing_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tests before have read in this process may have filled the table of sizes."""
    monkeypatch.setattr(record_frame, "_SHAPES", {})
    monkeypatch.setattr(record_frame, "_UNSHAPED_COUNTS", {})


@pytest.mark.usefixtures("nothing_learnt")
def test_what_recurs_is_read_by_a_shape_of_its_own() -> None:
    def record(number: int) -> PartitionRecord:
        topic_id, directory_id = UUID(int=number), UUID(int=7 + number)
        return PartitionRecord(
            partition_id=number,
            topic_id=topic_id,
            replicas=(1, 2, 3, 4, 5, 6, 7),
            isr=(1, 2),
            leader=number,
            directories=(directory_id,) * 7,
        )

    values = [encode_record(record(number), 1) for number in range(600)]
    assert [decode_record(value) for value in values] == [record(number) for number in range(600)]
    assert len(values[0]) in record_frame._SHAPES[values[0][:FRAME_BYTES]]


@pytest.mark.usefixtures("nothing_learnt")
def test_shapes_of_one_size_live_side_by_side() -> None:
    changes = [
        PartitionChangeRecord(partition_id=1, topic_id=UUID(int=2), isr=isr, replicas=replicas)
        for isr, replicas in (((1, 2, 3, 4, 5), (1,)), ((1,), (1, 2, 3, 4, 5)), ((1, 2, 3), (3, 2, 1)))
    ]
    values = [encode_record(change, 1) for change in changes]
    assert len({len(value) for value in values}) == 1
    for _ in range(400):
        assert [decode_record(value) for value in values] == changes


@pytest.mark.parametrize("kind", ["nested structs", "a long list", "an unknown tag"])
def test_no_shape_is_made_of(kind: str) -> None:
    record = PartitionRecord(partition_id=1, topic_id=UUID(int=2))
    if kind == "a long list":
        record = PartitionRecord(partition_id=1, topic_id=UUID(int=2), replicas=tuple(range(40)))
    if kind == "an unknown tag":
        record = PartitionRecord(partition_id=1, topic_id=UUID(int=2), unknown_tagged_fields=((9, b"x"),))
    value, plan = encode_record(record, 1), plan_of(PartitionRecord, 1)
    if kind == "nested structs":
        from kquorum.wire.metadata_records.cluster import BrokerEndpoint, RegisterBrokerRecord

        endpoint = BrokerEndpoint(name="a", host="b", port=1, security_protocol=0)
        broker = RegisterBrokerRecord(
            broker_id=1, incarnation_id=UUID(int=1), broker_epoch=1, end_points=(endpoint,), rack=None
        )
        value, plan = encode_record(broker, 1), plan_of(RegisterBrokerRecord, 1)
    assert compile_shape(plan, value, FRAME_BYTES) is None
    assert decode_record(value) == read_generally(plan.cls, 1, value)
