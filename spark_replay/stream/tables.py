"""A micro-batch into the tables `records`, `batches` and `damage`, exactly once.

The executors write each piece of it as Parquet files that carry the batch's number and are hidden. The driver then
gives them their names, and notes in `state.json` that the batch is whole. A batch that Spark repeats, because the
process was killed somewhere in between, begins by removing what the first attempt left; one that is noted already is
passed over.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from kquorum.spark_replay.arrow_types import arrow_schema
from kquorum.spark_replay.audit_manifest import shown_files
from kquorum.spark_replay.decode.rows import DamageRow
from kquorum.spark_replay.decode.sources import LogFile
from kquorum.spark_replay.decode.split_facts import FactsOfSplit, SplitFacts, gaps_between
from kquorum.spark_replay.staging import epoch_rows, staged
from kquorum.spark_replay.stream.reader import Piece, piece_from_json, read_piece
from kquorum.spark_replay.stream.state import StreamState, stream_folder, write_state
from kquorum.spark_replay.table_files import SCHEMAS, WRITTEN, Destination, TableFile, damage_rows
from kquorum.spark_replay.tables.building.registry import SCANNED
from kquorum.spark_replay.tables.damage import DAMAGE

STAGING: Final = "staging"
TAIL: Final = "part-tail.zstd.parquet"


def destination_of(out: Path) -> Destination:
    """The growing tables, and what the tables of the state are made from, which stays here."""
    folders = {kind: out / name for kind, name in SCANNED.items()}
    return Destination(folders=folders, staging=stream_folder(out) / STAGING)


class BatchWriter:
    """`write` is what `foreachBatch` calls, with a frame of pieces (`kraft_log_pieces`)."""

    def __init__(self, out: Path, state: StreamState) -> None:
        self.state = state
        self._out = out
        self._destination = destination_of(out)
        self._folders = self._destination.all_folders()
        for folder in self._folders:
            folder.mkdir(parents=True, exist_ok=True)

    def write(self, pieces: DataFrame, batch: int) -> None:
        """One Spark job. The state is changed, in memory and on disk, only when all is done."""
        if batch <= self.state.last_batch:
            return
        self.remove(batch)
        write = partial(write_piece, destination=self._destination, batch=batch)
        splits = pieces.rdd.map(lambda row: write(row.piece)).collect()
        gaps = list(gaps_between([*self.state.last_splits(), *splits]))
        self.write_gaps(batch, gaps)
        self.publish(batch)
        self.state.note(batch, sorted(splits, key=_in_order), len(gaps))
        write_state(self._out, self.state)

    def remove(self, batch: int) -> None:
        """What an attempt before has left of this batch."""
        for path in self._files(f"*{_prefix(batch)}*"):
            path.unlink()

    def write_gaps(self, batch: int, gaps: Iterable[tuple[LogFile, DamageRow]]) -> None:
        path = self._destination.folders["damage"] / f".{_prefix(batch)}gaps.zstd.parquet"
        with TableFile(path, DAMAGE) as table_file:
            for file, gap in gaps:
                table_file.add(damage_rows(file, [gap]))

    def publish(self, batch: int) -> None:
        for path in self._files(f".{_prefix(batch)}*.parquet"):
            path.rename(path.with_name(path.name.removeprefix(".")))

    def leave_no_table_empty(self) -> None:
        """A file without rows gives the columns to readers that have no schema."""
        for kind, folder in self._destination.folders.items():
            if next(shown_files(folder, is_deep=True), None) is None:
                empty = arrow_schema(SCHEMAS[kind]).empty_table()
                pq.write_table(empty, folder / "part-empty.zstd.parquet")

    def _files(self, pattern: str) -> Iterator[Path]:
        for folder in self._folders:
            yield from list(folder.rglob(pattern))


def _prefix(batch: int) -> str:
    return f"part-{batch:08d}-"


def _in_order(split: SplitFacts) -> tuple[str, int, int]:
    return (split.file.source, split.file.base_offset or 0, split.start)


def write_piece(text: str, destination: Destination, batch: int) -> SplitFacts:
    """On an executor: the rows of a piece into hidden files of the batch."""
    piece = piece_from_json(text)
    file = piece.split.file
    facts = FactsOfSplit(file, piece.rows_from)
    schemas = {kind: arrow_schema(WRITTEN[kind]) for kind in destination.folders}
    with ExitStack() as stack:
        name = f".{_prefix(batch)}{piece.number:05d}.zstd.parquet"
        files = destination.opened(stack, file.source, name)
        for kind, rows in read_piece(piece, schemas, show_secrets=False):
            files[kind].add(rows)
            facts.add(kind, rows)
            if kind == "record":
                # Which snapshot the state begins with may turn out later, so all records are kept for it.
                for staged_kind, kept in staged(rows, file.source, str(file.kind), 0):
                    files[staged_kind].add(kept)
        if gaps := facts.gaps():
            files["damage"].add(damage_rows(file, gaps))
        if facts.epochs:
            files["epochs"].add(epoch_rows(file.source, facts.epochs))
    return facts.finished({kind: files[kind].rows for kind in destination.folders})


def write_tail(out: Path, pieces: Iterable[Piece]) -> int:
    """Writes the bytes after the last sound batches as damage, in place of an earlier run's; returns the rows."""
    schemas = {"damage": arrow_schema(DAMAGE)}
    with TableFile(destination_of(out).folders["damage"] / TAIL, DAMAGE) as table_file:
        for piece in pieces:
            for _, rows in read_piece(piece, schemas, show_secrets=False):
                table_file.add(rows)
    return table_file.rows
