"""What an archive does to files: each step durable before the next, none of them harmful if it is the last one."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from kquorum.spark_replay.archive.manifest import FileEntry
from kquorum.spark_replay.decode.bases import is_whole_snapshot
from kquorum.spark_replay.decode.files import map_listed, open_listed
from kquorum.spark_replay.decode.sources import METADATA_FOLDER, FileKind, LogFile
from kquorum.spark_replay.folder_lock import FolderTaken, locked
from kquorum.wire.log_scan import Damage, scan_batches

PART_SUFFIX: Final = ".part"
LOCK: Final = ".archive.lock"
_PIECE_BYTES: Final = 1024 * 1024
_PLACES_NAMED: Final = 10


class ArchiveLocked(Exception):
    """Another run is at work in this archive."""


class ChangedMeanwhile(Exception):
    """The source file is not as long as it was when its copying began."""


@dataclass(frozen=True, slots=True)
class Digest:
    """Of a whole file, and of its first bytes, as many as were asked for."""

    sha256: str
    size_in_bytes: int
    prefix_sha256: str


class ArchiveFiles:
    """The operations that change an archive; tests stop them anywhere."""

    def make_folder(self, folder: Path) -> None:
        """With those above it, readable by this user only: a metadata log holds credentials."""
        if not folder.is_dir():
            self.make_folder(folder.parent)
            folder.mkdir(mode=0o700)
            self.sync_folder(folder.parent)

    def copy(self, source: Path, target: Path, limit: int | None = None) -> Digest:
        """Copy the first `limit` bytes, or all, to `target`, durable but for its name.

        Raises ChangedMeanwhile, FileNotFoundError where the source is gone, OSError.
        """
        whole, copied = hashlib.sha256(), 0
        with open_listed(source) as read, _opened(target) as written:
            size = os.fstat(read.fileno()).st_size if limit is None else limit
            while piece := read.read(min(_PIECE_BYTES, size - copied)):
                self.write(written.fileno(), piece)
                whole.update(piece)
                copied += len(piece)
            self.flush(written.fileno())
            if copied != size or (limit is None and os.fstat(read.fileno()).st_size != size):
                raise ChangedMeanwhile(str(source))
        return Digest(whole.hexdigest(), copied, whole.hexdigest())

    def write_whole(self, path: Path, content: bytes) -> None:
        """Replace `path`: after a crash the old or the new content is there."""
        part = path.with_name(f".{path.name}{PART_SUFFIX}")
        with _opened(part) as written:
            self.write(written.fileno(), content)
            self.flush(written.fileno())
        self.rename(part, path)

    def rename(self, path: Path, target: Path) -> None:
        """Durable on return."""
        path.replace(target)
        self.sync_folder(target.parent)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def write(self, descriptor: int, piece: bytes) -> None:
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(descriptor, rest) :]

    def flush(self, descriptor: int) -> None:
        os.fsync(descriptor)

    def sync_folder(self, folder: Path) -> None:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _opened(path: Path) -> BinaryIO:
    """Open for writing from the beginning, readable by this user only."""
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


@contextmanager
def archive_locked(folder: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold the archive alone, or `shared` with other readers, until the process ends. Raises ArchiveLocked and OSError.

    A reader needs no lock where there is none to take: an archive on a disk that cannot be written.
    """
    if shared and not (folder / LOCK).exists():
        yield
        return
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(folder / LOCK, shared=shared))
        except FolderTaken:
            raise ArchiveLocked(f"another `audit archive` is at work in {folder}") from None
        yield


def link_in(member_folder: Path) -> Path | None:
    """The folder of a member, or that of its log, where one of them is a symbolic link: it may lead anywhere."""
    folders = (member_folder, member_folder / METADATA_FOLDER)
    return next((folder for folder in folders if folder.is_symlink()), None)


def digest(path: Path, prefix_bytes: int = 0) -> Digest:
    """Raises OSError."""
    whole, prefix, size = hashlib.sha256(), hashlib.sha256(), 0
    with open_listed(path) as read:
        while piece := read.read(_PIECE_BYTES):
            whole.update(piece)
            prefix.update(piece[: max(prefix_bytes - size, 0)])
            size += len(piece)
    return Digest(whole.hexdigest(), size, prefix.hexdigest())


def described(
    path: Path, file: LogFile, copied: Digest, *, member: str, is_open: bool, now_ms: int
) -> FileEntry:
    """The entry of `file`, whose bytes to archive are in `path`."""
    is_log = file.kind is FileKind.LOG
    ends = [file.base_offset or 0] if is_log else []
    epochs, times, places = list[int](), list[int](), list[str]()
    batches = records = damaged = 0
    doubtful = -1
    for item in scan_batches(map_listed(path), base_offset=file.base_offset if is_log else 0):
        if isinstance(item, Damage):
            damaged += 1
            places += [f"position {item.position}: {item.reason}"] if damaged <= _PLACES_NAMED else []
            doubtful = item.position
            continue
        header = item.header
        batches, records = batches + 1, records + header.record_count
        if (
            is_log and item.position != doubtful
        ):  # else its offset is the damage, unless the next batch follows it
            ends = [header.next_offset]
        epochs = [*epochs[:1], header.partition_leader_epoch]
        times = [*times[:1], header.max_timestamp_ms]
    if file.kind is FileKind.SNAPSHOT and not damaged and not is_whole_snapshot(path):
        damaged, places = 1, ["the snapshot has no header or no footer"]
    return FileEntry(
        member=member,
        name=file.name,
        file_kind=file.kind,
        size_in_bytes=copied.size_in_bytes,
        sha256=copied.sha256,
        archived_ms=now_ms,
        base_offset=file.base_offset,
        end_offset=ends[0] if ends else file.end_offset,
        first_epoch=epochs[0] if epochs else None,
        last_epoch=epochs[-1] if epochs else None,
        first_timestamp_ms=times[0] if times else None,
        last_timestamp_ms=times[-1] if times else None,
        batches=batches,
        records=records,
        is_open=is_open,
        damaged_places=damaged,
        damage=tuple(places),
    )


def sound_bytes(path: Path, base_offset: int | None) -> int:
    """How many bytes of a segment that is being written are whole batches, from its beginning."""
    end = 0
    for item in scan_batches(map_listed(path), base_offset=base_offset):
        if isinstance(item, Damage):
            break
        end = item.position + len(item.data)
    return end
