"""Runs of batches are what is found batch by batch, and their plain values what is read record by record."""

from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kquorum.spark_replay.decode.records import Origin, scan
from kquorum.spark_replay.decode.rows import DamageRow
from kquorum.spark_replay.decode.sources import FileKind
from kquorum.spark_replay.decode.splits import scan_runs
from kquorum.wire.batch_runs import BatchRun, batch_of_run, plain_values
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_scan import ScannedBatch
from kquorum.wire.record_batch import LOG_OVERHEAD_BYTES, read_records, write_batch
from tests.support.batches import with_valid_crc

ORIGIN = Origin(file=f"{0:020d}.log", kind=FileKind.LOG, segment_base_offset=0)
VALUES = st.binary(max_size=80) | st.sampled_from([b"\x01\x14\x00\x00", b"v" * 57, b"v" * 58, b"v" * 9000])
KEYS = st.sampled_from([None, None, None, None, None, b"k"])


@st.composite
def batches(draw: st.DrawFn, offset: int, epoch: int) -> tuple[bytes, int]:
    """A batch, and how many records it has."""
    count = draw(st.sampled_from([1, 1, 1, 2, 5, 70]))
    records = [(draw(KEYS), draw(VALUES)) for _ in range(min(count, 5))]
    records += records[-1:] * (count - len(records))
    made = write_batch(
        base_offset=offset,
        leader_epoch=epoch,
        timestamp_ms=draw(st.integers(0, 1 << 41)),
        records=records,
        control=draw(st.sampled_from([False] * 5 + [True])),
        codec=draw(st.sampled_from([CompressionCodec.NONE] * 5 + [CompressionCodec.LZ4])),
    )
    batch = bytearray(made)
    if draw(st.integers(0, 5)) == 0:
        batch[22] |= 0x08  # the time is that of the append: the batch's greatest
    if draw(st.integers(0, 5)) == 0:
        batch[draw(st.integers(61, len(batch) - 1))] = draw(st.integers(0, 255))
    return with_valid_crc(bytes(batch)), count


@st.composite
def logs(draw: st.DrawFn) -> tuple[bytes, list[int]]:
    """The bytes of a log, sound or damaged, and where its batches were written."""
    data, offset, epoch = bytearray(), 0, 1
    positions = [0]
    for _ in range(draw(st.integers(0, 12))):
        batch, count = draw(batches(offset, epoch))
        data += batch
        positions.append(len(data))
        offset += count + (draw(st.integers(0, 30)) == 0)
        epoch += draw(st.sampled_from([0, 0, 0, 1, -1]))
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        if data:
            data[draw(st.integers(0, len(data) - 1))] ^= 1 << draw(st.integers(0, 7))
    if draw(st.integers(0, 3)) == 0:
        del data[draw(st.integers(0, len(data))) :]
    return bytes(data), [position for position in positions if position <= len(data)]


def singly(items: Iterator[BatchRun | ScannedBatch | DamageRow]) -> Iterator[ScannedBatch | DamageRow]:
    for item in items:
        if isinstance(item, BatchRun):
            yield from (batch_of_run(item, place) for place in range(len(item)))
        else:
            yield item


@given(logs(), st.data())
@settings(deadline=None)
def test_a_scan_in_runs_finds_what_a_scan_finds(log: tuple[bytes, list[int]], data: st.DataObject) -> None:
    raw, positions = log
    start, end = sorted((data.draw(st.sampled_from(positions)), data.draw(st.sampled_from(positions))))
    if data.draw(st.booleans()):
        end = len(raw)
    view = memoryview(raw)
    assert list(singly(scan_runs(view, ORIGIN, start, end))) == list(scan(view, ORIGIN, start, end))


@given(logs())
@settings(deadline=None)
def test_plain_values_are_those_of_the_records(log: tuple[bytes, list[int]]) -> None:
    view = memoryview(log[0])
    for run in scan_runs(view, ORIGIN, 0, len(view)):
        if isinstance(run, BatchRun):
            check_values(run)


def check_values(run: BatchRun) -> None:
    is_plain, found = plain_values(run)
    values = iter(found)
    for place in range(len(run)):
        batch = batch_of_run(run, place)
        assert batch.header.size_in_bytes == LOG_OVERHEAD_BYTES + int(run.headers[place]["batch_length"])
        if is_plain[place]:
            header: Any = batch.header
            records = read_records(batch.data, 0, header)
            is_fixed = header.attributes & 0x08
            timestamp_ms = header.max_timestamp_ms if is_fixed else header.base_timestamp_ms
            for number, record in enumerate(records):
                expected = (header.base_offset + number, timestamp_ms, None, next(values), ())
                found_one = (record.offset, record.timestamp_ms, record.key, record.value, record.headers)
                assert found_one == expected
        elif not header_is_special(batch):
            assert is_unusual(batch), "all that can be plain is"
    assert next(values, None) is None


def header_is_special(batch: ScannedBatch) -> bool:
    return bool(batch.header.attributes & 0x27)


def is_unusual(batch: ScannedBatch) -> bool:
    """Whether a record cannot be read, or may be longer or other than a plain one."""
    header = batch.header
    if header.attributes & 0x08:
        return True  # the time that each record has besides is not told
    try:
        records = read_records(batch.data, 0, header)
    except DecodeError:
        return True
    return not records or any(
        record.key is not None
        or record.value is None
        or len(record.value) > 8000
        or record.headers
        or record.timestamp_ms != header.base_timestamp_ms
        or record.offset != header.base_offset + number
        for number, record in enumerate(records)
    )
