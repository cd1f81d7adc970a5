"""Log files cut into pieces, and the rows of a piece as Arrow batches.

A large segment is cut at batch boundaries, so that all cores share it.

The offset index gives the boundaries for free. It is only a hint: Kafka rebuilds it at every start, preallocates it
with zeros and may leave it stale. Where it ends, or is of no use, the batches are counted off one by one, from length
to length. Each boundary must prove to be a sound batch which the next one continues: what is found in the pieces
together must not depend on where they begin.
"""

import itertools
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from kquorum.spark_replay.decode.columns import LogColumns
from kquorum.spark_replay.decode.files import is_regular, map_listed, read_listed
from kquorum.spark_replay.decode.records import (
    Origin,
    origin_of,
    possible_base_offsets,
    scan,
    snapshot_timestamp_ms,
)
from kquorum.spark_replay.decode.rows import DamageRow
from kquorum.spark_replay.decode.sources import FileKind, LogFile
from kquorum.wire.batch_runs import BatchRun, one_by_one_if_compressed, read_run
from kquorum.wire.batch_search import sound_header
from kquorum.wire.log_scan import ScannedBatch

DEFAULT_SPLIT_BYTES = 8 * 1024 * 1024

_INDEX_ENTRY = struct.Struct(">ii")
_OFFSET_AND_LENGTH = struct.Struct(">qi")
_SMALLEST_BATCH_LENGTH = 49
_ANY_OFFSET = range(2**63)


def split_ranges(
    buffer: memoryview, index: bytes, split_bytes: int, *, base_offsets: range = _ANY_OFFSET
) -> list[tuple[int, int]]:
    """[start, end) pairs which cover the buffer, each about `split_bytes` long and beginning at a batch.

    `base_offsets` are those that a batch of this file can have. Behind damage a reader accepts no other batch, so no
    piece may begin at one.
    """
    assert split_bytes > 0, split_bytes
    size = len(buffer)
    if size <= split_bytes:
        return [(0, size)]
    indexed = [position for position in _index_positions(index) if position < size]
    rest = _counted_positions(buffer, indexed[-1] if indexed else 0)
    starts = _spread(itertools.chain(indexed, rest), split_bytes, size)
    # One wrong entry makes the whole index suspect, so all boundaries are counted instead.
    if not all(_is_start(buffer, start, base_offsets) for start in starts[1:]):
        starts = _sound_starts(buffer, split_bytes, base_offsets)
    return list(itertools.pairwise([*starts, size]))


def _spread(boundaries: Iterable[int], split_bytes: int, size: int) -> list[int]:
    """The first boundary at or after each multiple of `split_bytes`, from 0."""
    starts = [0]
    for position in boundaries:
        if starts[-1] + split_bytes <= position < size:
            starts.append(position)
    return starts


def _sound_starts(buffer: memoryview, split_bytes: int, base_offsets: range) -> list[int]:
    starts = [0]
    for position in _counted_positions(buffer, 0):
        if starts[-1] + split_bytes <= position and _is_start(buffer, position, base_offsets):
            starts.append(position)
    return starts


def _index_positions(index: bytes) -> Iterator[int]:
    """Positions of an `.index` file, up to the zeros of its preallocated tail."""
    last = 0
    whole = len(index) - len(index) % _INDEX_ENTRY.size
    for _, position in _INDEX_ENTRY.iter_unpack(index[:whole]):
        # Positions ascend in a sound index. The zeros that Kafka preallocates, or stale entries, do not.
        if position <= last:
            return
        last = position
        yield position


def _counted_positions(buffer: memoryview, position: int) -> Iterator[int]:
    size = len(buffer)
    while position + _OFFSET_AND_LENGTH.size <= size:
        yield position
        _, length = _OFFSET_AND_LENGTH.unpack_from(buffer, position)
        # A damaged length: where the next batch begins cannot be known from here, so the rest is one piece.
        if length < _SMALLEST_BATCH_LENGTH:
            return
        position += _OFFSET_AND_LENGTH.size + length


def _is_start(buffer: memoryview, position: int, base_offsets: range) -> bool:
    """Whether a sound batch begins there and is continued by the next batch, sound too. Otherwise the result for the
    next batch may depend on bytes before both, which a reader that starts here cannot know. A reader that starts at a
    negative offset or leader epoch reports it as damage, and so does the reader before it."""
    first = sound_header(buffer, position)
    if first is None or first.base_offset not in base_offsets or first.partition_leader_epoch < 0:
        return False
    end = position + first.size_in_bytes
    if end == len(buffer):
        return True
    second = sound_header(buffer, end)
    return second is not None and second.base_offset == first.last_offset + 1


# What `decode.scan` finds in a log file, but sound batches in runs.

_WORTH_A_RUN = 1000


def scan_runs(
    view: memoryview, origin: Origin, start: int, end: int
) -> Iterator[BatchRun | ScannedBatch | DamageRow]:
    """The batches which begin in [start, end), and what is damaged between them, as `scan` finds them.

    From damage on they come one by one, until so many without damage have come that runs are worth while again. `scan`
    begins with the last sound batch, which it finds once more.
    """
    expected_offset, epoch, position = None if start else origin.first_offset, -1, start
    last_position: int | None = None
    while True:
        while run := read_run(view, position, end, expected_offset=expected_offset, epoch=epoch):
            yield run
            expected_offset, epoch, position = run.next_offset, run.last_epoch, run.end
            last_position = run.last_position
        one_by_one = scan(view, origin, start if last_position is None else last_position, end)
        sound = 0
        for item in islice(one_by_one, 0 if last_position is None else 1, None):
            yield item
            sound = 0 if isinstance(item, DamageRow) else sound + 1
            if sound == _WORTH_A_RUN:
                break
        else:
            return
        assert isinstance(item, ScannedBatch)
        header, last_position = item.header, item.position
        expected_offset, epoch = header.last_offset + 1, header.partition_leader_epoch
        position = item.position + header.size_in_bytes


@dataclass(slots=True)
class LogSplit:
    """A piece of one file: the batches which begin in [start, end)."""

    file: LogFile
    start: int
    end: int


def splits_of(files: Iterable[LogFile], split_bytes: int) -> list[LogSplit]:
    """Pieces of about `split_bytes` of each file."""
    return [split for file in files for split in _splits(file, split_bytes)]


def _splits(file: LogFile, split_bytes: int) -> list[LogSplit]:
    if file.size_in_bytes <= split_bytes:
        return [LogSplit(file, 0, file.size_in_bytes)]
    index = Path(file.path).with_suffix(".index")
    index_bytes = read_listed(index) if file.kind is FileKind.LOG and is_regular(index) else b""
    view, offsets = map_listed(file.path)[: file.size_in_bytes], possible_base_offsets(origin_of(file))
    ranges = split_ranges(view, index_bytes, split_bytes, base_offsets=offsets)
    return [LogSplit(file, start, end) for start, end in ranges]


def read_split(
    split: LogSplit, schemas: Mapping[str, Any], *, show_secrets: bool
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of a split, of the kinds that `schemas` has Arrow schemas for, each batch with its kind."""
    file = split.file
    origin, view = origin_of(file), map_listed(file.path)[: file.size_in_bytes]
    # A snapshot's timestamp stands in its header record, which only the first split reads.
    in_snapshot = file.kind is FileKind.SNAPSHOT and split.start > 0
    columns = LogColumns(
        schemas,
        origin,
        fixed={"source": file.source, "file_kind": str(file.kind)},
        show_secrets=show_secrets,
        snapshot_timestamp_ms=snapshot_timestamp_ms(view) if in_snapshot else None,
    )
    for item in scan_runs(view, origin, split.start, split.end):
        # A run of compressed batches can grow many times over, so each is decompressed and handed on by itself.
        for piece in one_by_one_if_compressed(item) if isinstance(item, BatchRun) else (item,):
            columns.add(piece)
            if columns.is_full:
                yield from columns.take()
    yield from columns.take()
