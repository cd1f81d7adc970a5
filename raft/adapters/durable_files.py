"""Files that must be whole or absent after a crash, and folders that must remember their entries."""

import os
from contextlib import suppress
from pathlib import Path

from raft.adapters.errors import FsyncFailed, StorageFailed, storage_failure


def sync_folder(folder: Path) -> None:
    """Make the folder's entries (created, renamed, removed files) durable; raises StorageFailed or FsyncFailed."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise StorageFailed("open", folder, error) from error
    try:
        _sync(descriptor, folder)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make a file's content durable, not its name; raises StorageFailed or FsyncFailed."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise StorageFailed("open", path, error) from error
    try:
        _sync(descriptor, path)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """write(2) until everything is written; the kernel may take less than it is given."""
    written = os.write(descriptor, data)
    if written == len(data):
        return
    rest = memoryview(data)[written:]
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def replace_file(path: Path, data: bytes) -> None:
    """Replace `path` by `data`, durable on return; after a crash the old or the new content is there, whole.

    The temporary file is Kafka's (`<name>.tmp`). It is fsynced before the rename, because some file systems
    would otherwise keep the new name with no content (KAFKA-15312). Raises StorageFull (the old content stands),
    StorageFailed or FsyncFailed.
    """
    temporary = path.with_name(path.name + ".tmp")
    try:
        _write_and_sync(temporary, data)
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise storage_failure("replace", path, error) from error
    sync_folder(path.parent)


def rename_durably(path: Path, target: Path) -> None:
    """Rename within a folder, durable on return; raises StorageFull, StorageFailed or FsyncFailed."""
    try:
        path.rename(target)
    except OSError as error:
        raise storage_failure("rename", path, error) from error
    sync_folder(path.parent)


def remove_file(path: Path) -> None:
    """Remove a file, if there is one; durable once the folder is synced. Raises StorageFailed."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise StorageFailed("remove", path, error) from error


def _write_and_sync(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        write_all(descriptor, data)
        _sync(descriptor, path)
    finally:
        os.close(descriptor)


def _sync(descriptor: int, path: Path) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise FsyncFailed(path, error) from error
