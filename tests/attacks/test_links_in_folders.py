"""A link, a pipe or a socket in another user's folder must not lead a command to other files, or keep it for ever.

`audit archive` copied an operator's file that a link in the log's folder led to.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kquorum.broker.adapters.clean_shutdown import FILE_NAME, mark_clean_shutdown, previous_broker_epoch
from kquorum.broker.identity import NO_EPOCH
from kquorum.cli.main import run
from kquorum.node import inspect_source
from kquorum.node.config.load import load_config
from kquorum.node.errors import BootstrapDamaged
from kquorum.node.folders import NodeFolders
from kquorum.spark_replay.archive.archiving import archive
from kquorum.spark_replay.decode.members import member_of
from kquorum.spark_replay.decode.sources import find_log_files
from tests.support.config_files import write_controller
from tests.support.sample_logs import write_sample

SECRET = b"the operator's own words"
SIDE_FILES = (
    "__cluster_metadata-0/quorum-state",
    "__cluster_metadata-0/recovery-point",
    "__cluster_metadata-0/partition.metadata",
    "__cluster_metadata-0/leader-epoch-checkpoint",
    "__cluster_metadata-0/elections.log",
    "__cluster_metadata-0/00000000000000000000.index",
    "__cluster_metadata-0/00000000000000000000.timeindex",
    "__cluster_metadata-0/00000000000000000050.log.deleted",
    "__cluster_metadata-0/00000000000000000050-0000000001.checkpoint.part",
    "meta.properties",
    "bootstrap.checkpoint",
)
LOG_FILES = (
    "__cluster_metadata-0/00000000000000000029.log",
    "__cluster_metadata-0/00000000000000000010-0000000001.checkpoint",
)


def linked(path: Path) -> None:
    secret = path.parents[2] / "secret"
    secret.write_bytes(SECRET)
    path.symlink_to(secret)


def bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        before = Path.cwd()
        os.chdir(path.parent)  # the name of a socket has 107 bytes at most
        try:
            listener.bind(path.name)
        finally:
            os.chdir(before)


PLANTED: dict[str, Callable[[Path], None]] = {"link": linked, "pipe": os.mkfifo, "socket": bound}


@pytest.fixture(params=list(PLANTED))
def hostile(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A metadata folder with a log, and beside its files those that lead elsewhere."""
    folder = write_sample(tmp_path / "node" / "data", torn=False)
    for name in (*SIDE_FILES, *LOG_FILES):
        PLANTED[request.param](folder / name)
    return folder


def all_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_nothing_behind_a_link_is_archived(
    hostile: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    report = archive([hostile], tmp_path / "archive", include_active=True)
    assert SECRET not in all_bytes(tmp_path / "archive")
    (member,) = report.members
    assert {file.name for file in find_log_files(tmp_path / "archive")} == {
        "00000000000000000000.log",
        "00000000000000000023.log",
    }
    for name in (*LOG_FILES, "bootstrap.checkpoint"):
        assert f"{hostile / name} is passed over" in caplog.text
    assert [note for note in member.notes if "meta.properties is passed over" in note]


def test_a_folder_behind_a_link_is_reported_and_not_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_sample(tmp_path / "operator")
    write_sample(tmp_path / "given" / "node-1")
    (tmp_path / "given" / "node-2").symlink_to(tmp_path / "operator")
    assert {file.source for file in find_log_files(tmp_path / "given")} == {"node-1"}
    assert f"{tmp_path / 'given' / 'node-2'} is passed over: it is a symbolic link" in caplog.text


def test_a_link_that_is_named_is_followed(tmp_path: Path) -> None:
    folder = write_sample(tmp_path / "node")
    (tmp_path / "folder").symlink_to(folder)
    segment = folder / "__cluster_metadata-0" / "00000000000000000000.log"
    (tmp_path / "segment").symlink_to(segment)
    assert len(find_log_files(tmp_path / "folder")) == 2
    assert [file.path for file in find_log_files(tmp_path / "segment")] == [str(segment.resolve())]


def test_of_a_member_nothing_is_read_through_a_link(hostile: Path) -> None:
    assert member_of(hostile / "__cluster_metadata-0").node_id is None


@pytest.mark.parametrize(
    "command",
    [
        ("log", "verify", "{}"),
        ("log", "dump", "{}"),
        ("snapshot", "list", "{}"),
        pytest.param(("log", "state-hash", "{}"), marks=pytest.mark.slow),
        pytest.param(("log", "dump", "{}", "--snapshots"), marks=pytest.mark.slow),
        pytest.param(("snapshot", "verify", "{}"), marks=pytest.mark.slow),
        pytest.param(("quorum", "history", "{}"), marks=pytest.mark.slow),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_commands_end_and_tell_nothing_of_what_a_link_leads_to(
    hostile: Path, command: tuple[str, ...]
) -> None:
    program = Path(sys.executable).with_name("kquorum")
    done = subprocess.run(
        [program, *(part.format(hostile) for part in command)],
        capture_output=True,
        timeout=60,
        check=False,
    )
    said = (done.stdout + done.stderr).decode()
    assert "Traceback" not in said
    assert SECRET.decode() not in said
    if command[0] == "log" or command[1] == "verify":
        assert "00000000000000000010-0000000001.checkpoint" in said


@pytest.mark.parametrize("plant", PLANTED)
def test_a_node_does_not_begin_with_what_another_file_than_its_bootstrap_checkpoint_holds(
    tmp_path: Path, plant: str
) -> None:
    (tmp_path / "node").mkdir()
    config = write_controller(tmp_path / "node")
    assert run(["format", "-c", str(config)]) == 0
    checkpoint = tmp_path / "node" / "data" / "bootstrap.checkpoint"
    checkpoint.unlink()
    PLANTED[plant](checkpoint)
    folders = NodeFolders(load_config(config).node(1), now_ms=0)
    try:
        with pytest.raises(BootstrapDamaged, match=r"not followed|no regular file"):
            folders.bootstrap_records()
    finally:
        folders.release()


@pytest.mark.parametrize("plant", PLANTED)
def test_a_node_serves_no_snapshot_through_a_link(tmp_path: Path, plant: str) -> None:
    (tmp_path / "node" / "data").mkdir(parents=True)
    path = tmp_path / "node" / "data" / "bootstrap.checkpoint"
    PLANTED[plant](path)
    (tmp_path / "node" / "data" / "__cluster_metadata-0").mkdir()
    with pytest.raises(OSError, match=r"not followed|no regular file"):
        inspect_source._read(path, 0, 100)
    assert inspect_source._snapshot_names(path.parent / "__cluster_metadata-0") == ()


def test_the_mark_of_a_shutdown_is_not_read_through_a_link(tmp_path: Path) -> None:
    for name in ("real", "linked"):
        (tmp_path / name).mkdir()
    mark_clean_shutdown([tmp_path / "real"], 4711)
    (tmp_path / "linked" / FILE_NAME).symlink_to(tmp_path / "real" / FILE_NAME)
    assert previous_broker_epoch([tmp_path / "real"]) == 4711
    assert previous_broker_epoch([tmp_path / "linked"]) == NO_EPOCH
