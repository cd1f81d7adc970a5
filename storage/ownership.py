"""Whose a folder is, for the error that says why this process may not use it."""

import errno
import os
import pwd
from pathlib import Path


def permission_remedy(path: Path, error: OSError) -> str | None:
    """What stands in the way and what helps, where the operating system refused for want of permission; None where it
    refused for another reason."""
    if error.errno == errno.EROFS:
        return f"the file system of {path} is mounted read-only: mount it for writing, or use another folder"
    if error.errno not in (errno.EACCES, errno.EPERM):
        return None
    here, owner = _nearest(path)
    if owner is None or owner == os.geteuid():
        return f"this process runs as {_user(os.geteuid())}, to whom {here} does not give the permission"
    own = _user(os.geteuid())
    return (
        f"{here} belongs to {_user(owner)}, and this process runs as {own}: start it as {_user(owner)}, or give the "
        f"folder to {own} (chown -R)"
    )


def _nearest(path: Path) -> tuple[Path, int | None]:
    """The path itself, or the folder nearest to it, whose owner can be seen."""
    for place in (path, *path.absolute().parents):
        try:
            return place, place.stat().st_uid
        except OSError:
            continue
    return path, None


def _user(user_id: int) -> str:
    try:
        return f"user {pwd.getpwuid(user_id).pw_name}"
    except KeyError:
        return f"user id {user_id}"
