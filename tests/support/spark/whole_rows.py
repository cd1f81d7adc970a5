"""The rows of a log read as a whole in one process, for comparison."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kquorum.spark_replay.arrow_types import arrow_schema
from kquorum.spark_replay.decode.sources import find_log_files
from kquorum.spark_replay.decode.splits import read_split, splits_of
from kquorum.spark_replay.tables.batches import BATCHES
from kquorum.spark_replay.tables.damage import DAMAGE
from kquorum.spark_replay.tables.records import RECORDS

SCHEMAS = {
    "record": arrow_schema(RECORDS),
    "batch": arrow_schema(BATCHES),
    "damage": arrow_schema(DAMAGE),
}
Rows = dict[str, list[dict[str, Any]]]
_ORDER = ("file_kind", "file", "position", "offset", "base_offset", "kind")


def rows_of_whole(root: Path) -> Rows:
    """By kind, each in order."""
    splits = splits_of(find_log_files(root), 1 << 40)
    return rows_of(item for split in splits for item in read_split(split, SCHEMAS, show_secrets=False))


def rows_of(batches: Iterable[tuple[str, Any]]) -> Rows:
    found: Rows = {kind: [] for kind in SCHEMAS}
    for kind, batch in batches:
        found[kind] += batch.to_pylist()
    return {kind: sorted_rows(rows) for kind, rows in found.items()}


def sorted_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With their columns in one order too: a partitioned table has `source` last."""
    plain = [dict(sorted(row.items())) for row in rows]
    return sorted(plain, key=lambda row: [str(row.get(name, "")).rjust(20) for name in _ORDER])
