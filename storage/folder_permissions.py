"""Who may read a data folder. It holds the keys of SCRAM users and delegation tokens, so the folder is its owner's.

The folder itself is what is checked: where others cannot enter it, the permissions of the files in it do not matter.
The owner's group may read (0750), as backups are often made that way; PostgreSQL draws the line at the same place.
"""

import os
import stat
from pathlib import Path

from kquorum.storage.errors import FolderExposed, StorageFailed

_FORBIDDEN = stat.S_IWGRP | stat.S_IRWXO
PRIVATE_UMASK = 0o077


def keep_files_private() -> None:
    """From now on this process, and its children, make files and folders that only their owner can open."""
    os.umask(os.umask(PRIVATE_UMASK) | PRIVATE_UMASK)


def make_private_folder(folder: Path) -> None:
    """Make the folder unless it exists, and make it private.

    Raises StorageFailed where it cannot be made, FolderExposed as `make_private` does.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageFailed("create", folder, error) from error
    make_private(folder)


def make_private(folder: Path) -> int | None:
    """Take write access from the folder's group and all access from others; the mode that it had, if that was looser.

    Apache Kafka leaves its folders open to all, so a folder that comes from it is made private rather than refused. A
    folder that is not there passes: its absence is reported elsewhere. Raises FolderExposed where the folder is another
    user's, or its file system keeps no permissions.
    """
    mode = _mode_of(folder)
    if not mode & _FORBIDDEN:
        return None
    try:
        folder.chmod(mode & ~_FORBIDDEN)
    except OSError as error:
        raise FolderExposed(folder, mode) from error
    if _mode_of(folder) & _FORBIDDEN:
        raise FolderExposed(folder, mode)
    return mode


def _mode_of(folder: Path) -> int:
    """The permission bits; 0 of a folder that is not there."""
    try:
        return stat.S_IMODE(folder.stat().st_mode)
    except OSError:
        return 0
