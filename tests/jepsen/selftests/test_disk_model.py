"""The shim's disk agrees with the disk that the simulations run on, whatever is done to it and whenever it ends."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.jepsen.disk.faulty_disk import FaultyDisk
from tests.jepsen.disk.rig import Rig, rig, shim
from tests.support.fault_disk_parts import SECTOR_BYTES, Inode, apply
from tests.support.fault_file_system import FaultFileSystem, refused

__all__ = ["rig", "shim"]
FOLDER = Path("/disk")
NEW = os.O_RDWR | os.O_CREAT
STEPS = 150


def error_of(call: Callable[[], object]) -> int | None:
    try:
        call()
    except OSError as error:
        return error.errno
    return None


@dataclass
class Twins:
    """The same calls on the shim's disk and on the model; descriptors by the order of their opening."""

    rig: Rig
    model: FaultFileSystem = field(default_factory=lambda: FaultFileSystem(FOLDER))
    opened: list[tuple[int, int]] = field(default_factory=list)

    def step(self, random_source: Random) -> None:
        name, target = random_source.choice("abcd"), random_source.choice("abcd")
        flags = random_source.choice((NEW, NEW | os.O_APPEND, NEW | os.O_TRUNC, NEW | os.O_EXCL, os.O_RDWR))
        what = random_source.choices(
            (
                "open",
                "write",
                "truncate",
                "allocate",
                "fsync",
                "fail",
                "folder",
                "rename",
                "unlink",
                "restart",
            ),
            (4, 9, 3, 1, 4, 0.5, 2, 2, 1, 0.5),
        )[0]
        if what == "open":
            self._open(name, flags)
        elif what == "folder":
            self.rig.call("sync_folder")
            self.sync_model()
        elif what == "rename":
            self._both(("rename", name, target), lambda: self.model.rename(FOLDER / name, FOLDER / target))
        elif what == "unlink":
            self._both(("unlink", name), lambda: self.model.unlink(FOLDER / name))
        elif what == "restart":
            self.rig.restart()
            self.model, self.opened = self.model.killed(), []
        elif self.opened:
            self._on_descriptor(what, *random_source.choice(self.opened), random_source)

    def _open(self, name: str, flags: int) -> None:
        found, error = self.rig.puppet.ask("open", name, flags)
        fakes: list[int] = []
        assert error_of(lambda: fakes.append(self.model.open(FOLDER / name, flags))) == error
        self.opened += [(found, fake) for fake in fakes]

    def sync_model(self) -> None:
        self.model.fsync(self.model.open(FOLDER, os.O_RDONLY | os.O_DIRECTORY))

    def _on_descriptor(self, what: str, real: int, fake: int, random_source: Random) -> None:
        text = random_source.choice("xyz") * random_source.randint(1, 2_000)
        size = random_source.randint(1, 3_000)
        if what == "write":
            self._both(("write", real, text), lambda: self.model.write(fake, text.encode()))
        elif what == "truncate":
            self._both(("ftruncate", real, size), lambda: self.model.truncate(fake, size))
        elif what == "allocate":
            self._both(("posix_fallocate", real, 0, size), lambda: self.model.allocate(fake, size))
        elif what == "fsync":
            self._both(("fsync", real), lambda: self.model.fsync(fake))
        else:
            self._fail(real, fake)

    def _fail(self, real: int, fake: int) -> None:
        def fail(_count: int, _name: str) -> None:
            raise refused(errno.EIO)

        self.rig.disk.fail_fsync(1)
        self.model.on_call = fail
        self._both(("fsync", real), lambda: self.model.fsync(fake))
        self.model.on_call = lambda _count, _name: None

    def _both(self, call: tuple[Any, ...], model: Callable[[], object]) -> None:
        assert self.rig.error_of(*call) == error_of(model), call

    def durable(self) -> dict[str, bytes]:
        """As if nothing was left of what is pending."""
        entries = self.model.folders[FOLDER].durable
        return {name: self.model.inodes[inode].durable for name, inode in entries.items()}

    def found(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.rig.folder.iterdir()}


@pytest.fixture
def twins(rig: Rig) -> Twins:
    (rig.folder / "old").unlink()
    return Twins(rig)


@pytest.mark.parametrize("seed", range(12))
def test_after_a_power_cut_there_is_what_the_model_holds_for_durable(twins: Twins, seed: int) -> None:
    random_source = Random(seed)
    for _ in range(random_source.randint(STEPS // 2, STEPS)):
        twins.step(random_source)
    twins.rig.cut()
    assert twins.found() == twins.durable()


@pytest.mark.parametrize("seed", range(12))
def test_what_a_torn_power_cut_leaves_the_model_could_have_left(twins: Twins, seed: int) -> None:
    random_source = Random(1_000 + seed)
    for _ in range(random_source.randint(STEPS // 2, STEPS)):
        twins.step(random_source)
    twins.rig.call("sync_folder")
    twins.sync_model()
    twins.rig.cut(seed)
    found = twins.found()
    entries = twins.model.folders[FOLDER].durable
    assert found.keys() == entries.keys()
    for name, content in found.items():
        check_possible(twins.model.inodes[entries[name]], content)


def check_possible(inode: Inode, content: bytes) -> None:
    """Each sector is one that was ever there since the flush, and the file as long as it was, or at a sector's end."""
    versions = [bytearray(inode.durable)]
    for change in inode.changes:
        versions.append(bytearray(versions[-1]))
        apply(versions[-1], change)
    sizes = [len(version) for version in versions]
    assert min(sizes) <= len(content) <= max(sizes)
    assert len(content) in sizes or len(content) % SECTOR_BYTES == 0
    for start in range(0, len(content), SECTOR_BYTES):
        sector = content[start : start + SECTOR_BYTES]
        padded = [bytes(each[start : start + SECTOR_BYTES].ljust(SECTOR_BYTES, b"\0")) for each in versions]
        assert any(each.startswith(sector) for each in padded), start


# A process that is killed anywhere

_BYTES = 100
_WRITER = """
import os, sys, threading
os.chdir(sys.argv[1])
log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
os.fsync(folder)
start = os.fstat(log).st_size // %(bytes)d
written = start

def write():
    global written
    while True:
        os.write(log, b"%%0%(bytes)dd" %% written)
        written += 1

def replace():
    number = 0
    while True:
        part = os.open("state.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(part, b"%%0700d" %% number)
        os.fsync(part)
        os.close(part)
        os.rename("state.tmp", "state")
        os.fsync(folder)
        number += 1

for work in (write, replace):
    threading.Thread(target=work, daemon=True).start()
while True:
    end = written
    os.fdatasync(log)
    print(end, flush=True)
"""


@pytest.fixture
def disk(shim: Path, tmp_path: Path) -> FaultyDisk:
    (tmp_path / "data").mkdir()
    return FaultyDisk(shim, tmp_path / "data", tmp_path / "state")


def write_and_kill(disk: FaultyDisk, folder: Path, acknowledgements: int) -> int:
    """How many records the last acknowledgement covered."""
    script = _WRITER % {"bytes": _BYTES}
    command = [sys.executable, "-S", "-c", script, str(folder)]
    environment = {**os.environ, **disk.environment()}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        heard = [process.stdout.readline() for _ in range(acknowledgements)]
        process.kill()
        # What it had said before it died counts as well.
        lines = [*heard, *process.stdout.read().splitlines(keepends=True)]
    return int([each for each in lines if each.endswith("\n")][-1])


@pytest.mark.parametrize("seed", range(6))
def test_what_was_reported_durable_to_many_threads_survives_a_kill_at_any_moment(
    disk: FaultyDisk, tmp_path: Path, seed: int
) -> None:
    random_source = Random(seed)
    for _life in range(2):
        acknowledged = write_and_kill(disk, tmp_path / "data", random_source.randint(1, 30))
        disk.cut_power(random_source, tear=seed % 2 == 0)
        log, state = tmp_path / "data" / "log", tmp_path / "data" / "state"
        content = log.read_bytes()
        expected = b"".join(b"%0100d" % number for number in range(acknowledged))
        assert content[: len(expected)] == expected
        assert not state.exists() or len(state.read_bytes()) == 700
        log.write_bytes(expected)
        disk.forget()
