"""What the tests of the faulty disk stand on: a folder, its disk, and a process that lives there."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.jepsen.disk.build import Shim, ShimUnavailable
from tests.jepsen.disk.faulty_disk import FaultyDisk
from tests.jepsen.disk.puppet import Puppet

APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND
OLD = "old content " * 100


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return Shim.build(tmp_path_factory.getbasetemp() / "shim")
    except ShimUnavailable as error:
        pytest.skip(str(error))


@dataclass
class Rig:
    """A folder with a durable file `old`, a disk, and the puppet that lives on it."""

    folder: Path
    disk: FaultyDisk
    puppet: Puppet

    def call(self, name: str, *arguments: Any) -> Any:
        return self.puppet.call(name, *arguments)

    def error_of(self, name: str, *arguments: Any) -> int | None:
        return self.puppet.ask(name, *arguments)[1]

    def cut(self, seed: int | None = None) -> dict[str, Any]:
        """Kill the puppet and cut the power; with a seed, something may be left."""
        self.puppet.kill()
        return self.disk.cut_power(Random(seed), tear=seed is not None)

    def restart(self) -> None:
        self.puppet.kill()
        self.puppet = Puppet(self.disk, self.folder)

    def names(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}

    def read(self, name: str) -> str:
        return (self.folder / name).read_text("latin-1")


@pytest.fixture
def rig(shim: Path, tmp_path: Path) -> Iterator[Rig]:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "old").write_text(OLD)
    disk = FaultyDisk(shim, folder, tmp_path / "state")
    made = Rig(folder, disk, Puppet(disk, folder))
    try:
        yield made
    finally:
        made.puppet.kill()
