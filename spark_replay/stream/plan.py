"""What a micro-batch reads: the pieces of files between two places of each log."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark.sql.datasource import InputPartition

from kquorum.spark_replay.decode.sources import FileKind, LogFile
from kquorum.spark_replay.decode.splits import LogSplit, splits_of
from kquorum.spark_replay.stream.read_positions import (
    ReadPosition,
    ReadPositions,
    check_position,
    segments_of,
)


@dataclass
class Piece(InputPartition):  # type: ignore[misc]
    """The rows of a split at or behind byte `rows_from`; what is before it is read only to know what must follow."""

    number: int
    split: LogSplit
    rows_from: int


def pieces_between(
    start: ReadPositions, end: ReadPositions, files: Iterable[LogFile], split_bytes: int
) -> list[Piece]:
    """The same pieces for the same places, whatever was written meanwhile. Raises TruncatedLog.

    A segment that retention has removed has none: what is missing shows in the offsets of the batches.
    """
    listing = list(files)
    pieces: list[Piece] = []
    for source, place in sorted(end.items()):
        own = [file for file in listing if file.source == source]
        before = start.get(source, ReadPosition())
        for number, (split, rows_from) in enumerate(_of_source(before, place, own, split_bytes), len(pieces)):
            pieces.append(Piece(number, split, rows_from))
    return pieces


def _of_source(
    start: ReadPosition, end: ReadPosition, files: Sequence[LogFile], split_bytes: int
) -> Iterator[tuple[LogSplit, int]]:
    segments = segments_of(files)
    check_position(start, segments)
    check_position(end, segments)
    for segment in segments:
        if start.file <= segment.name <= end.file:
            size = end.position if segment.name == end.file else segment.size_in_bytes
            begun = start if segment.name == start.file else ReadPosition()
            if size > begun.position:
                yield from _of_segment(replace(segment, size_in_bytes=size), begun, split_bytes)
    for file in files:
        if file.kind is not FileKind.LOG and file.name in end.snapshots.keys() - start.snapshots.keys():
            whole = replace(file, size_in_bytes=min(end.snapshots[file.name], file.size_in_bytes))
            yield from ((split, split.start) for split in splits_of((whole,), split_bytes))


def _of_segment(file: LogFile, begun: ReadPosition, split_bytes: int) -> Iterator[tuple[LogSplit, int]]:
    if file.size_in_bytes - begun.anchor <= split_bytes:
        yield LogSplit(file, begun.anchor, file.size_in_bytes), begun.position
        return
    for split in splits_of((file,), split_bytes):
        if split.end > begun.position:
            is_first = split.start <= begun.position
            first = LogSplit(file, begun.anchor, split.end)
            yield (first, begun.position) if is_first else (split, split.start)


def tail_pieces(places: ReadPositions, files: Iterable[LogFile]) -> list[Piece]:
    """What lies behind the places: nothing sound. Damage, if the log is not being written any more."""
    pieces: list[Piece] = []
    for file in files:
        place = places.get(file.source, ReadPosition())
        if file.kind is FileKind.LOG and file.name >= place.file:
            begun = place if file.name == place.file else ReadPosition()
            if file.size_in_bytes > begun.position:
                split = LogSplit(file, begun.anchor, file.size_in_bytes)
                pieces.append(Piece(len(pieces), split, begun.position))
    return pieces
