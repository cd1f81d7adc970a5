"""Finding the files of a log from whatever path a user points at."""

import os
from pathlib import Path

import pytest

from kquorum.spark_replay.decode.bases import StateBase, state_bases
from kquorum.spark_replay.decode.sources import (
    FileKind,
    NoLogFound,
    find_log_files,
    find_log_files_of,
    why_not_a_log,
)
from kquorum.spark_replay.table_files import partition_of
from tests.support.sample_logs import first_segment, write_sample, write_trimmed_sample


def names(path: Path) -> list[tuple[str, str]]:
    return [(file.source, file.name) for file in find_log_files(path)]


def touch(folder: Path, *file_names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in file_names:
        (folder / name).touch()


def test_a_metadata_folder_and_the_log_in_it_are_the_same_source(tmp_path: Path) -> None:
    folder = write_sample(tmp_path / "node-1")
    found = [("node-1", "00000000000000000000.log"), ("node-1", "00000000000000000023.log")]
    assert names(folder) == found
    assert names(folder / "__cluster_metadata-0") == found


def test_a_parent_of_several_logs_names_each_by_its_folder(tmp_path: Path) -> None:
    write_sample(tmp_path / "cluster" / "node-1")
    write_trimmed_sample(tmp_path / "cluster" / "deeper" / "node-2")
    assert [source for source, _ in names(tmp_path / "cluster")] == ["deeper/node-2"] * 2 + ["node-1"] * 2


def test_snapshots_and_bootstrap_file_are_distinguished_and_leftovers_are_not_read(tmp_path: Path) -> None:
    log = tmp_path / "__cluster_metadata-0"
    touch(tmp_path, "bootstrap.checkpoint", "meta.properties")
    touch(log, "00000000000000000000.log", "00000000000000000000.index", "00000000000000000007.snapshot")
    touch(
        log,
        "00000000000000000009-0000000002.checkpoint",
        "00000000000000000009-0000000002.checkpoint.deleted",
    )
    touch(log, "00000000000000000010-0000000002-123.checkpoint.part")
    files = {file.name: file for file in find_log_files(tmp_path)}
    assert {name: file.kind for name, file in files.items()} == {
        "00000000000000000000.log": FileKind.LOG,
        "00000000000000000009-0000000002.checkpoint": FileKind.SNAPSHOT,
        "bootstrap.checkpoint": FileKind.BOOTSTRAP,
    }
    snapshot = files["00000000000000000009-0000000002.checkpoint"]
    assert (snapshot.end_offset, snapshot.epoch) == (9, 2)


def test_the_partitions_of_topics_beside_the_metadata_log_are_not_taken_for_it(tmp_path: Path) -> None:
    touch(tmp_path / "__cluster_metadata-0", "00000000000000000000.log")
    touch(tmp_path / "orders-0", "00000000000000000000.log", "partition.metadata")
    assert [source for source, _ in names(tmp_path)] == [tmp_path.name]


def test_a_log_folder_copied_under_another_name_is_still_one(tmp_path: Path) -> None:
    touch(tmp_path / "copy", "00000000000000000000.log", "partition.metadata", "quorum-state")
    assert names(tmp_path) == [("copy", "00000000000000000000.log")]


@pytest.mark.parametrize("name", ["nothing", "missing"])
def test_a_folder_without_a_log_and_a_path_without_anything_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "nothing").mkdir()
    with pytest.raises(NoLogFound, match=name):
        find_log_files(tmp_path / name)


def test_a_log_from_offset_0_needs_no_snapshot(tmp_path: Path) -> None:
    files = find_log_files(write_sample(tmp_path / "sample"))
    assert state_bases(files) == (StateBase(source="sample", snapshot=None, from_offset=0),)


def test_a_trimmed_log_begins_with_its_snapshot(tmp_path: Path) -> None:
    files = find_log_files(write_trimmed_sample(tmp_path / "trimmed"))
    name = "00000000000000000100-0000000003.checkpoint"
    assert state_bases(files) == (StateBase(source="trimmed", snapshot=name, from_offset=100),)


def test_a_snapshot_without_its_footer_is_no_base(tmp_path: Path) -> None:
    folder = write_trimmed_sample(tmp_path / "trimmed")
    snapshot = folder / "__cluster_metadata-0" / "00000000000000000100-0000000003.checkpoint"
    snapshot.write_bytes(snapshot.read_bytes()[:-75])
    assert state_bases(find_log_files(folder)) == (
        StateBase(source="trimmed", snapshot=None, from_offset=100),
    )


def with_another_magic() -> bytes:
    data = bytearray(first_segment().data)
    data[16] = 7
    return bytes(data)


@pytest.mark.parametrize(
    ("name", "data", "is_log"),
    [
        (
            "notes.txt",
            b"some words which go on for long enough to be the header of a batch, and further",
            False,
        ),
        ("00000000000000000000.log", b"some words", True),
        ("00000000000000000000.log", b"some words and some more", False),
        ("notes.txt", b"some words", False),
        ("notes.txt", b"", False),
        ("00000000000000000000.log", b"", True),
        ("00000000000000000000.log", bytes(100), True),
        ("zeros", bytes(100), False),
        ("copy-of-a-log", bytes(first_segment().data), True),
        ("00000000000000000000.log", with_another_magic(), True),
        ("00000000000000000000-0000000000.checkpoint", with_another_magic(), True),
        ("00000000000000000001.log", with_another_magic(), False),
        ("copy-of-a-log", with_another_magic(), False),
        ("00000000000000000000.log", bytes(first_segment().data[:30]), True),
    ],
)
def test_a_file_that_is_no_log_is_distinguished_from_a_damaged_one(
    name: str, data: bytes, is_log: bool
) -> None:
    assert (why_not_a_log(name, memoryview(data)) is None) == is_log


def test_a_name_too_long_for_a_folder_of_the_audit_keeps_its_end_and_a_hash(tmp_path: Path) -> None:
    for name in ("a" * 200, "b" * 200):
        touch(tmp_path / name / ("[%]" * 40) / "node", "00000000000000000000.log")
    (first, _), (second, _) = names(tmp_path)
    assert first != second
    assert "/node~" in first
    assert max(len(partition_of("record", each).encode()) for each in (first, second)) <= 255


def test_a_folder_that_is_called_as_hives_null_gets_another_name(tmp_path: Path) -> None:
    touch(tmp_path / "__HIVE_DEFAULT_PARTITION__", "00000000000000000000.log")
    assert names(tmp_path)[0][0].startswith("__HIVE_DEFAULT_PARTITION__~")


@pytest.mark.parametrize("together", [True, False])
def test_folders_that_look_the_same_in_print_are_distinguished(tmp_path: Path, together: bool) -> None:
    folders = [tmp_path / os.fsdecode(b"n\xe9"), tmp_path / "n\\xe9"]
    for folder in folders:
        touch(folder, "00000000000000000000.log")
    found = find_log_files_of([tmp_path] if together else folders)
    sources = {file.source for file in found}
    assert len(sources) == 2
    assert any(source.endswith("n\\xe9") for source in sources)
