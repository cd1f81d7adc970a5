import subprocess
import sys
from pathlib import Path

import pytest

from kquorum.storage.errors import FolderLocked, StorageFailed
from kquorum.storage.folder_lock import FolderLock

HOLD = """
import sys
from pathlib import Path
from kquorum.storage.folder_lock import FolderLock
lock = FolderLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""
HOLD_AS_JAVA_DOES = """
import fcntl, sys
file = open(sys.argv[1] + "/.lock", "w")
fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("program", [HOLD, HOLD_AS_JAVA_DOES])
def test_a_second_process_is_refused_with_the_holder_of_the_folder(tmp_path: Path, program: str) -> None:
    root = str(Path(__file__).parents[3])
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=root,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(FolderLocked, match=f"{tmp_path} is in use by process {holder.pid}"):
            FolderLock(tmp_path)
        holder.kill()
        holder.wait()
        FolderLock(tmp_path).release()


def test_the_same_process_cannot_take_a_folder_twice(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    with pytest.raises(FolderLocked):
        FolderLock(tmp_path)
    lock.release()
    lock.release()
    FolderLock(tmp_path).release()
    assert (tmp_path / ".lock").read_bytes() == b""


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match=r"cannot open .*nowhere/\.lock: No such file"):
        FolderLock(tmp_path / "nowhere")
