"""One lock for builds, streams and archives: a file that is locked, and never a link."""

from pathlib import Path

import pytest

from kquorum.regular_files import NotRegular
from kquorum.spark_replay.folder_lock import FolderTaken, locked


def test_a_second_holder_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    with locked(tmp_path / "lock"), pytest.raises(FolderTaken), locked(tmp_path / "lock"):
        pass
    with locked(tmp_path / "lock"):
        pass


def test_readers_share_the_lock_and_exclude_a_writer(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    lock = tmp_path / "lock"
    with locked(lock, shared=True), locked(lock, shared=True), pytest.raises(FolderTaken), locked(lock):
        pass


def test_a_link_in_the_place_of_the_lock_makes_no_file_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotRegular, match="symbolic link"), locked(tmp_path / "lock"):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_in_the_place_of_the_lock_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(OSError, match="lock"), locked(tmp_path / "lock"):
        pass
