"""Batches: what is written, what is refused, and the general record format that KRaft itself never uses."""

import gzip

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquorum.wire.compression import CompressionCodec
from kquorum.wire.errors import BufferUnderflow, CorruptBatch, DecodeError
from kquorum.wire.record_batch import (
    MAX_BATCH_BYTES,
    check_batch,
    read_batch_header,
    read_records,
    write_batch,
)
from kquorum.wire.record_parsing import Record
from tests.support.batches import batch_of, rewrite_offsets, with_valid_crc, xerial

BATCH = write_batch(base_offset=5, leader_epoch=2, timestamp_ms=99, records=[(None, b"one"), (b"key", None)])
# length 6+2, no attributes, timestamp delta 3, offset delta 1, key "k", value "v", no headers
RECORD = bytes.fromhex("10000602 026b 0276 00")


def records_of(batch: bytes) -> tuple[Record, ...]:
    return read_records(batch, 0, check_batch(batch))


def test_fields_of_the_header() -> None:
    header = check_batch(BATCH)
    assert (header.base_offset, header.last_offset, header.next_offset) == (5, 6, 7)
    assert (header.partition_leader_epoch, header.record_count, header.magic) == (2, 2, 2)
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (99, 99)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert header.size_in_bytes == len(BATCH)
    assert header.codec is CompressionCodec.NONE
    with pytest.raises(AttributeError):
        header.base_offset = 3  # type: ignore[misc]


def test_records_come_back_with_absolute_offsets() -> None:
    assert records_of(BATCH) == (Record(5, 99, None, b"one"), Record(6, 99, b"key", None))


@given(
    records=st.lists(
        st.tuples(st.none() | st.binary(max_size=200), st.none() | st.binary(max_size=200)), min_size=1
    ),
    base_offset=st.integers(0, 2**62),
    leader_epoch=st.integers(0, 2**31 - 1),
    timestamp_ms=st.integers(0, 2**62),
    control=st.booleans(),
    codec=st.sampled_from([CompressionCodec.NONE, CompressionCodec.LZ4]),
)
def test_what_is_written_is_read(
    records: list[tuple[bytes | None, bytes | None]],
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
    control: bool,
    codec: CompressionCodec,
) -> None:
    batch = write_batch(
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        timestamp_ms=timestamp_ms,
        records=records,
        control=control,
        codec=codec,
    )
    header = check_batch(b"##" + batch, 2)
    assert (header.is_control, header.codec, header.partition_leader_epoch) == (control, codec, leader_epoch)
    found = read_records(memoryview(b"##" + batch), 2, header)
    assert [(record.key, record.value) for record in found] == records
    assert [record.offset for record in found] == list(range(base_offset, base_offset + len(records)))
    assert {record.timestamp_ms for record in found} == {timestamp_ms}


def test_many_and_large_records_use_long_varints() -> None:
    records = [(None, bytes([number % 256]) * (number % 70)) for number in range(300)] + [
        (b"k" * 70, b"v" * 9000)
    ]
    batch = write_batch(base_offset=0, leader_epoch=0, timestamp_ms=0, records=records)
    assert [(record.key, record.value) for record in records_of(batch)] == records


def test_offsets_and_epoch_change_without_the_checksum() -> None:
    moved = rewrite_offsets(BATCH, 1000, 77)
    header = check_batch(moved)
    assert (header.base_offset, header.partition_leader_epoch) == (1000, 77)
    assert header.crc == check_batch(BATCH).crc
    assert [record.offset for record in records_of(moved)] == [1000, 1001]


def test_an_empty_batch_is_not_written() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        write_batch(base_offset=0, leader_epoch=0, timestamp_ms=0, records=[])


def test_timestamps_and_offsets_are_relative_to_the_header() -> None:
    assert records_of(batch_of(RECORD, base_offset=40)) == (Record(41, 1003, b"k", b"v"),)


def test_log_append_time_is_the_batches_largest_timestamp() -> None:
    batch = batch_of(RECORD, attributes=0x08, max_timestamp_ms=5555)
    assert records_of(batch)[0].timestamp_ms == 5555


def test_record_headers_are_read() -> None:
    # length 15, null key, value "v", two headers: "a" with "x", "bb" with null
    record = bytes.fromhex("1e000000 01 0276 04 02610278 04626201")
    assert records_of(batch_of(record))[0].headers == (("a", b"x"), ("bb", None))


@pytest.mark.parametrize(
    ("codec", "payload"),
    [
        (CompressionCodec.GZIP, gzip.compress(RECORD, mtime=0)),
        (CompressionCodec.SNAPPY, xerial(RECORD)),
        (CompressionCodec.ZSTD, bytes(cramjam.zstd.compress(RECORD))),
    ],
    ids=["gzip", "snappy", "zstd"],  # gzip's bytes hold the time, and xdist's workers must agree on names
)
def test_compressed_batches_of_others_are_read(codec: CompressionCodec, payload: bytes) -> None:
    batch = batch_of(payload, attributes=codec)
    assert check_batch(batch).codec is codec
    assert records_of(batch) == (Record(1, 1003, b"k", b"v"),)


@pytest.mark.parametrize("length", range(len(BATCH)))
def test_every_prefix_of_a_batch_underflows(length: int) -> None:
    with pytest.raises(BufferUnderflow):
        check_batch(BATCH[:length])


@pytest.mark.parametrize("at", range(17, len(BATCH)))
def test_any_changed_byte_in_or_under_the_checksum_is_found(at: int) -> None:
    changed = bytearray(BATCH)
    changed[at] ^= 0x40
    with pytest.raises(CorruptBatch, match="CRC"):
        check_batch(changed)


@pytest.mark.parametrize("magic", [0, 1, 3, 255])
def test_other_magics_are_refused(magic: int) -> None:
    with pytest.raises(CorruptBatch, match="magic"):
        read_batch_header(BATCH[:16] + bytes([magic]) + BATCH[17:])


@pytest.mark.parametrize("length", [-1, 0, 48, MAX_BATCH_BYTES, 2**31 - 1])
def test_senseless_lengths_are_refused(length: int) -> None:
    with pytest.raises(CorruptBatch, match="length"):
        read_batch_header(BATCH[:8] + length.to_bytes(4, "big", signed=True) + BATCH[12:])


def test_negative_counts_are_refused() -> None:
    with pytest.raises(CorruptBatch, match="negative counts"):
        check_batch(batch_of(RECORD, record_count=-1))
    with pytest.raises(CorruptBatch, match="negative counts"):
        check_batch(batch_of(RECORD, last_offset_delta=-5))


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_codecs_that_do_not_exist_are_refused(codec: int) -> None:
    with pytest.raises(DecodeError, match=f"codec {codec} does not exist"):
        records_of(batch_of(RECORD, attributes=codec))


@pytest.mark.parametrize(
    ("payload", "count", "reason"),
    [
        (RECORD, 2, "2 records in 9 bytes"),
        (RECORD * 3, 2, "9 bytes are left after 2 records"),
        (RECORD, 0, "9 bytes are left after 0 records"),
        ("12000602026b027600", 1, "a record of 9 bytes"),
        ("0e000602026b027600", 1, "off its length"),
        ("08000602026b027600", 1, "a record of 4 bytes"),
        ("100006020a6b027600", 1, "5 bytes in a record"),
        ("10000602036b027600", 1, "length -2 is negative"),
        ("0e00000001027606", 1, "3 record headers in 0 bytes"),
        ("1400000001 0276 02 0878 00", 1, "a header's key of 4 bytes in 2 bytes"),
        ("1400000001 0276 02 02ff 01", 1, "not UTF-8"),
        ("ffffffffffffff", 1, "longer than 5 bytes"),
    ],
)
def test_malformed_records_are_refused_though_the_checksum_is_right(
    payload: bytes | str, count: int, reason: str
) -> None:
    raw = payload if isinstance(payload, bytes) else bytes.fromhex(payload)
    with pytest.raises(DecodeError, match=reason):
        records_of(batch_of(raw, record_count=count, last_offset_delta=0))


@given(at=st.integers(61, len(BATCH) - 1), byte=st.integers(0, 255))
def test_any_record_bytes_are_read_or_refused_but_never_crash(at: int, byte: int) -> None:
    changed = with_valid_crc(BATCH[:at] + bytes([byte]) + BATCH[at + 1 :])
    try:
        found = records_of(changed)
    except DecodeError:
        return
    assert len(found) == 2
