"""Who may read a data folder. It holds the keys of SCRAM users and delegation tokens, so the folder is its owner's.

The folder itself is what is checked: where others cannot enter it, the permissions of the files in it do not matter.
The owner's group may read (0750), as backups are often made that way; PostgreSQL draws the line at the same place.
"""

import os
import stat
from pathlib import Path

from raft.adapters.errors import FolderExposed, StorageFailed

_FORBIDDEN = stat.S_IWGRP | stat.S_IRWXO
PRIVATE_UMASK = 0o077


def keep_files_private() -> None:
    """From now on this process, and its children, make files and folders that only their owner can open."""
    os.umask(os.umask(PRIVATE_UMASK) | PRIVATE_UMASK)


def make_private_folder(folder: Path) -> None:
    """Make the folder unless it exists, and take write access from its group and all access from others.

    Raises FolderExposed where the folder exists, is open to others and is not this user's; StorageFailed where it
    cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(folder.stat().st_mode)
    except OSError as error:
        raise StorageFailed("create", folder, error) from error
    if mode & _FORBIDDEN:
        try:
            folder.chmod(mode & ~_FORBIDDEN)
        except OSError as error:
            raise FolderExposed(folder, mode) from error
        # A mounted folder of another system may take any mode and keep its own.
        check_private(folder)


def check_private(folder: Path) -> None:
    """Raises FolderExposed if others than the owner and its group can enter or read the folder, or the group can write.

    A folder that is not there passes: its absence is reported elsewhere.
    """
    try:
        mode = stat.S_IMODE(folder.stat().st_mode)
    except OSError:
        return
    if mode & _FORBIDDEN:
        raise FolderExposed(folder, mode)
