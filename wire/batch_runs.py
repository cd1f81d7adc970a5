"""Stretches of sound batches, found and taken apart by columns: for readers of whole logs.

A log is millions of small batches, nearly all of one shape. What `log_scan` and `read_records` find out about each in
turn is found out here about thousands at once; where anything is unusual the run ends, and they are to say what it is.
"""

import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from kquorum.wire.log_scan import ScannedBatch
from kquorum.wire.record_batch import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAX_BATCH_BYTES,
    MAX_BATCH_RECORDS,
    read_batch_header,
)

HEADER: Final = np.dtype(
    [
        ("base_offset", ">i8"),
        ("batch_length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp_ms", ">i8"),
        ("max_timestamp_ms", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("record_count", ">i4"),
    ]
)
CODEC_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
CONTROL: Final = 0x20

_RUN_BYTES: Final = 512 * 1024
_CRC_START: Final = 21
_LENGTH_AT: Final = 8
_SPARE_BYTES: Final = 16
_LARGEST_OFFSET: Final = 2**63 - 1
_unpack_length: Final = struct.Struct(">i").unpack_from
# Numbers of records are zigzag varints, doubled thus: of so many bytes below these.
_ONE_BYTE, _TWO_BYTES, _THREE_BYTES = 1 << 7, 1 << 14, 1 << 21
assert HEADER.itemsize == HEADER_BYTES

Numbers = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchRun:
    """Batches one behind the other, each whole, with a good checksum, and continuing the offsets of the one before.

    Shapes, for n batches: `begins` (n,), where each begins in `data`; `headers` (n,) of HEADER. `position` is that of
    the first in the file.
    """

    position: int
    data: bytes
    begins: Numbers
    headers: Numbers

    def __len__(self) -> int:
        return len(self.begins)

    @property
    def end(self) -> int:
        return self.position + len(self.data)

    @property
    def positions(self) -> Numbers:
        positions: Numbers = self.begins + self.position
        return positions

    @property
    def last_position(self) -> int:
        return self.position + int(self.begins[-1])

    @property
    def next_offset(self) -> int:
        last = self.headers[-1]
        return int(last["base_offset"]) + int(last["last_offset_delta"]) + 1

    @property
    def last_epoch(self) -> int:
        return int(self.headers[-1]["leader_epoch"])


def batch_of_run(run: BatchRun, place: int) -> ScannedBatch:
    """One batch of a run, as `log_scan` finds it."""
    begin = int(run.begins[place])
    header = read_batch_header(run.data, begin)
    data = memoryview(run.data)[begin : begin + header.size_in_bytes]
    return ScannedBatch(position=run.position + begin, header=header, data=data)


def one_by_one_if_compressed(run: BatchRun) -> tuple[BatchRun, ...]:
    """The run as it is, or in runs of one batch each: little of a compressed log may be more than memory holds."""
    if not (run.headers["attributes"] & CODEC_MASK).any():
        return (run,)
    return tuple(
        BatchRun(
            position=run.position,
            data=run.data,
            begins=run.begins[place : place + 1],
            headers=run.headers[place : place + 1],
        )
        for place in range(len(run))
    )


def read_run(
    view: memoryview, position: int, end: int, *, expected_offset: int | None, epoch: int
) -> BatchRun | None:
    """The batches from `position` on which begin before `end`, about half a MiB of them at most.

    None if the first of them is not sound, or does not continue what is before: from `expected_offset` on (None: from
    anywhere), in `epoch` or later.
    """
    begins = _begins(view, position, end)
    size = begins.pop()
    if not begins or (expected_offset is not None and expected_offset > _LARGEST_OFFSET):
        return None
    data = bytes(view[position : position + size])
    raw, places = np.frombuffer(data, np.uint8), np.array(begins)
    headers = raw[places[:, np.newaxis] + np.arange(HEADER_BYTES)].view(HEADER)[:, 0]
    is_sound = (headers["magic"] == MAGIC) & (headers["record_count"] >= 0)
    is_sound &= headers["record_count"] <= MAX_BATCH_RECORDS
    is_sound &= (headers["last_offset_delta"] >= 0) & _continues(headers, expected_offset, epoch)
    is_sound &= _checksums(data, [*begins, size]) == headers["crc"]
    if not is_sound.all():
        count = int(is_sound.argmin())
        if count == 0:
            return None
        data, places, headers = data[: begins[count]], places[:count], headers[:count]
    return BatchRun(position=position, data=data, begins=places, headers=headers)


def _begins(view: memoryview, position: int, end: int) -> list[int]:
    """Where whole batches begin, by their lengths, and where the last of them ends; relative to `position`."""
    begins, at, size = [0], position, len(view)
    last = min(end, position + _RUN_BYTES, size - HEADER_BYTES + 1)
    while at < last:
        (length,) = _unpack_length(view, at + _LENGTH_AT)
        at += LOG_OVERHEAD_BYTES + length
        if not HEADER_BYTES <= length + LOG_OVERHEAD_BYTES <= MAX_BATCH_BYTES or at > size:
            break
        begins.append(at - position)
    return begins


def _continues(headers: Numbers, expected_offset: int | None, epoch: int) -> NDArray[np.bool_]:
    base_offsets, epochs = headers["base_offset"].astype(np.int64), headers["leader_epoch"]
    expected = np.empty(len(headers), np.int64)
    expected[0] = base_offsets[0] if expected_offset is None else expected_offset
    expected[1:] = base_offsets[:-1] + headers["last_offset_delta"][:-1] + 1
    continues: NDArray[np.bool_] = (base_offsets == expected) & (base_offsets >= 0)
    continues[1:] &= epochs[1:] >= epochs[:-1]
    continues[0] &= epochs[0] >= epoch
    return continues


def _checksums(data: bytes, bounds: list[int]) -> Numbers:
    view = memoryview(data)
    return np.array(
        [crc32c(view[start + _CRC_START : stop]) for start, stop in pairwise(bounds)],
        np.uint32,
    )


def plain_values(run: BatchRun) -> tuple[NDArray[np.bool_], list[bytes]]:
    """Which batches are plain, and the values of the records of all of these, in their order.

    A plain batch is neither compressed nor of control records. Its records have no keys, no headers, the batch's
    timestamp, and the offsets from its base offset on.
    """
    counts = run.headers["record_count"].astype(np.intp)
    is_plain, begins, ends = _records(run, counts)
    rows = np.flatnonzero(is_plain)
    of_rows = np.repeat(rows, counts[rows])
    deltas = np.arange(len(of_rows)) - np.repeat(np.cumsum(counts[rows]) - counts[rows], counts[rows])
    is_row_plain, firsts = _plain(run.data, begins, ends, deltas)
    if not is_row_plain.all():
        # A batch with one unusual record is read otherwise as a whole.
        is_plain[of_rows[~is_row_plain]] = False
        kept = is_plain[of_rows]
        firsts, ends = firsts[kept], ends[kept]
    data, stops = run.data, (ends - 1).tolist()
    return is_plain, [data[first:stop] for first, stop in zip(firsts.tolist(), stops, strict=True)]


def _records(run: BatchRun, counts: Numbers) -> tuple[NDArray[np.bool_], Numbers, Numbers]:
    """Which batches may be plain, and where the records of these begin and end."""
    batch_ends = np.append(run.begins[1:], len(run.data))
    is_plain = (run.headers["attributes"] & (CODEC_MASK | CONTROL)) == 0
    is_plain &= (counts > 0) & (counts < _THREE_BYTES >> 1)
    of_many: list[int] = []
    ends_of_many: list[int] = []
    for place in np.flatnonzero(is_plain & (counts > 1)).tolist():
        bounds = _record_bounds(run.data, int(run.begins[place]), int(batch_ends[place]), int(counts[place]))
        if bounds:
            of_many += bounds[:-1]
            ends_of_many += bounds[1:]
        else:
            is_plain[place] = False
    is_single = is_plain & (counts == 1)
    is_of_single = np.repeat(is_single[is_plain], counts[is_plain])
    begins, ends = np.empty((2, len(is_of_single)), np.intp)
    begins[is_of_single], ends[is_of_single] = run.begins[is_single] + HEADER_BYTES, batch_ends[is_single]
    begins[~is_of_single], ends[~is_of_single] = of_many, ends_of_many
    return is_plain, begins, ends


def _record_bounds(data: bytes, begin: int, end: int, count: int) -> list[int]:
    """Where each record begins, and where the last ends, if their lengths fill the batch; else nothing."""
    at = begin + HEADER_BYTES
    bounds = [at]
    for _ in range(count):
        if at + 1 >= end:
            return []
        length = data[at]
        if length < _ONE_BYTE:
            at += 1 + (length >> 1)
        else:
            at += 2 + ((length + (data[at + 1] << 7) - _ONE_BYTE) >> 1)
        bounds.append(at)
    return bounds if at == end else []


def _plain(data: bytes, begins: Numbers, ends: Numbers, deltas: Numbers) -> tuple[NDArray[np.bool_], Numbers]:
    """Which records are: length, attributes, timestamp delta 0, the offset delta, no key, value, no headers; and where
    the value of each begins."""
    # What is behind the end of the data is zeros; who reads there finds something wrong.
    raw = np.frombuffer(data + bytes(_SPARE_BYTES), np.uint8).astype(np.int64)
    length, upper = raw[begins], raw[begins + 1]
    is_long = length >= _ONE_BYTE
    body = begins + 1 + is_long
    length = np.where(is_long, length + (upper << 7) - _ONE_BYTE, length)
    is_plain = (length & 1 == 0) & ((length >> 1) == ends - body) & ~(is_long & (upper >= _ONE_BYTE))
    at = body + 1
    is_plain &= raw[at] == 0
    offset = 2 * deltas
    for low, bits, high in ((0, 0, _ONE_BYTE), (_ONE_BYTE, 7, _TWO_BYTES), (_TWO_BYTES, 14, _THREE_BYTES)):
        has_byte = offset >= low
        at = at + has_byte
        is_plain &= ~has_byte | (raw[at] == (offset >> bits & 127) + 128 * (offset >= high))
    at = at + 1
    size, upper = raw[at + 1], raw[at + 2]
    is_long = size >= _ONE_BYTE
    is_plain &= (raw[at] == 1) & (size & 1 == 0) & ~(is_long & (upper >= _ONE_BYTE))
    size = np.where(is_long, size + (upper << 7) - _ONE_BYTE, size) >> 1
    firsts = at + 2 + is_long
    is_plain &= (firsts + size + 1 == ends) & (raw[np.maximum(ends - 1, 0)] == 0)
    return is_plain, firsts
