"""Only regular files of a folder are read: its writer chooses where a link leads, and a pipe may never end."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from kquorum.private_files import replacing
from kquorum.regular_files import LARGEST_WHOLE_BYTES, open_regular, read_regular
from kquorum.storage.file_system import POSIX

SECRET = b"a file of the operator"


def linked(path: Path) -> None:
    target = path.with_name("operator")
    target.write_bytes(SECRET)
    path.symlink_to(target)


def bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


OTHERS: dict[str, tuple[Callable[[Path], None], str]] = {
    "link": (linked, "symbolic link"),
    "pipe": (os.mkfifo, "no regular file"),
    "socket": (bound, "no regular file"),
    "folder": (Path.mkdir, "Is a directory"),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("read", [read_regular, POSIX.read, POSIX.map])
def test_what_is_no_regular_file_is_refused(read: Callable[[Path], bytes], name: str, tmp_path: Path) -> None:
    make, reason = OTHERS[name]
    path = tmp_path / "it"
    make(path)
    with pytest.raises(OSError, match=reason) as refused:
        read(path)
    assert refused.value.filename == str(path)


def test_a_link_that_the_operator_named_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "it"
    linked(path)
    with os.fdopen(open_regular(path, follows_links=True), "rb") as file:
        assert file.read() == SECRET


def test_a_sparse_file_is_not_read(tmp_path: Path) -> None:
    """It takes no room on the disk, and its zeros would fill the memory."""
    path = tmp_path / "quorum-state"
    path.touch()
    os.truncate(path, LARGEST_WHOLE_BYTES + 1)
    with pytest.raises(OSError, match="67,108,865 bytes, and a file of this kind has at most 67,108,864"):
        read_regular(path)


def test_a_file_that_was_not_finished_leaves_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "it").write_bytes(b"old")

    def interrupted() -> None:
        with replacing(tmp_path / "it") as file:
            file.write(b"new")
            raise KeyError

    with pytest.raises(KeyError):
        interrupted()
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("it", b"old")]
