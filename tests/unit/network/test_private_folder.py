"""A folder for sockets: for this user alone, short, and removed though its owner was killed."""

import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kquorum.network.private_folder import PREFIX, SOCKET_NAME, PrivateFolder
from tests.support.cluster import PROJECT_ROOT

_KILLED = f"""
import os, signal, socket
from kquorum.network.private_folder import PrivateFolder
folder = PrivateFolder()
socket.socket(socket.AF_UNIX).bind(str(folder.path / "{SOCKET_NAME}"))
print(folder.path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def parent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The system's folder for such, as far as the code under test can tell."""
    with tempfile.TemporaryDirectory(prefix="kq-", dir="/tmp") as name:
        monkeypatch.setattr(tempfile, "tempdir", name)
        monkeypatch.setenv("TMPDIR", name)
        yield Path(name)


def listening(folder: Path) -> socket.socket:
    opened = socket.socket(socket.AF_UNIX)
    opened.bind(str(folder / SOCKET_NAME))
    return opened


def test_only_this_user_may_enter_and_it_goes_at_the_end(parent: Path) -> None:
    folder = PrivateFolder()
    assert folder.path.parent == parent
    assert stat.S_IMODE(folder.path.stat().st_mode) == stat.S_IRWXU
    with listening(folder.path):
        folder.remove()
        folder.remove()
    assert list(parent.iterdir()) == []


def test_a_socket_fits_whatever_the_systems_folder_is(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = parent / ("d" * 60)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    folder = PrivateFolder()
    with listening(folder.path), socket.socket(socket.AF_UNIX) as other:
        other.bind(str(folder.path / str(2**60)))
    folder.remove()
    assert not folder.path.exists()


def test_what_a_killed_process_has_left_is_removed_by_the_next(parent: Path) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED], cwd=PROJECT_ROOT, capture_output=True, text=True, check=False
    )
    left_over = Path(killed.stdout.strip())
    assert left_over.is_dir(), killed.stderr
    folder = PrivateFolder()
    assert not left_over.exists()
    folder.remove()


def test_what_is_in_use_or_about_to_be_or_no_folder_of_ours_stays(parent: Path) -> None:
    in_use = PrivateFolder()
    about_to_be = parent / f"{PREFIX}about-to"
    about_to_be.mkdir()
    elsewhere = parent / "elsewhere"
    elsewhere.mkdir()
    (parent / f"{PREFIX}link").symlink_to(elsewhere)
    (parent / f"{PREFIX}file").write_text("")
    with listening(in_use.path), listening(elsewhere):
        folder = PrivateFolder()
        kept = {in_use.path, about_to_be, elsewhere, parent / f"{PREFIX}link", parent / f"{PREFIX}file"}
        assert set(parent.iterdir()) == kept | {folder.path}
        assert (elsewhere / SOCKET_NAME).exists()
        folder.remove()
    in_use.remove()
