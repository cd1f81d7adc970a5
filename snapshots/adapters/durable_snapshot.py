"""The one way in which a snapshot gets into a folder: a partly written snapshot never has a snapshot's name.

    <name>-<random>.checkpoint.part  ->  fsync  ->  read back and checked  ->  renamed  ->  the folder's fsync

A crash before the rename leaves a `.part`, which the next start removes; one after it leaves a whole snapshot, or none.
"""

import os
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from crc32c import crc32c

from kquorum.snapshots.naming import CHECKPOINT_SUFFIX, PART_SUFFIX, SnapshotId
from kquorum.snapshots.outline import outline_of
from kquorum.storage.durable_files import remove_file, rename_durably, write_all
from kquorum.storage.errors import FsyncFailed, StorageFailed, StorageFull, is_no_space, storage_failure
from kquorum.storage.file_system import POSIX, FileSystem
from kquorum.storage.mapped_file import map_file
from kquorum.wire.record_batch import read_batch_header

_PIECE_BYTES = 1 << 20

# As Kafka does: a snapshot never changes.
_READ_ONLY = 0o444


class SnapshotExists(Exception):
    """There is a file of that name already; it is left as it is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(f"{path} exists already")


class WrittenOtherwise(Exception):
    """What was read back is not what was written; there is no file."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: what was read back is not what was written ({reason}); check the disk")


@dataclass(frozen=True, slots=True)
class WrittenSnapshot:
    """`record_count` counts data records."""

    path: Path
    size_in_bytes: int
    record_count: int


def no_objection(part: Path) -> str | None:  # noqa: ARG001 - every further check has this shape
    return None


def write_snapshot(
    path: Path,
    snapshot_id: SnapshotId,
    batches: Iterable[bytes],
    *,
    rest: Callable[[], None] = lambda: None,
    objection: Callable[[Path], str | None] = no_objection,
    fs: FileSystem = POSIX,
) -> WrittenSnapshot:
    """Write `path`, durable on return. The batches are taken one by one, so the snapshot is never in memory as a whole;
    `rest` is called between them. `objection` may say why the file, still a `.part`, must not get its name.

    Raises SnapshotExists, WrittenOtherwise, StorageFull, StorageFailed or FsyncFailed, or what `batches` and `rest`
    raise; but for FsyncFailed of the folder there is no file then.
    """
    if fs.exists(path):
        raise SnapshotExists(path)
    part = path.with_name(f"{path.name.removesuffix(CHECKPOINT_SUFFIX)}-{secrets.token_hex(8)}{PART_SUFFIX}")
    try:
        tally = _write(part, batches, rest, fs)
        _check(part, snapshot_id, tally, rest, fs)
        reason = objection(part)
        if reason is not None:
            raise WrittenOtherwise(path, reason)
        rename_durably(part, path, fs)
    except BaseException:
        with suppress(StorageFailed):
            remove_file(part, fs)
        raise
    return WrittenSnapshot(path, tally.size_in_bytes, tally.record_count)


@dataclass(slots=True)
class _Tally:
    """What was handed over, to be compared with what the disk has. The checksum is that of the whole file: those of the
    batches cover neither base offset nor epoch."""

    size_in_bytes: int = 0
    record_count: int = 0
    checksum: int = 0

    def add(self, batch: bytes) -> None:
        header = read_batch_header(batch)
        assert header.size_in_bytes == len(batch), "one whole batch at a time"
        self.size_in_bytes += len(batch)
        self.record_count += 0 if header.is_control else header.record_count
        self.checksum = crc32c(batch, self.checksum)


def _write(part: Path, batches: Iterable[bytes], rest: Callable[[], None], fs: FileSystem) -> _Tally:
    tally = _Tally()
    descriptor = _open(part, fs)
    try:
        for batch in batches:
            tally.add(batch)
            try:
                write_all(descriptor, batch, fs)
            except OSError as error:
                raise storage_failure("write", part, error) from error
            rest()
        try:
            fs.fsync(descriptor)
        except OSError as error:
            # A file system that finds out only now that it has no room for the bytes says so as honestly as any.
            raise (
                StorageFull("write", part, error) if is_no_space(error) else FsyncFailed(part, error)
            ) from error
    finally:
        fs.close(descriptor)
    return tally


def _open(part: Path, fs: FileSystem) -> int:
    try:
        return fs.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _READ_ONLY)
    except OSError as error:
        raise storage_failure("create", part, error) from error


def _check(
    part: Path, snapshot_id: SnapshotId, tally: _Tally, rest: Callable[[], None], fs: FileSystem
) -> None:
    """Every byte, then header, batches and footer as a reader would find them; raises WrittenOtherwise."""
    view = memoryview(map_file(part, fs))
    checksum = 0
    for start in range(0, len(view), _PIECE_BYTES):
        checksum = crc32c(view[start : start + _PIECE_BYTES], checksum)
        rest()
    outline = outline_of(view)
    rest()
    for what, found, expected in (
        ("bytes", len(view), tally.size_in_bytes),
        ("checksum", checksum, tally.checksum),
        ("fault", outline.fault, None),
        ("epoch", outline.epoch, snapshot_id.epoch),
        ("data records", outline.record_count, tally.record_count),
    ):
        if found != expected:
            raise WrittenOtherwise(part, f"{what}: {found} instead of {expected}")
