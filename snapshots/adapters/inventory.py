"""What the folder of a metadata log holds, by size and age: what the retention of snapshots is decided on."""

import errno
import re
from pathlib import Path

from kquorum.snapshots.naming import SnapshotId, snapshot_id_of
from kquorum.snapshots.reader import SnapshotReader
from kquorum.snapshots.retention import KeptSegment, KeptSnapshot
from kquorum.storage.errors import StorageFailed
from kquorum.storage.file_system import POSIX, READ_LISTED, FileSystem
from kquorum.wire.errors import DecodeError
from kquorum.wire.record_batch import HEADER_BYTES, read_batch_header

# A segment that is not the first to be durable yet has a name of its own (see storage.segment).
_SEGMENT = re.compile(r"(\d{20})\.log(\.rolling)?")
# Files are renamed and removed in other threads; then a link, a pipe and a socket.
_PASSED_OVER = (errno.ENOENT, errno.ELOOP, errno.ESPIPE, errno.ENXIO)


def list_files(
    folder: Path, fs: FileSystem = POSIX
) -> tuple[tuple[KeptSegment, ...], tuple[KeptSnapshot, ...]]:
    """Segments and finished snapshots; what goes away meanwhile is left out, and links, pipes and the like. Raises
    StorageFailed."""
    segments: list[KeptSegment] = []
    snapshots: list[KeptSnapshot] = []
    try:
        for name in fs.names(folder):
            snapshot_id = snapshot_id_of(name)
            match = _SEGMENT.fullmatch(name)
            try:
                if snapshot_id is not None:
                    snapshots.append(_snapshot(folder / name, snapshot_id, fs))
                elif match is not None:
                    segments.append(KeptSegment(int(match[1]), _size(folder / name, fs)))
            except OSError as error:
                if error.errno not in _PASSED_OVER:
                    raise
    except OSError as error:
        raise StorageFailed("list", folder, error) from error
    return tuple(segments), tuple(snapshots)


def _size(path: Path, fs: FileSystem) -> int:
    descriptor = fs.open(path, READ_LISTED)
    try:
        return fs.size(descriptor)
    finally:
        fs.close(descriptor)


def _snapshot(path: Path, snapshot_id: SnapshotId, fs: FileSystem) -> KeptSnapshot:
    descriptor = fs.open(path, READ_LISTED)
    try:
        return KeptSnapshot(snapshot_id, fs.size(descriptor), _timestamp_ms(descriptor, fs))
    finally:
        fs.close(descriptor)


def _timestamp_ms(descriptor: int, fs: FileSystem) -> int | None:
    """What the header says of the last record; None where the file does not begin with a sound header."""
    try:
        size = read_batch_header(fs.pread(descriptor, HEADER_BYTES, 0)).size_in_bytes
        return SnapshotReader(fs.pread(descriptor, size, 0)).last_contained_log_timestamp_ms
    except DecodeError:
        return None
