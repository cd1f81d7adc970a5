"""Every record type at every version, control records and whole batches: what is written is read, nothing is lost."""

import dataclasses
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kquorum.wire.compression import CompressionCodec
from kquorum.wire.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    decode_control_record,
    encode_control_record,
)
from kquorum.wire.errors import DecodeError
from kquorum.wire.metadata_records.registry import ALL
from kquorum.wire.record_batch import check_batch, read_records, write_batch
from kquorum.wire.record_frame import decode_record, decode_record_lenient, encode_record
from kquorum.wire.schema import MetadataRecord, plan_of
from tests.support.metadata.record_versions import EVERY_VERSION
from tests.support.wire_values import entities, fullest, least

EVERY_CONTROL_RECORD = [
    pytest.param(cls, version, id=f"{cls.__name__}-v{version}")
    for cls, version in (
        (LeaderChangeMessage, 0),
        (LeaderChangeMessage, 1),
        (SnapshotHeaderRecord, 0),
        (SnapshotFooterRecord, 0),
        (KRaftVersionRecord, 0),
        (VotersRecord, 0),
    )
]
thorough = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def records_with_versions() -> st.SearchStrategy[tuple[MetadataRecord, int]]:
    pairs = [(cls, version) for cls in ALL for version in range(cls.versions[0], cls.versions[1] + 1)]
    return st.sampled_from(pairs).flatmap(
        lambda pair: st.tuples(entities(plan_of(pair[0], pair[1])), st.just(pair[1]))
    )


@pytest.mark.parametrize(("cls", "version"), EVERY_VERSION)
@thorough
@given(data=st.data())
def test_every_record_at_every_version(cls: type[MetadataRecord], version: int, data: st.DataObject) -> None:
    record = data.draw(entities(plan_of(cls, version)))
    value = encode_record(record, version)
    assert decode_record(value) == record
    assert type(decode_record(value)) is cls
    assert encode_record(decode_record(value), version) == value
    lenient = decode_record_lenient(value)
    assert (lenient.api_key, lenient.version, lenient.record) == (cls.api_key, version, record)


@pytest.mark.parametrize(("cls", "version"), EVERY_VERSION)
def test_the_least_and_the_fullest_record(cls: type[MetadataRecord], version: int) -> None:
    for make in (least, fullest):
        record = make(plan_of(cls, version))
        assert decode_record(encode_record(record, version)) == record


@pytest.mark.parametrize(("cls", "version"), EVERY_VERSION)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_mutilated_records_are_refused_or_read_but_never_crash(
    cls: type[MetadataRecord], version: int, data: st.DataObject
) -> None:
    value = bytearray(encode_record(fullest(plan_of(cls, version)), version))
    for _ in range(data.draw(st.integers(1, 3))):
        value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    try:
        record = decode_record(bytes(value))
    except DecodeError:
        return
    # What can be read can be written: perhaps shorter, as lengths have more than one spelling, but the same.
    read_version = decode_record_lenient(bytes(value)).version
    again = encode_record(record, read_version)
    assert encode_record(decode_record(again), read_version) == again


@pytest.mark.parametrize(("cls", "version"), EVERY_CONTROL_RECORD)
@thorough
@given(data=st.data())
def test_every_control_record(cls: Any, version: int, data: st.DataObject) -> None:
    record = dataclasses.replace(data.draw(entities(plan_of(cls, version))), version=version)
    key, value = encode_control_record(record)
    assert decode_control_record(key, value) == record
    assert encode_control_record(decode_control_record(key, value)) == (key, value)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    records=st.lists(records_with_versions(), min_size=1, max_size=8),
    base_offset=st.integers(0, 2**50),
    timestamp_ms=st.integers(0, 2**45),
    codec=st.sampled_from([CompressionCodec.NONE, CompressionCodec.LZ4]),
)
def test_batches_of_any_records(
    records: list[tuple[MetadataRecord, int]], base_offset: int, timestamp_ms: int, codec: CompressionCodec
) -> None:
    batch = write_batch(
        base_offset=base_offset,
        leader_epoch=3,
        timestamp_ms=timestamp_ms,
        records=[(None, encode_record(record, version)) for record, version in records],
        codec=codec,
    )
    found = read_records(batch, 0, check_batch(batch))
    assert [decode_record(record.value or b"") for record in found] == [record for record, _ in records]
    assert {record.timestamp_ms for record in found} == {timestamp_ms}
