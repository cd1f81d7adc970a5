"""The streaming half of the data source `kraft_log`: a log as a node writes it.

    spark.readStream.format("kraft_log").option("rows", "records").load("/var/lib/kafka/metadata")

Spark's offsets are positions in the logs (`read_positions.ReadPosition`), so a micro-batch has the same rows however
often it is read. The stream begins with all that there is. Options are those of the data source.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StringType, StructField, StructType

from kquorum.spark_replay.arrow_types import arrow_schema
from kquorum.spark_replay.decode.sources import FileKind, LogFile, find_log_files
from kquorum.spark_replay.decode.splits import DEFAULT_SPLIT_BYTES, LogSplit, read_split, splits_of
from kquorum.spark_replay.stream.read_positions import (
    ReadPosition,
    ReadPositions,
    check_position,
    latest_positions,
    positions_from_json,
    positions_to_json,
    segments_of,
)

# What a micro-batch reads: the pieces of files between two places of each log.


@dataclass
class Piece(InputPartition):  # type: ignore[misc]
    """The rows of a split at or behind byte `rows_from`; what is before it is read only to know what must follow."""

    number: int
    split: LogSplit
    rows_from: int


def pieces_between(
    start: ReadPositions, end: ReadPositions, files: Iterable[LogFile], split_bytes: int
) -> list[Piece]:
    """The same pieces for the same positions, whatever was written since. Raises TruncatedLog. A segment that retention
    has removed has none: the gap shows in the offsets of the batches."""
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
    # Both are checked on every read, not only when the offset is made: Spark may read a batch of an old checkpoint,
    # whose bytes were cut since.
    check_position(start, segments)
    check_position(end, segments)
    for segment in segments:
        # Names are zero-padded base offsets, so they sort as the offsets do.
        if start.file <= segment.name <= end.file:
            # The last segment counts up to the end position only: it may have grown since, and the same micro-batch
            # must have the same rows.
            size = end.position if segment.name == end.file else segment.size_in_bytes
            begun = start if segment.name == start.file else ReadPosition()
            if size > begun.position:
                yield from _of_segment(replace(segment, size_in_bytes=size), begun, split_bytes)
    for file in files:
        if file.kind is not FileKind.LOG and file.name in end.snapshots.keys() - start.snapshots.keys():
            # As for segments: the size that the offset names, whatever is there now.
            whole = replace(file, size_in_bytes=min(end.snapshots[file.name], file.size_in_bytes))
            yield from ((split, split.start) for split in splits_of((whole,), split_bytes))


def _of_segment(file: LogFile, begun: ReadPosition, split_bytes: int) -> Iterator[tuple[LogSplit, int]]:
    if file.size_in_bytes - begun.anchor <= split_bytes:
        yield LogSplit(file, begun.anchor, file.size_in_bytes), begun.position
        return
    for split in splits_of((file,), split_bytes):
        # The piece that holds the position begins at the anchor, so that its reader knows which offset is due; rows
        # before the position are filtered out (`read_piece`).
        if split.end > begun.position:
            is_first = split.start <= begun.position
            first = LogSplit(file, begun.anchor, split.end)
            yield (first, begun.position) if is_first else (split, split.start)


def tail_pieces(places: ReadPositions, files: Iterable[LogFile]) -> list[Piece]:
    """The bytes after the positions: no sound batch. Damage, if the log is no longer being written."""
    pieces: list[Piece] = []
    for file in files:
        place = places.get(file.source, ReadPosition())
        if file.kind is FileKind.LOG and file.name >= place.file:
            begun = place if file.name == place.file else ReadPosition()
            if file.size_in_bytes > begun.position:
                split = LogSplit(file, begun.anchor, file.size_in_bytes)
                pieces.append(Piece(len(pieces), split, begun.position))
    return pieces


PIECES: Final = StructType([StructField("piece", StringType(), nullable=False)])


class _PlannedReader(DataSourceStreamReader):  # type: ignore[misc]
    """The driver's side: how far the logs reach, and what lies between two places."""

    def __init__(self, root: Path, split_bytes: int) -> None:
        self._root = root
        self._split_bytes = split_bytes
        self._places: dict[str, ReadPosition] = {}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return positions_to_json({})

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark 4.0's signature, which all have
        # Spark asks for this once per trigger. It reads on from the last answer, not from the start of the log.
        self._places = latest_positions(find_log_files(self._root), self._places)
        return positions_to_json(self._places)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Piece]:
        return pieces_between(
            positions_from_json(start),
            positions_from_json(end),
            find_log_files(self._root),
            self._split_bytes,
        )

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing is kept here for a batch."""


class KraftLogStreamReader(_PlannedReader):
    """Rows of the data source, decoded on the executors."""

    def __init__(
        self,
        schema: StructType,
        root: Path,
        row_kinds: frozenset[str],
        *,
        split_bytes: int,
        show_secrets: bool,
    ) -> None:
        super().__init__(root, split_bytes)
        self._schema = schema
        self._row_kinds = row_kinds
        self._show_secrets = show_secrets

    @classmethod
    def of_options(
        cls, schema: StructType, options: Mapping[str, str], row_kinds: frozenset[str]
    ) -> "KraftLogStreamReader":
        """Raises ValueError for options that make no stream."""
        if "path" not in options:
            raise ValueError("option path is missing: the folder to read as it grows")
        return cls(
            schema,
            Path(options["path"]),
            row_kinds,
            split_bytes=int(options.get("split_bytes", DEFAULT_SPLIT_BYTES)),
            show_secrets=options.get("show_secrets", "false").lower() == "true",
        )

    def read(self, partition: Piece) -> Iterator[pa.RecordBatch]:
        schemas = dict.fromkeys(self._row_kinds, arrow_schema(self._schema))
        for _, batch in read_piece(partition, schemas, show_secrets=self._show_secrets):
            yield batch


class PiecesReader(_PlannedReader):
    """One row for each piece. The executors read the piece themselves (`tables`)."""

    def read(self, partition: Piece) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict(
            {"piece": [piece_to_json(partition)]}, schema=pa.schema([pa.field("piece", pa.string(), False)])
        )


class KraftLogPieces(DataSource):  # type: ignore[misc]
    """`kraft_log_pieces`: what a micro-batch of `kraft_log` would read, not what is in it."""

    @classmethod
    def name(cls) -> str:
        return "kraft_log_pieces"

    def schema(self) -> StructType:
        return PIECES

    def streamReader(self, schema: StructType) -> PiecesReader:  # noqa: ARG002, N802 - Spark's signature
        return PiecesReader(
            Path(self.options["path"]), int(self.options.get("split_bytes", DEFAULT_SPLIT_BYTES))
        )


def read_piece(
    piece: Piece, schemas: dict[str, Any], *, show_secrets: bool
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """As `source.read_split`. Nothing of a file that is gone: the gap shows in the batches around it."""
    try:
        for kind, batch in read_split(piece.split, schemas, show_secrets=show_secrets):
            kept = batch
            if piece.rows_from > piece.split.start:
                kept = batch.filter(pc.greater_equal(batch["position"], piece.rows_from))
            if kept.num_rows:
                yield kind, kept
    except FileNotFoundError:
        return


def piece_to_json(piece: Piece) -> str:
    split = piece.split
    return json.dumps([piece.number, asdict(split.file), split.start, split.end, piece.rows_from])


def piece_from_json(text: str) -> Piece:
    number, file, start, end, rows_from = json.loads(text)
    return Piece(number, LogSplit(LogFile.from_json(file), start, end), rows_from)
