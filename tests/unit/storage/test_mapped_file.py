"""Files that the disk cannot deliver: an error that names the file, where a mapping would end the process."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kquorum.storage.errors import StorageFailed
from kquorum.storage.mapped_file import map_file
from tests.support.storage.log_parts import FIRST, batch, recover, write_log

PIECE_BYTES = 1024 * 1024
SIZE = 2 * PIECE_BYTES + 100


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "large"
    path.write_bytes(bytes(range(250)) * (SIZE // 250 + 1))
    os.truncate(path, SIZE)
    return path


def at_position(patch: pytest.MonkeyPatch, least: int, do: Callable[[], None]) -> None:
    """Do something before the first read from `least` or behind it."""
    preadv = os.preadv
    done: list[int] = []

    def read(descriptor: int, buffers: list[bytearray], position: int) -> int:
        if position >= least and not done:
            done.append(position)
            do()
        return preadv(descriptor, buffers, position)

    patch.setattr(os, "preadv", read)


def fail() -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_all_of_a_file_is_read_before_it_is_mapped(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    preadv = os.preadv

    def counted(descriptor: int, buffers: list[bytearray], position: int) -> int:
        read.append(preadv(descriptor, buffers, position))
        return read[-1]

    monkeypatch.setattr(os, "preadv", counted)
    assert bytes(map_file(large)) == large.read_bytes()
    assert read == [PIECE_BYTES, PIECE_BYTES, 100]


@pytest.mark.parametrize("least", [0, 1, SIZE - PIECE_BYTES])
def test_a_sector_that_cannot_be_read_is_an_error_that_names_the_file(
    large: Path, monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    at_position(monkeypatch, least, fail)
    with pytest.raises(StorageFailed, match=r"large.*Input/output error"):
        map_file(large)


@pytest.mark.parametrize("left", [0, 10, PIECE_BYTES + 10])
def test_a_file_that_becomes_shorter_is_an_error_that_names_the_file(
    large: Path, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    at_position(monkeypatch, PIECE_BYTES, lambda: os.truncate(large, left))
    with pytest.raises(
        StorageFailed, match=r"large.*it became shorter while it was read: \d+ bytes of 2097252"
    ):
        map_file(large)


def test_a_file_cut_between_reading_and_mapping_is_an_error_too(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preadv = os.preadv

    def read(descriptor: int, buffers: list[bytearray], position: int) -> int:
        count = preadv(descriptor, buffers, position)
        if position + count == SIZE:
            os.truncate(large, 10)
        return count

    monkeypatch.setattr(os, "preadv", read)
    with pytest.raises(StorageFailed, match=r"large.*it became shorter while it was read"):
        map_file(large)


def test_a_log_on_such_a_disk_does_not_open_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(tmp_path, [batch(0), batch(1), batch(2)])
    at_position(monkeypatch, 0, fail)
    with pytest.raises(StorageFailed, match=rf"{FIRST}.*Input/output error"):
        recover(tmp_path)
