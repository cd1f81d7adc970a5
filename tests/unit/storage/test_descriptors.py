"""A process that may open no more files: nothing of it ends the node, and the log rolls once it may again."""

import errno
import logging
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kquorum.storage import segment
from kquorum.storage.errors import StorageFailed
from kquorum.storage.file_system import PosixFileSystem
from kquorum.wire.log_batch import LogBatch
from tests.support.fault_file_system import FaultFileSystem, refused
from tests.support.storage.log_parts import FOLDER, batch, flush, new_log, recovered_batches

SIZE = len(batch(0).data)
TWO_A_SEGMENT = 2 * SIZE


class Descriptors(FaultFileSystem):
    """`left` of them for files that stay open."""

    def __init__(self) -> None:
        super().__init__(FOLDER)
        self.left: int | None = None

    def open_for_long(self, path: Path, flags: int, mode: int = 0o644) -> int:
        if self.left is not None:
            if self.left == 0:
                raise refused(errno.EMFILE, path)
            self.left -= 1
        return super().open_for_long(path, flags, mode)

    @property
    def segments(self) -> list[int]:
        return [int(name.partition(".")[0]) for name in self.names(FOLDER) if name.endswith(".log")]


def batches(start: int, end: int) -> list[LogBatch]:
    return [batch(offset) for offset in range(start, end)]


def test_the_last_segment_grows_while_no_file_can_be_opened(caplog: pytest.LogCaptureFixture) -> None:
    fs = Descriptors()
    log = new_log(FOLDER, TWO_A_SEGMENT, fs)
    log.append(batches(0, 2))
    fs.left = 0
    with caplog.at_level(logging.ERROR):
        log.append(batches(2, 5))
        log.append(batches(5, 6))
    flush(log)
    assert log.end_offset == 6
    assert fs.segments == [0]
    (record,) = caplog.records
    assert "ulimit -n" in record.getMessage()
    fs.left = None
    log.append(batches(6, 9))
    flush(log)
    assert log.end_offset == 9
    assert fs.segments == [0, 6, 8]
    log.close()
    assert recovered_batches(fs) == batches(0, 9)


@pytest.mark.parametrize("left", [1, 2])
def test_a_segment_without_index_files_is_as_good(left: int) -> None:
    fs = Descriptors()
    log = new_log(FOLDER, TWO_A_SEGMENT, fs)
    log.append(batches(0, 2))
    fs.left = left
    log.append(batches(2, 3))
    flush(log)
    assert log.end_offset == 3
    assert fs.segments == [0, 2]
    fs.left = None
    log.append(batches(3, 5))
    flush(log)
    log.close()
    assert recovered_batches(fs) == batches(0, 5)


def test_a_segment_does_not_grow_beyond_what_its_indexes_can_say(monkeypatch: pytest.MonkeyPatch) -> None:
    fs = Descriptors()
    log = new_log(FOLDER, TWO_A_SEGMENT, fs)
    log.append(batches(0, 2))
    fs.left = 0
    monkeypatch.setattr(segment, "_POSITION_MAX", 3 * SIZE)
    log.append(batches(2, 3))
    with pytest.raises(StorageFailed, match="cannot open"):
        log.append(batches(3, 4))


def test_another_refusal_stays_fatal() -> None:
    fs = Descriptors()
    log = new_log(FOLDER, TWO_A_SEGMENT, fs)
    log.append(batches(0, 2))

    def refuse(_count: int, name: str) -> None:
        if name == "open":
            raise refused(errno.EIO)

    fs.on_call = refuse
    with pytest.raises(StorageFailed):
        log.append(batches(2, 3))


# What the operating system grants


@contextmanager
def no_descriptors_left() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open(os.devnull, os.O_RDONLY)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + 1, hard))
    try:
        while True:
            try:
                taken.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                break
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in taken:
            os.close(descriptor)


def test_what_is_closed_again_gets_a_descriptor_that_was_kept_back(tmp_path: Path) -> None:
    fs = PosixFileSystem()
    fs.spares.hold(1)
    path = tmp_path / "file"
    path.write_bytes(b"content")
    try:
        with no_descriptors_left():
            with pytest.raises(OSError, match="Too many open files"):
                fs.open_for_long(path, os.O_RDONLY)
            for _ in range(3):
                assert fs.read(path) == b"content"
                with pytest.raises(OSError, match="Too many open files"):
                    fs.open_for_long(path, os.O_RDONLY)
                assert fs.names(tmp_path) == ["file"]
                with pytest.raises(OSError, match="Too many open files"):
                    fs.open_for_long(path, os.O_RDONLY)
                descriptor = fs.open(path, os.O_RDONLY)
                with pytest.raises(OSError, match="Too many open files"):
                    fs.open(path, os.O_RDONLY)
                fs.close(descriptor)
    finally:
        fs.spares.release()


def test_nothing_is_kept_back_unless_it_is_asked_for(tmp_path: Path) -> None:
    with no_descriptors_left(), pytest.raises(OSError, match="Too many open files"):
        PosixFileSystem().open(tmp_path, os.O_RDONLY)
