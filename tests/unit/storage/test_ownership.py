"""A folder of another user: the error says whose it is and what helps, and nothing of a full disk."""

import errno
import os
import stat
from pathlib import Path

import pytest

from kquorum.cli.failures import ExitStatus, message_of, status_of
from kquorum.storage.errors import StorageFailed
from kquorum.storage.file_system import POSIX
from kquorum.storage.meta_properties import read_meta_properties
from kquorum.storage.ownership import permission_remedy


@pytest.fixture
def other_user(monkeypatch: pytest.MonkeyPatch) -> int:
    """The user id of a process that does not own the test's files."""
    found = os.geteuid() + 54_321
    monkeypatch.setattr(os, "geteuid", lambda: found)
    return found


def refusal(code: int, path: Path) -> OSError:
    return OSError(code, os.strerror(code), str(path))


@pytest.mark.parametrize("code", [errno.EACCES, errno.EPERM])
def test_the_error_names_the_owner_and_the_remedy(tmp_path: Path, other_user: int, code: int) -> None:
    path = tmp_path / "not" / "there" / ".lock"
    error = StorageFailed("open", path, refusal(code, path))
    assert f"{tmp_path} belongs to user" in str(error)
    assert f"this process runs as user id {other_user}" in str(error)
    assert "chown -R" in str(error)
    assert "disk" not in str(error)
    assert status_of(error) is ExitStatus.IO_ERROR


def test_the_owner_without_the_permission(tmp_path: Path) -> None:
    remedy = permission_remedy(tmp_path, refusal(errno.EACCES, tmp_path))
    assert remedy is not None
    assert f"to whom {tmp_path} does not give the permission" in remedy


def test_a_file_system_that_is_read_only(tmp_path: Path) -> None:
    error = StorageFailed("open", tmp_path, refusal(errno.EROFS, tmp_path))
    assert "mounted read-only" in str(error)


def test_other_failures_are_the_disks(tmp_path: Path) -> None:
    assert permission_remedy(tmp_path, refusal(errno.EIO, tmp_path)) is None
    assert "check the disk" in str(StorageFailed("write", tmp_path, refusal(errno.EIO, tmp_path)))


def test_a_file_that_may_not_be_read_is_not_called_damaged(
    tmp_path: Path, other_user: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> bytes:
        raise refusal(errno.EACCES, path)

    (tmp_path / "meta.properties").touch(stat.S_IRUSR)
    monkeypatch.setattr(type(POSIX), "read", lambda _, path: refuse(path))
    with pytest.raises(StorageFailed, match="belongs to user") as caught:
        read_meta_properties(tmp_path)
    assert "damaged" not in str(caught.value)


def test_any_other_file_is_reported_with_its_owner(tmp_path: Path, other_user: int) -> None:
    path = tmp_path / "kquorum.log"
    assert f"{path}: Permission denied; {tmp_path} belongs to user" in message_of(refusal(errno.EACCES, path))
