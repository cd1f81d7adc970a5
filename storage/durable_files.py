"""Files that must be whole or absent after a crash, and folders that must remember their entries."""

import os
from contextlib import suppress
from pathlib import Path

from kquorum.storage.errors import FsyncFailed, StorageFailed, storage_failure
from kquorum.storage.file_system import POSIX, FileSystem


def sync_folder(folder: Path, fs: FileSystem = POSIX) -> None:
    """Make the folder's entries (created, renamed, removed files) durable; raises StorageFailed or FsyncFailed."""
    try:
        descriptor = fs.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise StorageFailed("open", folder, error) from error
    try:
        sync_descriptor(descriptor, folder, fs)
    finally:
        fs.close(descriptor)


def sync_descriptor(descriptor: int, path: Path, fs: FileSystem = POSIX) -> None:
    """Make the content of the open file `path` durable, not its name; raises FsyncFailed."""
    try:
        fs.fsync(descriptor)
    except OSError as error:
        raise FsyncFailed(path, error) from error


def list_names(folder: Path, fs: FileSystem = POSIX) -> list[str]:
    """What is in a folder, sorted; raises StorageFailed."""
    try:
        return fs.names(folder)
    except OSError as error:
        raise StorageFailed("list", folder, error) from error


def write_all(descriptor: int, data: bytes | bytearray | memoryview, fs: FileSystem = POSIX) -> None:
    """write(2) until everything is written; the kernel may take less than it is given."""
    written = fs.write(descriptor, data)
    if written == len(data):
        return
    rest = memoryview(data)[written:]
    while rest:
        rest = rest[fs.write(descriptor, rest) :]


def replace_file(path: Path, data: bytes, fs: FileSystem = POSIX) -> None:
    """Replace `path` by `data`, durable on return; after a crash the old or the new content is there, whole.

    The temporary file is Kafka's (`<name>.tmp`). It is fsynced before the rename, because some file systems
    would otherwise keep the new name with no content (KAFKA-15312). Raises StorageFull (the old content stands),
    StorageFailed or FsyncFailed.
    """
    temporary = path.with_name(path.name + ".tmp")
    try:
        _write_and_sync(temporary, data, fs)
        fs.rename(temporary, path)
    except OSError as error:
        with suppress(OSError):
            fs.unlink(temporary)
        raise storage_failure("replace", path, error) from error
    sync_folder(path.parent, fs)


def rename_durably(path: Path, target: Path, fs: FileSystem = POSIX) -> None:
    """Rename within a folder, durable on return; raises StorageFull, StorageFailed or FsyncFailed."""
    try:
        fs.rename(path, target)
    except OSError as error:
        raise storage_failure("rename", path, error) from error
    sync_folder(path.parent, fs)


def read_if_there(path: Path, fs: FileSystem = POSIX) -> bytes | None:
    """What is in a file; None if there is none. Raises StorageFailed."""
    try:
        return fs.read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageFailed("read", path, error) from error


def remove_file(path: Path, fs: FileSystem = POSIX) -> None:
    """Remove a file, if there is one; durable once the folder is synced. Raises StorageFailed."""
    try:
        with suppress(FileNotFoundError):
            fs.unlink(path)
    except OSError as error:
        raise StorageFailed("remove", path, error) from error


def _write_and_sync(path: Path, data: bytes, fs: FileSystem) -> None:
    descriptor = fs.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        write_all(descriptor, data, fs)
        sync_descriptor(descriptor, path, fs)
    finally:
        fs.close(descriptor)
