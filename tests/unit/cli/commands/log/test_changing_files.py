"""What the tools read may be cut short by the node it belongs to, or be on a disk that fails: neither ends them."""

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kquorum.cli.commands.log.files import FileCopy
from kquorum.cli.main import run
from tests.support.log_faults import DAMAGED, SOUND
from tests.support.metadata_folders import FIRST, write_folder
from tests.support.tree import ROOT

SMALL, LARGE = 100_000, 40 * 1024 * 1024
READ_AFTER_A_CUT = """
import os, sys
from pathlib import Path
from kquorum.cli.commands.log.files import FileCopy
path = Path(sys.argv[1])
view = FileCopy(path).view
os.truncate(path, 10)
print(view[-1], len(view))
"""
VERIFY_WHILE_IT_IS_CUT = """
import os, sys
from pathlib import Path
from kquorum.cli.commands.log import verification
from kquorum.cli.main import run
walk_batches = verification.walk_batches
def cut_first(view):
    for path in Path(sys.argv[1]).glob("*.log"):
        os.truncate(path, 0)
    return walk_batches(view)
verification.walk_batches = cut_first
sys.exit(run(["log", "verify", sys.argv[1]]))
"""


def in_another_process(script: str, path: Path) -> tuple[int, str, str]:
    """A bus error must not end the tests."""
    ended = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    return ended.returncode, ended.stdout, ended.stderr


def sparse(path: Path, size: int) -> Path:
    with path.open("wb") as file:
        file.truncate(size - 1)
        file.seek(size - 1)
        file.write(b"*")
    return path


def no_room(*_arguments: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_what_was_opened_is_read_although_the_file_was_cut(tmp_path: Path, size: int) -> None:
    path = sparse(tmp_path / "file", size)
    assert in_another_process(READ_AFTER_A_CUT, path) == (0, f"{ord('*')} {size}\n", "")


def test_verify_goes_on_although_the_node_cuts_its_log(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "node")
    status, said, complained = in_another_process(VERIFY_WHILE_IT_IS_CUT, folder)
    assert status >= 0, f"ended by signal {-status}"
    assert "Traceback" not in complained
    assert "offsets 0 to 99" in said


@pytest.mark.parametrize("has_room", [True, False])
@pytest.mark.parametrize("size", [0, 1, SMALL, LARGE])
def test_it_is_an_exact_copy_also_of_what_was_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, has_room: bool
) -> None:
    path = tmp_path / "file"
    path.write_bytes((bytes(range(251)) * (size // 251 + 1))[:size])
    if not has_room:
        monkeypatch.setattr(tempfile, "TemporaryFile", no_room)
    file = FileCopy(path)
    file.release_to(size)
    assert file.view == path.read_bytes()
    assert file.view.readonly


def test_of_a_file_that_is_cut_while_it_is_copied_there_is_what_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sparse(tmp_path / "file", 2 * LARGE)
    preadv = os.preadv

    def cut_at_half(descriptor: int, buffers: list[memoryview], position: int) -> int:
        if position == LARGE:
            os.truncate(path, LARGE + 10)
        return preadv(descriptor, buffers, position)

    monkeypatch.setattr(os, "preadv", cut_at_half)
    assert len(FileCopy(path).view) == LARGE + 10


def test_verify_says_which_file_the_disk_cannot_deliver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_folder(tmp_path / "node")
    assert run(["log", "verify", str(folder)]) == SOUND
    capsys.readouterr()
    inode, preadv = (folder / f"{FIRST}.log").stat().st_ino, os.preadv

    def fail(descriptor: int, buffers: list[memoryview], position: int) -> int:
        if os.fstat(descriptor).st_ino == inode:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return preadv(descriptor, buffers, position)

    monkeypatch.setattr(os, "preadv", fail)
    assert run(["log", "verify", str(folder)]) == DAMAGED
    said = " ".join(capsys.readouterr().out.split())
    assert f"{FIRST}.log" in said
    assert "it cannot be read: Input/output error" in said
    with pytest.raises(OSError, match=rf"Input/output error.*{FIRST}\.log"):
        FileCopy(folder / f"{FIRST}.log")
