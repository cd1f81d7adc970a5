"""Several paths at once, and folders as they are found in the wild."""

import os
from pathlib import Path
from typing import Any

import pytest

from kquorum.spark_replay.archive.archiving import archive
from kquorum.spark_replay.decode.sources import NoLogFound, find_log_files, find_log_files_of, is_remote
from tests.support.node_logs import NodeLog
from tests.support.sample_logs import write_sample


def found(*roots: Path | str) -> list[tuple[str, str]]:
    return [(file.source, file.name) for file in find_log_files_of(roots)]


FIRST, SECOND = "00000000000000000000.log", "00000000000000000023.log"


def test_one_path_is_what_it_is_alone(tmp_path: Path) -> None:
    folder = write_sample(tmp_path / "node-1")
    assert find_log_files_of([folder]) == find_log_files(folder)
    assert find_log_files_of([str(folder)]) == find_log_files(folder)


def test_the_voters_of_a_quorum_each_by_its_folder(tmp_path: Path) -> None:
    folders = [write_sample(tmp_path / name) for name in ("b", "a")]
    assert found(*folders) == [("a", FIRST), ("a", SECOND), ("b", FIRST), ("b", SECOND)]


def test_folders_of_one_name_are_distinguished_by_where_they_lie(tmp_path: Path) -> None:
    folders = [write_sample(tmp_path / node / "data" / "metadata") for node in ("node-1", "node-2")]
    other = write_sample(tmp_path / "other")
    assert [source for source, name in found(*folders, other) if name == FIRST] == [
        "node-1/data/metadata",
        "node-2/data/metadata",
        "other",
    ]


def test_what_is_named_twice_is_there_once(tmp_path: Path) -> None:
    folder = write_sample(tmp_path / "cluster" / "node-1")
    (tmp_path / "link").symlink_to(folder)
    assert found(folder, folder / "__cluster_metadata-0", tmp_path / "link", tmp_path / "cluster") == [
        ("node-1", FIRST),
        ("node-1", SECOND),
    ]


def test_files_of_one_folder_are_one_log(tmp_path: Path) -> None:
    folder = write_sample(tmp_path / "node-1") / "__cluster_metadata-0"
    other = write_sample(tmp_path / "node-2") / "__cluster_metadata-0"
    assert found(folder / SECOND, folder / FIRST, other / FIRST) == [
        ("node-1", FIRST),
        ("node-1", SECOND),
        ("node-2", FIRST),
    ]


def test_snapshots_alone(tmp_path: Path) -> None:
    node = NodeLog(tmp_path / "node-1").fill(2)
    first = node.take_snapshot()
    node.append(1)
    second = node.take_snapshot()
    assert found(second, first) == [("node-1", first.name), ("node-1", second.name)]
    assert found(first) == [(first.name, first.name)]


def test_an_archive_is_read_as_the_logs_in_it(tmp_path: Path) -> None:
    nodes = [NodeLog(tmp_path / name, node_id=number).fill(3, 4) for number, name in enumerate(("x", "y"), 1)]
    archive([node.folder for node in nodes], tmp_path / "archive")
    assert found(tmp_path / "archive") == [("node-1", FIRST), ("node-2", FIRST)]


def test_a_path_that_does_not_exist_is_reported_even_if_others_do(tmp_path: Path) -> None:
    with pytest.raises(NoLogFound, match="missing does not exist"):
        found(write_sample(tmp_path / "node-1"), tmp_path / "missing")


def test_a_pipe_is_not_said_to_be_missing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NoLogFound, match="pipe is neither a file nor a folder"):
        found(tmp_path / "pipe")


@pytest.mark.parametrize(
    ("path", "remote"),
    [
        ("s3a://bucket/archive", True),
        ("hdfs://host:9000/a", True),
        ("file:///tmp/a", True),
        ("abfs://c@account.dfs.core.windows.net/a", True),
        ("/a://b", False),
        ("a/b", False),
        ("C:/a", False),
        ("://x", False),
    ],
)
def test_addresses_of_file_systems_are_distinguished_from_paths(path: str, remote: bool) -> None:
    assert is_remote(path) == remote


def test_an_address_is_refused_where_there_is_no_spark_to_read_it() -> None:
    with pytest.raises(NoLogFound, match="read through Spark"):
        found("s3a://bucket/archive")


def test_links_in_a_circle_and_several_to_one_log_find_it_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_sample(tmp_path / "cluster" / "node-1")
    (tmp_path / "cluster" / "again").symlink_to(tmp_path / "cluster")
    (tmp_path / "cluster" / "self").symlink_to(tmp_path / "cluster" / "self")
    (tmp_path / "cluster" / "same").symlink_to(tmp_path / "cluster" / "node-1")
    (tmp_path / "cluster" / ".hidden").symlink_to(tmp_path / "cluster" / "node-1")
    assert found(tmp_path / "cluster") == [("node-1", FIRST), ("node-1", SECOND)]
    links = [str(tmp_path / "cluster" / name) for name in ("again", "same", "self")]
    assert [message.partition(" is passed over")[0] for message in caplog.messages] == links


def test_names_with_blanks_and_names_that_are_no_text(tmp_path: Path) -> None:
    write_sample(tmp_path / "my node")
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    write_sample(odd)
    files = find_log_files(tmp_path)
    assert [file.source for file in files if file.name == FIRST] == ["caf\\xe9", "my node"]
    assert all(Path(file.path).is_file() for file in files)
    assert [file.source for file in find_log_files_of([odd, tmp_path / "my node"]) if file.name == FIRST] == [
        "caf\\xe9",
        "my node",
    ]


def test_names_that_a_terminal_would_obey_are_spelled_out(tmp_path: Path) -> None:
    write_sample(tmp_path / "red \x1b[31m\u202e")
    assert found(tmp_path / "red \x1b[31m\u202e")[0][0] == "red \\x1b[31m\\u202e"


def test_a_folder_that_cannot_be_read_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sample(tmp_path / "node-1")
    (tmp_path / "closed").mkdir()
    (tmp_path / "lost+found").mkdir()
    real = os.open

    def opened(path: Path | str, flags: int, *args: int, **options: Any) -> int:
        if Path(path).name in ("closed", "lost+found"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, flags, *args, **options)

    monkeypatch.setattr("os.open", opened)
    with pytest.raises(PermissionError, match="closed"):
        find_log_files(tmp_path)
    (tmp_path / "closed").rmdir()
    assert len(find_log_files(tmp_path)) == 2


def test_a_file_that_a_node_removes_meanwhile_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_sample(tmp_path / "node-1")
    real = Path.stat

    def stat(path: Path, **options: bool) -> os.stat_result:
        if path.name == FIRST:
            path.unlink(missing_ok=True)
        return real(path, **options)

    monkeypatch.setattr(Path, "stat", stat)
    assert [file.name for file in find_log_files(folder)] == [SECOND]
