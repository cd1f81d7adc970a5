"""The many small files of a stream's micro-batches, made into few: a day of looks every ten seconds leaves 8,640.

The merged file is written whole and hidden. Then `merge.json` says which files it stands for. The process that finds
this note, after a kill as well, removes those files and shows the merged one. So the stream itself has no row twice and
loses none; another reader may not find files that it has just listed, and has to read again.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyspark.sql.types import StructType

from kquorum.private_files import replacing
from kquorum.regular_files import read_regular
from kquorum.spark_replay.audit_manifest import shown_files
from kquorum.spark_replay.staging import STAGED
from kquorum.spark_replay.stream.state import stream_folder
from kquorum.spark_replay.stream.tables import TAIL, destination_of
from kquorum.spark_replay.table_files import WRITTEN, TableFile

MANY_FILES: Final = 200
SMALL_BYTES: Final = 32 * 1024 * 1024
_NOTE: Final = "merge.json"
_MERGED: Final = "merged-"


def merge_small_files(out: Path) -> int:
    """Merge where there are many; returns how many files were removed. No process may use the tables meanwhile."""
    finish_merge(out)
    removed = 0
    for folder, schema in _folders(out):
        small = sorted(path for path in shown_files(folder) if _is_small(path))
        if len(small) >= MANY_FILES:
            hidden = _merged(folder, small, schema)
            note = {"hidden": str(hidden.relative_to(out)), "old": [path.name for path in small]}
            _write_note(out, json.dumps(note))
            finish_merge(out)
            removed += len(small)
    return removed


def finish_merge(out: Path) -> None:
    """Complete what a killed process had begun and noted, and forget what it had not."""
    note = stream_folder(out) / _NOTE
    if note.exists():
        content = json.loads(read_regular(note))
        hidden = out / content["hidden"]
        for name in content["old"]:
            hidden.with_name(name).unlink(missing_ok=True)
        if hidden.exists():
            hidden.rename(hidden.with_name(hidden.name.removeprefix(".")))
        note.unlink()
    for folder, _ in _folders(out):
        for path in folder.glob(f".*{_MERGED}*"):
            path.unlink()


def _merged(folder: Path, small: Sequence[Path], schema: StructType) -> Path:
    number = next(each for each in count() if not (folder / _merged_name(each)).exists())
    hidden = folder / f".{_merged_name(number)}"
    with TableFile(hidden, schema) as table_file:
        for path in small:
            for batch in pq.ParquetFile(path).iter_batches():
                table_file.add(batch)
    return hidden


def _merged_name(number: int) -> str:
    return f"{_MERGED}{number:08d}.zstd.parquet"


def _is_small(path: Path) -> bool:
    return path.name != TAIL and path.stat().st_size < SMALL_BYTES


def _folders(out: Path) -> Iterator[tuple[Path, StructType]]:
    """Each folder that files lie in, of the tables and of what they are staged for."""
    destination = destination_of(out)
    assert destination.staging is not None
    roots = {destination.folders[kind]: schema for kind, schema in WRITTEN.items()}
    roots |= {destination.staging / name: schema for name, schema in STAGED.items()}
    for root, schema in roots.items():
        yield root, schema
        for path in sorted(root.iterdir() if root.is_dir() else ()):
            if path.is_dir():
                yield path, schema


def _write_note(out: Path, text: str) -> None:
    note = stream_folder(out) / _NOTE
    with replacing(note) as file:
        file.write(text.encode())
