"""Damaged segments, and folders that are no partitions."""

from pathlib import Path

import pytest

from kquorum.spark_replay.data.building import rows_of
from kquorum.spark_replay.data.log_dirs import NoLogDir, find_log_dirs
from kquorum.spark_replay.data.reading import DataBatch, Unreadable, batches_of
from kquorum.spark_replay.data.registry import DATA_TABLES
from kquorum.wire.data_batch import Record, write_data_batch


def segment(*offsets: int) -> bytes:
    return b"".join(
        write_data_batch([Record(offset, 1_000 + offset, b"key", b"value")], leader_epoch=0)
        for offset in offsets
    )


def found(data: bytes) -> list[object]:
    return [
        each.header.base_offset
        if isinstance(each, DataBatch)
        else (each.position, each.size_in_bytes, each.is_torn)
        for each in batches_of(memoryview(data), "0.log", 0)
    ]


def test_a_flipped_bit_costs_one_batch() -> None:
    data = bytearray(segment(0, 1, 2))
    size = len(data) // 3
    data[size + 30] ^= 1
    assert found(bytes(data)) == [0, (size, size, False), 2]
    data[size + 8] ^= 0x40  # and now its length, too
    assert found(bytes(data)) == [0, (size, size, False), 2]


def test_a_batch_that_is_cut_off_is_torn() -> None:
    data = segment(0, 1)
    assert found(data[:-3]) == [0, (len(data) // 2, len(data) // 2 - 3, True)]
    assert found(b"") == []
    (only,) = batches_of(memoryview(b"\0" * 200), "0.log", 0)
    assert isinstance(only, Unreadable)


def test_folders_set_apart_and_links_are_no_partitions(tmp_path: Path) -> None:
    for name in ("t-0", "t-1.00000000000000000000000000000001-delete", "__cluster_metadata-0", "notes"):
        (tmp_path / "broker" / name).mkdir(parents=True)
        (tmp_path / "broker" / name / f"{0:020d}.log").write_bytes(segment(0))
    (tmp_path / "broker" / "t-2").symlink_to(tmp_path / "broker" / "t-0")
    (only,) = find_log_dirs([tmp_path])
    assert (only.source, [(each.topic, each.partition) for each in only.partitions]) == ("broker", [("t", 0)])
    rows = [row for name, made in rows_of(only.partitions[0]) if name == "data_batches" for row in made]
    assert [row["base_offset"] for row in rows] == [0]
    assert set(rows[0]) == set(DATA_TABLES["data_batches"].schema.fieldNames())


def test_a_folder_without_partitions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    with pytest.raises(NoLogDir, match="no folder TOPIC-PARTITION with segments"):
        find_log_dirs([tmp_path])
