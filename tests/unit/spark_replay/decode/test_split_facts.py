"""What splits tell of a log: the gaps in it wherever it was cut, its epochs, bounds and counts."""

from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from kquorum.spark_replay.decode.bases import state_bases
from kquorum.spark_replay.decode.sources import find_log_files
from kquorum.spark_replay.decode.split_facts import SplitFacts, extents
from kquorum.spark_replay.decode.splits import splits_of
from kquorum.spark_replay.table_files import Destination, SplitTask, write_split, write_tables
from kquorum.wire.metadata_records.features import NoOpRecord
from tests.support.sample_logs import LogBuilder, write_sample

SEGMENTS = ((0, 40), (40, 90), (90, 120))


def write_log(
    folder: Path, *, dropped: frozenset[int] = frozenset(), broken: frozenset[int] = frozenset()
) -> None:
    """Batches of one record each; those at `dropped` are not there, those at `broken` have a wrong checksum."""
    log_folder = folder / "__cluster_metadata-0"
    log_folder.mkdir(parents=True)
    for start, end in SEGMENTS:
        data = bytearray()
        for offset in range(start, end):
            batch = bytearray(LogBuilder(next_offset=offset).records(offset, NoOpRecord()).data)
            if offset in broken:
                batch[-1] ^= 1
            data += b"" if offset in dropped else batch
        (log_folder / f"{start:020d}.log").write_bytes(data)


def damage_of(folder: Path, out: Path, split_bytes: int) -> tuple[list[tuple[object, ...]], list[SplitFacts]]:
    """Position and message of each damage, read in splits of so many bytes."""
    facts = write_tables(
        None,  # small logs need no Spark
        find_log_files(folder),
        Destination(
            folders={"damage": out, "record": out.parent / "records", "batch": out.parent / "batches"}
        ),
        split_bytes=split_bytes,
    )
    rows = pq.read_table(out).to_pylist()
    found = [(row["file"], row["position"], row["offset"], row["kind"], row["reason"]) for row in rows]
    return sorted(found, key=lambda row: row[:2]), facts


@pytest.mark.parametrize("seed", range(8))
def test_the_same_damage_is_reported_however_a_log_is_cut(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    dropped = frozenset(random.sample(range(1, 120), 12))
    broken = frozenset(random.sample(sorted(set(range(120)) - dropped), seed))
    write_log(tmp_path / "log", dropped=dropped, broken=broken)
    whole, _ = damage_of(tmp_path / "log", tmp_path / "whole" / "damage", 1 << 30)
    assert whole
    for split_bytes in (100, 333, 1000):
        cut, facts = damage_of(tmp_path / "log", tmp_path / str(split_bytes) / "damage", split_bytes)
        assert len(facts) > 3
        assert {row[:2] for row in cut} == {row[:2] for row in whole}


def test_gaps_between_files_and_within_them_are_reported_once(tmp_path: Path) -> None:
    write_log(tmp_path / "log", dropped=frozenset({10, 20, 39, 40, 90}))
    for split_bytes in (1 << 30, 100):
        found, facts = damage_of(tmp_path / "log", tmp_path / str(split_bytes) / "damage", split_bytes)
        assert [(row[0][:20].lstrip("0"), row[2]) for row in found if isinstance(row[0], str)] == [
            ("", 10),
            ("", 20),
            ("40", 40),
            ("90", 90),
        ]
        assert extents(facts) == {"log": (0, 120)}


def test_damage_at_the_end_of_a_file_explains_what_is_missing_after_it(tmp_path: Path) -> None:
    write_log(tmp_path / "log", broken=frozenset({39}), dropped=frozenset({91}))
    found, _ = damage_of(tmp_path / "log", tmp_path / "out" / "damage", 1 << 30)
    assert [row[3] for row in found] == ["corrupt", "corrupt"]
    assert "batch begins at" not in str(found)


@pytest.mark.parametrize("split_bytes", [1 << 30, 1000, 100])
def test_damage_that_a_sound_batch_follows_explains_no_gap_elsewhere(
    tmp_path: Path, split_bytes: int
) -> None:
    write_log(tmp_path / "log", dropped=frozenset({20, 40, 90, 91}))
    for file in (tmp_path / "log").rglob("*.log"):
        data = bytearray(file.read_bytes())
        data[72 * 5 + 16] ^= 1
        file.write_bytes(data)
    found, facts = damage_of(tmp_path / "log", tmp_path / "out" / "damage", split_bytes)
    assert [row[2] for row in found] == [5, 20, 40, 46, 90, 97]
    assert extents(facts) == {"log": (0, 120)}


def test_a_sound_log_has_an_empty_table_of_damage_with_its_columns(tmp_path: Path) -> None:
    write_log(tmp_path / "log")
    assert damage_of(tmp_path / "log", tmp_path / "out" / "damage", 500)[0] == []
    assert "reason" in pq.read_schema(next((tmp_path / "out" / "damage").glob("*.parquet"))).names


def test_splits_count_what_they_hold(tmp_path: Path) -> None:
    files = find_log_files(write_sample(tmp_path / "sample"))
    (base,) = state_bases(files)
    destination = Destination(
        folders={"record": tmp_path / "records", "batch": tmp_path / "batches"}, staging=tmp_path / "staging"
    )
    destination.emptied()
    tasks = [
        SplitTask(number=number, split=split, base=base, destination=destination)
        for number, split in enumerate(splits_of(files, 700))
    ]
    facts = [write_split(task) for task in tasks]
    records = pq.read_table(tmp_path / "records").to_pylist()
    log = [row for row in records if row["file_kind"] == "log"]
    assert sum(each.unknown_records for each in facts) == sum(row["payload"] is None for row in records) > 0
    bounds = [each.bounds for each in facts if each.bounds is not None]
    assert len(bounds) > 2
    assert sum(each.records for each in bounds) == len(log)
    assert min(each.first_ms for each in bounds) == min(row["timestamp_ms"] for row in log)
    spans = pq.read_table(tmp_path / "staging" / "epochs").to_pylist()
    for epoch in {row["leader_epoch"] for row in log}:
        of_epoch = [row for row in log if row["leader_epoch"] == epoch]
        partial = [span for span in spans if span["epoch"] == epoch]
        assert sum(span["records"] for span in partial) == len(of_epoch)
        assert min(span["start_offset"] for span in partial) == min(row["offset"] for row in of_epoch)
        assert max(span["last_record_ms"] for span in partial) == max(row["timestamp_ms"] for row in of_epoch)
