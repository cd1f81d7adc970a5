"""Another user of the machine must not read the keys of SCRAM users from the folder of a node."""

import errno
import os
import stat
from pathlib import Path

import pytest

from kquorum.cli.main import run
from kquorum.node.config.load import load_config
from kquorum.node.folders import NodeFolders
from kquorum.storage.errors import FolderExposed
from tests.support.config_files import write_controller


def open_folders(config: Path) -> list[str]:
    """As a node does when it starts; the warnings that it logs."""
    folders = NodeFolders(load_config(config).node(1), now_ms=0)
    folders.release()
    return folders.notes


@pytest.fixture(autouse=True)
def usual_umask() -> None:
    os.umask(0o022)


@pytest.mark.parametrize("made_before", [None, 0o755, 0o777])
def test_formatting_leaves_nothing_to_others(tmp_path: Path, made_before: int | None) -> None:
    if made_before is not None:
        (tmp_path / "data").mkdir()
        (tmp_path / "data").chmod(made_before)
    assert run(["format", "-c", str(write_controller(tmp_path))]) == 0
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) & 0o027 == 0
    exposed = [path for path in (tmp_path / "data").rglob("*") if path.stat().st_mode & 0o077]
    assert exposed == []


def test_what_a_command_writes_of_a_log_is_left_to_no_other(tmp_path: Path) -> None:
    assert run(["format", "-c", str(write_controller(tmp_path))]) == 0
    os.umask(0o022)
    run(["log", "dump", str(tmp_path / "data")])
    (tmp_path / "written").mkdir()
    (tmp_path / "written" / "table.csv").touch()
    assert stat.S_IMODE((tmp_path / "written").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "written" / "table.csv").stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o755, 0o701, 0o704, 0o770])
def test_a_node_makes_a_folder_private_that_others_can_open(tmp_path: Path, mode: int) -> None:
    """Folders of Apache Kafka are open to all."""
    config = write_controller(tmp_path)
    assert run(["format", "-c", str(config)]) == 0
    (tmp_path / "data").chmod(mode)
    (note,) = open_folders(config)
    assert f"had the permissions {mode:04o}" in note
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == mode & 0o750
    assert open_folders(config) == []


@pytest.mark.parametrize("is_owner", [True, False])
def test_a_node_refuses_a_folder_that_stays_open_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_owner: bool
) -> None:
    """It is another user's, or its file system takes any mode and keeps its own."""
    config = write_controller(tmp_path)
    assert run(["format", "-c", str(config)]) == 0
    (tmp_path / "data").chmod(0o755)

    def chmod(path: Path, mode: int) -> None:
        if not is_owner:
            raise PermissionError(errno.EPERM, "Operation not permitted", str(path))

    monkeypatch.setattr(Path, "chmod", chmod)
    with pytest.raises(FolderExposed, match=rf"0755.*chmod g-w,o-rwx {tmp_path}/data"):
        open_folders(config)


def test_a_file_system_without_permissions_has_a_key(tmp_path: Path) -> None:
    config = write_controller(tmp_path, "kquorum.allow.exposed.log.dirs = true")
    assert run(["format", "-c", str(config)]) == 0
    (tmp_path / "data").chmod(0o777)
    assert open_folders(config) == []
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o777
