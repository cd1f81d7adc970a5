"""Small files of a stream merged into few: the same rows, wherever the merging was interrupted."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kquorum.spark_replay.arrow_types import arrow_schema
from kquorum.spark_replay.stream import merging
from kquorum.spark_replay.stream.merging import finish_merge, merge_small_files
from kquorum.spark_replay.stream.state import stream_folder
from kquorum.spark_replay.stream.tables import TAIL
from kquorum.spark_replay.table_files import WRITTEN, TableFile


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twelve files of three records each, of one source, and a tail of damage."""
    monkeypatch.setattr(merging, "MANY_FILES", 5)
    stream_folder(tmp_path).mkdir()
    for number in range(12):
        write(tmp_path / "records" / "source=a" / f"part-{number:08d}-00000.zstd.parquet", "record", number)
    write(tmp_path / "damage" / TAIL, "damage", 0)
    return tmp_path


def write(path: Path, kind: str, number: int) -> None:
    schema = arrow_schema(WRITTEN[kind])
    columns = {"offset": pa.array([3 * number, 3 * number + 1, 3 * number + 2], pa.int64())}
    arrays = [columns.get(field.name, pa.nulls(3, field.type)) for field in schema]
    with TableFile(path, WRITTEN[kind]) as table_file:
        table_file.add(pa.RecordBatch.from_arrays(arrays, schema=schema))


def offsets(out: Path) -> list[int]:
    return sorted(pq.read_table(out / "records").column("offset").to_pylist())


def files(out: Path) -> list[str]:
    return sorted(path.name for path in out.rglob("*") if path.is_file())


def test_many_small_files_become_one_with_their_rows(out: Path) -> None:
    assert merge_small_files(out) == 12
    assert files(out) == ["merged-00000000.zstd.parquet", TAIL]
    assert offsets(out) == list(range(36))
    assert merge_small_files(out) == 0
    for number in range(12, 17):
        write(out / "records" / "source=a" / f"part-{number:08d}-00000.zstd.parquet", "record", number)
    assert merge_small_files(out) == 6
    assert offsets(out) == list(range(51))


def test_large_files_stay_as_they_are(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "SMALL_BYTES", 10)
    before = files(out)
    assert merge_small_files(out) == 0
    assert files(out) == before


@pytest.mark.parametrize("interrupted_at", range(17))
def test_a_merge_that_was_interrupted_anywhere_loses_and_repeats_nothing(
    out: Path, monkeypatch: pytest.MonkeyPatch, interrupted_at: int
) -> None:
    steps = 0

    class Interrupted(Exception):
        pass

    def step(name: str) -> None:
        original = getattr(Path, name)

        def counted(path: Path, *args: object, **options: object) -> object:
            nonlocal steps
            if path.is_relative_to(out):
                if steps == interrupted_at:
                    raise Interrupted
                steps += 1
            return original(path, *args, **options)

        monkeypatch.setattr(Path, name, counted)

    for name in ("unlink", "rename", "replace", "write_text"):
        step(name)
    with pytest.raises(Interrupted):
        merge_small_files(out)
    monkeypatch.undo()
    finish_merge(out)
    assert offsets(out) == list(range(36))
    assert not [name for name in files(out) if name.startswith(".merged")]
