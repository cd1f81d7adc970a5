"""The port between the storage and the disk: POSIX's calls by their names, raising OSError as the kernel would.

Everything that must survive a power cut goes through it, so that tests can put a disk in its place which forgets what
was not flushed, tears, runs full or fails (`tests/support/fault_file_system.py`), held to the same contract.
"""

import errno
import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kquorum.regular_files import open_regular, read_regular
from kquorum.storage.spare_descriptors import SpareDescriptors

Content = mmap.mmap | bytes
_PIECE_BYTES = 1024 * 1024
# For `FileSystem.open`, of a file that was found by its name: links are refused, and a pipe is not waited for.
READ_LISTED = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class FileStatus:
    """What stat(2) says of a file: its length in bytes, and when its content was last changed."""

    size: int
    modified_ms: int


class FileSystem(Protocol):
    """Content is sure once its file was flushed, names once their folder was; nothing else is sure."""

    def open(self, path: Path, flags: int, mode: int = 0o644) -> int:
        """open(2) of what is closed again soon; a folder is opened with O_DIRECTORY, to be flushed."""
        ...

    def open_for_long(self, path: Path, flags: int, mode: int = 0o644) -> int:
        """As `open`, of what stays open: it never takes a descriptor that is kept back for the others."""
        ...

    def close(self, descriptor: int) -> None: ...

    def write(self, descriptor: int, data: bytes | bytearray | memoryview) -> int:
        """write(2): how many bytes were taken, perhaps fewer than given."""
        ...

    def pwrite(self, descriptor: int, data: bytes | memoryview, position: int) -> int: ...

    def pread(self, descriptor: int, size: int, position: int) -> bytes: ...

    def size(self, descriptor: int) -> int: ...

    def truncate(self, descriptor: int, size: int) -> None: ...

    def allocate(self, descriptor: int, size: int) -> None:
        """posix_fallocate(3) from the file's beginning: the space is the file's, whatever happens to the disk."""
        ...

    def fsync(self, descriptor: int) -> None: ...

    def fdatasync(self, descriptor: int) -> None: ...

    def rename(self, path: Path, target: Path) -> None:
        """rename(2): a file that exists by the target's name is replaced. A folder takes with it what it holds."""
        ...

    def unlink(self, path: Path) -> None:
        """Raises FileNotFoundError when there is none."""
        ...

    def make_folder(self, path: Path) -> None:
        """With its parents; one that exists already is left as it is."""
        ...

    def names(self, folder: Path) -> list[str]:
        """What is in a folder, sorted."""
        ...

    def exists(self, path: Path) -> bool:
        """Never raises: what cannot be looked at is not there, and the next attempt to open it says why."""
        ...

    def read(self, path: Path) -> bytes:
        """A small file's whole content."""
        ...

    def status(self, path: Path) -> FileStatus: ...

    def is_folder(self, path: Path) -> bool:
        """Never raises."""
        ...

    def set_modified(self, path: Path, modified_ms: int) -> None:
        """utimensat(2): for a copy that stands in the original's place."""
        ...

    def remove_folder(self, path: Path) -> None:
        """rmdir(2): an empty one."""
        ...

    def map(self, path: Path) -> Content:
        """A large file's content, without a copy of it all. What cannot be read is an OSError here, at once."""
        ...

    def free_bytes(self, folder: Path) -> int:
        """What an unprivileged process may still write there."""
        ...


def _own(flags: int) -> int:
    """A file that is written is never reached through a link: the author of the folder chooses where a link leads."""
    return flags | os.O_CLOEXEC | (os.O_NOFOLLOW if flags & os.O_CREAT else 0)


class PosixFileSystem:
    """Satisfies `FileSystem` by the operating system. `spares` may keep descriptors back for it."""

    def __init__(self) -> None:
        self.spares = SpareDescriptors()

    def open(self, path: Path, flags: int, mode: int = 0o644) -> int:
        return self.spares.with_spare(lambda: os.open(path, _own(flags), mode))

    def open_for_long(self, path: Path, flags: int, mode: int = 0o644) -> int:
        return os.open(path, _own(flags), mode)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)
        self.spares.take_back()

    def write(self, descriptor: int, data: bytes | bytearray | memoryview) -> int:
        return os.write(descriptor, data)

    def pwrite(self, descriptor: int, data: bytes | memoryview, position: int) -> int:
        return os.pwrite(descriptor, data, position)

    def pread(self, descriptor: int, size: int, position: int) -> bytes:
        return os.pread(descriptor, size, position)

    def size(self, descriptor: int) -> int:
        return os.fstat(descriptor).st_size

    def truncate(self, descriptor: int, size: int) -> None:
        os.ftruncate(descriptor, size)

    def allocate(self, descriptor: int, size: int) -> None:
        os.posix_fallocate(descriptor, 0, size)

    def fsync(self, descriptor: int) -> None:
        os.fsync(descriptor)

    def fdatasync(self, descriptor: int) -> None:
        os.fdatasync(descriptor)

    def rename(self, path: Path, target: Path) -> None:
        path.replace(target)

    def unlink(self, path: Path) -> None:
        path.unlink()

    def make_folder(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)

    def names(self, folder: Path) -> list[str]:
        return sorted(self.spares.for_a_while(lambda: os.listdir(folder)))  # noqa: PTH208 - names are wanted, not paths

    def exists(self, path: Path) -> bool:
        try:
            return path.exists()
        except OSError:
            return False

    def read(self, path: Path) -> bytes:
        return self.spares.for_a_while(lambda: read_regular(path))

    def status(self, path: Path) -> FileStatus:
        found = path.stat()
        return FileStatus(found.st_size, found.st_mtime_ns // 1_000_000)

    def is_folder(self, path: Path) -> bool:
        try:
            return path.is_dir()
        except OSError:
            return False

    def set_modified(self, path: Path, modified_ms: int) -> None:
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def remove_folder(self, path: Path) -> None:
        path.rmdir()

    def map(self, path: Path) -> Content:
        # A mapping holds a descriptor of its own.
        return self.spares.for_a_while(lambda: _map(path))

    def free_bytes(self, folder: Path) -> int:
        found = os.statvfs(folder)
        return found.f_bavail * found.f_frsize


def _map(path: Path) -> Content:
    with os.fdopen(open_regular(path), "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if size == 0:
            return b""
        _read_through(file.fileno(), size)
        try:
            return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        except ValueError as error:
            raise OSError(errno.EIO, f"it became shorter while it was read ({error})") from error


def _read_through(descriptor: int, size: int) -> None:
    """Read all of a file that is about to be mapped, and throw it away; raises OSError.

    A page of a mapping that cannot be read ends the process with SIGBUS, and no message. After this the pages are in
    memory, so the mapping costs no second read. It also waits for the disk without the interpreter's lock.
    """
    piece = bytearray(min(size, _PIECE_BYTES))
    position = 0
    while position < size:
        count = os.preadv(descriptor, [piece], position)
        if count == 0:
            raise OSError(errno.EIO, f"it became shorter while it was read: {position} bytes of {size}")
        position += count


POSIX = PosixFileSystem()
