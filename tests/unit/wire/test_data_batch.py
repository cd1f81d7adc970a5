"""Batches of the logs of partitions: every field is written and read, in the formats of all versions of Kafka."""

import gzip

import lz4.frame
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kquorum.wire.compression import CompressionCodec, compress
from kquorum.wire.control_records import decode_control_record
from kquorum.wire.data_batch import (
    MAX_PLAIN_BYTES,
    Record,
    check_data_batch,
    data_headers,
    place_batch,
    read_data_header,
    read_data_records,
    write_data_batch,
    write_transaction_marker,
)
from kquorum.wire.errors import BufferUnderflow, CorruptBatch, DecodeError, TooMuchData
from kquorum.wire.transaction_markers import (
    TransactionMarker,
    decode_transaction_marker,
    encode_transaction_marker,
)
from tests.support.batches import batch_of, xerial
from tests.support.wire.legacy import legacy_message as message

BYTES = st.none() | st.binary(max_size=100)
HEADERS = st.lists(st.tuples(st.text(max_size=9), BYTES), max_size=4).map(tuple)


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    """Records with gaps between their offsets, timestamps in any order."""
    offset, records = draw(st.integers(0, 2**40)), []
    for _ in range(draw(st.integers(1, 12))):
        timestamp_ms = draw(st.integers(-1, 2**45))
        records.append(Record(offset, timestamp_ms, draw(BYTES), draw(BYTES), draw(HEADERS)))
        offset += draw(st.integers(1, 300))
    return records


@given(
    records=record_lists(),
    codec=st.sampled_from(CompressionCodec),
    before=st.integers(0, 1000),
    after=st.integers(0, 1000),
    epoch=st.integers(-1, 2**31 - 1),
    producer=st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1), st.integers(-1, 2**31 - 1)),
    transactional=st.booleans(),
    horizon=st.none() | st.integers(0, 2**45),
)
def test_what_is_written_is_read(
    records: list[Record],
    codec: CompressionCodec,
    before: int,
    after: int,
    epoch: int,
    producer: tuple[int, int, int],
    transactional: bool,
    horizon: int | None,
) -> None:
    """MemoryRecordsTest.testBaseTimestampToDeleteHorizonConversion, DefaultRecordBatchTest round trips."""
    batch = write_data_batch(
        records,
        codec=codec,
        base_offset=max(records[0].offset - before, 0),
        last_offset=records[-1].offset + after,
        leader_epoch=epoch,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        transactional=transactional,
        delete_horizon_ms=horizon,
    )
    header = check_data_batch(batch)
    assert read_data_records(batch, 0, header) == tuple(records)
    assert header.max_timestamp_ms == max(record.timestamp_ms for record in records)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == producer
    assert (header.is_transactional, header.delete_horizon_ms) == (transactional, horizon)
    assert (header.partition_leader_epoch, header.codec) == (epoch, codec)
    assert header.last_offset == records[-1].offset + after
    placed = bytearray(batch)
    place_batch(placed, 0, base_offset=77, leader_epoch=5)
    moved = check_data_batch(placed)
    assert (moved.base_offset, moved.partition_leader_epoch) == (77, 5)


def test_log_append_time_is_that_of_every_record() -> None:
    """MemoryRecordsBuilderTest.buildUsingLogAppendTime."""
    batch = write_data_batch([Record(0, 5, None, b""), Record(1, 9, None, b"")], log_append_time_ms=1000)
    header = check_data_batch(batch)
    assert header.is_log_append_time
    assert [record.timestamp_ms for record in read_data_records(batch, 0, header)] == [1000, 1000]


def test_an_empty_header_keeps_its_fields() -> None:
    """DefaultRecordBatchTest.testWriteEmptyHeader."""
    batch = write_data_batch(
        [],
        base_offset=10,
        last_offset=15,
        leader_epoch=4,
        producer_id=1,
        producer_epoch=2,
        base_sequence=3,
        transactional=True,
        control=True,
        max_timestamp_ms=99,
    )
    assert len(batch) == 61
    header = check_data_batch(batch)
    assert read_data_records(batch, 0, header) == ()
    assert (header.base_offset, header.last_offset, header.last_sequence) == (10, 15, 8)
    assert (header.base_timestamp_ms, header.max_timestamp_ms, header.record_count) == (-1, 99, 0)
    assert header.is_control
    with pytest.raises(ValueError, match="without records"):
        write_data_batch([], base_offset=10)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"transactional": True}, "needs a producer id"),
        ({"producer_id": 1}, "epoch -1"),
        ({"producer_id": 1, "producer_epoch": 0, "control": True}, "is transactional"),
    ],
)
def test_contradictory_producer_fields(fields: dict[str, int], text: str) -> None:
    """MemoryRecordsBuilderTest.testWriteTransactionalWithInvalidPID, testWriteIdempotentWithInvalidEpoch,
    testWriteEndTxnMarkerNonTransactionalBatch."""
    with pytest.raises(ValueError, match=text):
        write_data_batch([Record(0, 0, None, None)], **fields)  # type: ignore[arg-type]


def test_offsets_that_no_batch_can_hold() -> None:
    for last in (-1, 2**31):
        with pytest.raises(ValueError, match="cannot reach"):
            write_data_batch([], base_offset=0, last_offset=last, max_timestamp_ms=0)


@pytest.mark.parametrize(
    ("base", "delta", "last"), [(0, 0, 0), (2**31 - 1, 1, 0), (2**31 - 2, 9, 7), (-1, 5, -1)]
)
def test_increment_sequence(base: int, delta: int, last: int) -> None:
    """DefaultRecordBatchTest.testIncrementSequence."""
    batch = write_data_batch(
        [],
        base_offset=0,
        last_offset=delta,
        max_timestamp_ms=0,
        producer_id=1,
        producer_epoch=0,
        base_sequence=base,
    )
    assert read_data_header(batch).last_sequence == last


@pytest.mark.parametrize("is_commit", [True, False])
def test_end_transaction_marker(is_commit: bool) -> None:
    """MemoryRecordsTest.testBuildEndTxnMarker, EndTransactionMarkerTest.testEndTxnMarkerValueSize."""
    marker = TransactionMarker(is_commit, 7)
    batch = write_transaction_marker(
        marker, producer_id=9, producer_epoch=3, timestamp_ms=50, offset=12, leader_epoch=2
    )
    header = check_data_batch(batch)
    (record,) = read_data_records(batch, 0, header)
    assert (len(batch), header.base_offset, header.base_sequence) == (78, 12, -1)
    assert header.is_control
    assert header.is_transactional
    assert record.key == bytes((0, 0, 0, is_commit))
    assert record.value == bytes((0, 0, 0, 0, 0, 7))
    assert decode_transaction_marker(record.key, record.value) == marker


def test_markers_of_other_versions_and_types() -> None:
    """EndTransactionMarkerTest.testUnknownControlTypeNotAllowed, testIllegalVersion, testDeserializeNewerVersion."""
    key, value = encode_transaction_marker(TransactionMarker(False, 3))
    newer = b"\0\5" + value[2:] + b"more"
    assert decode_transaction_marker(key, newer) == TransactionMarker(False, 3)
    assert decode_transaction_marker(b"\0\3" + key[2:] + b"more", value) == TransactionMarker(False, 3)
    for bad_key, bad_value in (
        (b"\0\0\0\2", value),
        (b"\0\0\0\7", value),
        (b"\xff\xff\0\1", value),
        (key, b"\xff\xff" + value[2:]),
        (key, value[:5]),
        (key, None),
        (key[:3], value),
        (None, value),
    ):
        with pytest.raises(DecodeError):
            decode_transaction_marker(bad_key, bad_value)
    with pytest.raises(DecodeError, match="metadata log"):
        decode_control_record(key, value)


@given(data=st.binary(max_size=120), position=st.integers(0, 40))
def test_garbage_is_no_header(data: bytes, position: int) -> None:
    try:
        header = read_data_header(data, position)
    except (BufferUnderflow, CorruptBatch):
        return
    assert header.magic in (0, 1, 2)
    assert header.batch_length >= 14


def test_whole_batches_are_walked() -> None:
    batch = write_data_batch([Record(0, 0, None, b"v")])
    assert [at for at, _ in data_headers(batch * 3 + batch[:-1])] == [0, len(batch), 2 * len(batch)]
    assert [at for at, _ in data_headers(memoryview(batch * 2), len(batch))] == [len(batch)]
    with pytest.raises(CorruptBatch):
        list(data_headers(batch + bytes(61)))


def test_a_bomb_is_bounded() -> None:
    payload = compress(CompressionCodec.ZSTD, bytes(MAX_PLAIN_BYTES + 1))
    bomb = batch_of(payload, attributes=CompressionCodec.ZSTD)
    with pytest.raises(TooMuchData):
        read_data_records(bomb, 0, check_data_batch(bomb))


# Messages of magic 0 and 1


def read_all(data: bytes) -> list[Record]:
    records: list[Record] = []
    for at, header in data_headers(data):
        assert check_data_batch(data, at) == header
        records += read_data_records(data, at, header)
    return records


@pytest.mark.parametrize("magic", [0, 1])
def test_plain_messages(magic: int) -> None:
    data = message(5, None, b"v", magic=magic, timestamp_ms=77) + message(6, b"k", None, magic=magic)
    first, second = 77 if magic else -1, 0 if magic else -1
    assert read_all(data) == [Record(5, first, None, b"v"), Record(6, second, b"k", None)]
    header = read_data_header(data)
    assert (header.magic, header.last_offset, header.record_count) == (magic, 5, 1)
    assert (header.producer_id, header.partition_leader_epoch, header.has_producer_id) == (-1, -1, False)


def test_log_append_time_of_magic_1() -> None:
    inner = message(0, None, b"a", magic=1, timestamp_ms=5) + message(1, None, b"b", magic=1, timestamp_ms=6)
    data = message(41, None, gzip.compress(inner), magic=1, attributes=1 | 8, timestamp_ms=99)
    assert read_all(data) == [Record(40, 99, None, b"a"), Record(41, 99, None, b"b")]
    assert read_data_header(data).is_log_append_time


def packed(codec: CompressionCodec, data: bytes, magic: int) -> bytes:
    if codec == CompressionCodec.SNAPPY:
        return xerial(data)
    if codec == CompressionCodec.LZ4 and not magic:
        frame = lz4.frame.compress(data, block_linked=False, store_size=False)
        # Kafka's writers of magic 0 computed the checksum of the header from the frame's magic on.
        return bytes(frame[:6] + b"\x2a" + frame[7:])
    return compress(codec, data)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [CompressionCodec.GZIP, CompressionCodec.SNAPPY, CompressionCodec.LZ4])
def test_compressed_messages(magic: int, codec: CompressionCodec) -> None:
    """Inner offsets are absolute in magic 0 and relative in magic 1; compaction leaves gaps."""
    offsets = (100, 101, 104) if not magic else (0, 1, 4)
    inner = b"".join(message(offset, b"k", b"v", magic=magic, timestamp_ms=offset) for offset in offsets)
    data = message(104, None, packed(codec, inner, magic), magic=magic, attributes=codec, timestamp_ms=4)
    records = read_all(data)
    assert [record.offset for record in records] == [100, 101, 104]
    assert [record.timestamp_ms for record in records] == ([0, 1, 4] if magic else [-1] * 3)
    assert read_data_header(data).record_count == -1


def test_an_outer_offset_of_zero() -> None:
    """Certain versions of librdkafka produced it: the inner offsets count then."""
    inner = message(0, None, b"a", magic=1) + message(1, None, b"b", magic=1)
    data = message(0, None, gzip.compress(inner), magic=1, attributes=1)
    assert [record.offset for record in read_all(data)] == [0, 1]


@pytest.mark.parametrize(
    ("value", "attributes"),
    [
        pytest.param(None, 1, id="null"),
        pytest.param(gzip.compress(b""), 1, id="no message"),
        pytest.param(gzip.compress(message(9, None, b"", magic=1)), 1, id="above the outer offset"),
        pytest.param(
            gzip.compress(message(0, None, gzip.compress(b""), magic=1, attributes=1)),
            1,
            id="compressed twice",
        ),
        pytest.param(
            gzip.compress(message(0, None, b"", magic=1)[:-1] + b"\1"), 1, id="wrong inner checksum"
        ),
        pytest.param(b"garbage", 1, id="garbage"),
        pytest.param(compress(CompressionCodec.ZSTD, message(0, None, b"", magic=1)), 4, id="zstd"),
        pytest.param(b"", 5, id="unknown codec"),
    ],
)
def test_compressed_messages_that_are_damaged(value: bytes | None, attributes: int) -> None:
    data = message(3, None, value, magic=1, attributes=attributes)
    with pytest.raises(DecodeError):
        read_all(data)


def test_a_legacy_bomb_is_bounded() -> None:
    data = message(3, None, gzip.compress(bytes(5000)), magic=1, attributes=1)
    with pytest.raises(TooMuchData):
        read_data_records(data, 0, read_data_header(data), 4999)


@pytest.mark.parametrize("magic", [0, 1])
def test_cut_and_changed_messages(magic: int) -> None:
    data = message(3, b"key", b"value", magic=magic)
    for length in range(len(data)):
        assert list(data_headers(data[:length])) == []
        with pytest.raises(BufferUnderflow):
            check_data_batch(data[:length])
    for at in range(16, len(data)):
        changed = data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :]
        with pytest.raises(DecodeError):
            check_data_batch(changed)


@settings(max_examples=200)
@given(st.binary(min_size=20, max_size=60), st.sampled_from([0, 1]))
def test_garbage_in_a_legacy_message_never_crashes(garbage: bytes, magic: int) -> None:
    for attributes in range(6):
        data = message(3, None, garbage, magic=magic, attributes=attributes)
        header = read_data_header(data)
        if attributes:
            with pytest.raises(DecodeError):
                read_data_records(data, 0, header)
        else:
            assert read_data_records(data, 0, header)[0].value == garbage
