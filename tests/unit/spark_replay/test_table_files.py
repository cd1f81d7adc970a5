"""Parquet files of the tables, written without Spark: the same rows, under the same schema."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kquorum.spark_replay.decode.sources import find_log_files
from kquorum.spark_replay.decode.split_facts import SplitFacts
from kquorum.spark_replay.decode.splits import LogSplit, splits_of
from kquorum.spark_replay.table_files import (
    SCHEMAS,
    WRITTEN,
    Destination,
    SplitTask,
    TableFile,
    partition_of,
    write_split,
)
from tests.support.sample_logs import write_sample
from tests.support.spark.log_columns import in_columns


def splits(folder: Path, split_bytes: int = 1 << 30) -> list[LogSplit]:
    return splits_of(find_log_files(folder), split_bytes)


def write(split: LogSplit, number: int, out: Path) -> SplitFacts:
    destination = Destination(folders={kind: out / kind for kind in SCHEMAS})
    return write_split(SplitTask(number=number, split=split, base=None, destination=destination))


def files_in(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.parquet"))


def rows_in(folder: Path) -> list[dict[str, Any]]:
    return [row for path in files_in(folder) for row in pq.ParquetFile(path).read().to_pylist()]


def test_the_files_hold_the_rows_of_the_source_with_their_times(tmp_path: Path) -> None:
    sample, out = write_sample(tmp_path / "sample"), tmp_path / "out"
    counts = [write(split, number, out).rows for number, split in enumerate(splits(sample, 500))]
    assert len(counts) > 2
    for kind, expected in in_columns(*find_log_files(sample), split_bytes=500).items():
        found = rows_in(out / kind)
        assert len(found) == len(expected) == sum(count[kind] for count in counts) > 0
        for row, expected_row in zip(found, expected, strict=True):
            timestamp = row.pop("timestamp", None)
            assert row == {name: expected_row[name] for name in row}
            assert timestamp is None or timestamp.timestamp() * 1000 == row["timestamp_ms"]
        of_folder = set() if kind == "damage" else {"source"}
        assert set(found[0]) | {"timestamp"} | of_folder >= set(SCHEMAS[kind].fieldNames())


def test_written_again_the_rows_are_there_once_and_without_rows_is_no_file(tmp_path: Path) -> None:
    (split, *_) = splits(write_sample(tmp_path / "sample"))
    for _ in range(2):
        write(split, 3, tmp_path / "out")
    (path,) = files_in(tmp_path / "out" / "record")
    assert path.relative_to(tmp_path / "out" / "record") == Path("source=sample", "part-00003.zstd.parquet")
    write(LogSplit(split.file, split.end, split.end), 3, tmp_path / "out")
    assert files_in(tmp_path / "out" / "record") == []


def test_a_file_carries_the_schema_of_spark_with_its_comments(tmp_path: Path) -> None:
    (split, *_) = splits(write_sample(tmp_path / "sample"))
    write(split, 0, tmp_path / "out")
    (path,) = files_in(tmp_path / "out" / "record")
    kept = json.loads(pq.read_schema(path).metadata[b"org.apache.spark.sql.parquet.row.metadata"])
    assert [field["name"] for field in kept["fields"]] == SCHEMAS["record"].fieldNames()
    assert all(field["metadata"]["comment"] for field in kept["fields"])


def test_a_file_that_fails_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kquorum.spark_replay.table_files._ROWS_PER_GROUP", 1)
    (split, *_) = splits(write_sample(tmp_path / "sample"))
    write(split, 0, tmp_path / "out")
    whole = pq.ParquetFile(files_in(tmp_path / "out" / "record")[0]).read()
    names: list[str] = []

    def fail_half_way() -> None:
        with TableFile(tmp_path / "half.parquet", WRITTEN["record"]) as file:
            file.add(whole.to_batches()[0])
            names.extend(path.name for path in tmp_path.glob("*half*"))
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        fail_half_way()
    assert names == [".half.parquet.unfinished"]
    assert not list(tmp_path.glob("*half*"))


@pytest.mark.parametrize(
    ("source", "folder"),
    [
        ("node-1", "source=node-1"),
        ("real/a b", "source=real%2Fa b"),
        ("50%=x:[1]", "source=50%25%3Dx%3A%5B1%5D"),
        ("größe", "source=größe"),
    ],
)
def test_the_folder_of_a_source_is_named_as_hive_names_it(tmp_path: Path, source: str, folder: str) -> None:
    assert partition_of("record", source) == folder
    (tmp_path / folder).mkdir()
    pq.write_table(pa.table({"x": [1]}), tmp_path / folder / "part-0.parquet")
    assert pq.read_table(tmp_path, columns=["source"]).to_pylist() == [{"source": source}]
