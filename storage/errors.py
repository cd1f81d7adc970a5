"""How the environment fails a log: every error names the thing, the place and the remedy.

The storage does not know whose log it keeps. Where the remedy depends on that, the owner of the log gives its text.
"""

import errno
from dataclasses import dataclass
from pathlib import Path

from kquorum.storage.ownership import permission_remedy

FORMAT_REMEDY = "run `kquorum format` for this node first"
_NO_SPACE = frozenset((errno.ENOSPC, errno.EDQUOT))


class EnvironmentFault(Exception):
    """A fault of the machine or of the operator's files, not of this program or of a peer."""


class DamagedInput(EnvironmentFault):
    """A file holds what it must not hold; it is never repaired by guessing."""


class FolderRefused(EnvironmentFault):
    """The folder is not this node's to use."""


class StorageFailed(EnvironmentFault):
    """The operating system refused to read or write. Fatal: what reached the disk is unknown from here on.

    `reason` says what was refused, without the remedy.
    """

    def __init__(self, action: str, path: Path, error: OSError) -> None:
        self.path = path
        self.error = error
        self.reason = f"cannot {action} {path}: {error.strerror or error}"
        remedy = permission_remedy(path, error) or (
            "the node stops, because it no longer knows what is on the disk: check the disk and its free space, then "
            "start the node again"
        )
        super().__init__(f"{self.reason}; {remedy}")


class StorageFull(StorageFailed):
    """No space left, and nothing half-written counts: what was begun was taken back, and all before it stands.

    A caller that handles it may go on reading, and write again once there is space. For all others it is as fatal as
    any `StorageFailed`.
    """

    def __init__(self, action: str, path: Path, error: OSError) -> None:
        self.path = path
        self.error = error
        self.reason = f"cannot {action} {path}: {error.strerror or error}"
        EnvironmentFault.__init__(
            self,
            f"{self.reason}; nothing of it was kept: make space on that file system (or raise the quota)",
        )


def storage_failure(action: str, path: Path, error: OSError) -> StorageFailed:
    """The error to raise for what the operating system refused: StorageFull when only space is missing."""
    return (StorageFull if is_no_space(error) else StorageFailed)(action, path, error)


def is_no_space(error: OSError) -> bool:
    return error.errno in _NO_SPACE


class FsyncFailed(StorageFailed):
    """fsync reported an error. It is never retried: the kernel may have dropped the pages (ATC '20)."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__("flush to stable storage", path, error)


@dataclass(frozen=True, slots=True)
class DamagedRange:
    """Records that this node may have acknowledged and cannot read any more: offsets from `start_offset` up to, not
    including, `end_offset` at least.

    `segment` and `position` (in bytes) say where the damage begins; all below `start_offset` is sound.
    `known_end_offset` is given where not even the first record is known to have been there: the end of what is.
    """

    start_offset: int
    end_offset: int
    segment: Path
    position: int
    reason: str
    known_end_offset: int | None = None

    @property
    def known_until(self) -> int:
        """All below was here once, as far as is known."""
        return self.end_offset if self.known_end_offset is None else self.known_end_offset

    def __str__(self) -> str:
        return (
            f"{self.segment} is corrupt at byte {self.position} (offset {self.start_offset}): {self.reason}; "
            f"offsets {self.start_offset} to {self.end_offset - 1} are lost here"
        )


class LogCorrupted(DamagedInput):
    """The log is damaged where no crash can have damaged it, so cutting it could lose what was acknowledged.

    `remedy` is what helps. Only the owner of the log knows that, so `FirstFailure` sets it on the way to the owner.
    """

    def __init__(self, damage: DamagedRange, remedy: str = "restore the folder from a backup") -> None:
        super().__init__(damage, remedy)
        self.damage = damage
        self.remedy = remedy
        self.path = damage.segment
        self.position = damage.position
        self.offset = damage.start_offset
        self.reason = damage.reason

    def __str__(self) -> str:
        return (
            f"{self.damage}; nothing was changed in it. This is no torn end of an interrupted write, so the log is not "
            f"cut by itself: {self.remedy}"
        )


class BatchUnreadable(LogCorrupted):
    """A sound batch says what its reader cannot read. Every copy of the batch says the same."""


class MetaPropertiesDamaged(DamagedInput):
    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path} is damaged: {reason}; restore the file, or format the folder afresh")


class NotFormatted(FolderRefused):
    def __init__(self, folder: Path, reason: str, remedy: str = FORMAT_REMEDY) -> None:
        self.folder = folder
        super().__init__(f"{folder} is not formatted ({reason}): {remedy}")


class WrongFolder(FolderRefused):
    """The folder belongs to another cluster or another node."""

    def __init__(self, path: Path, key: str, found: str, expected: str) -> None:
        self.path = path
        self.found = found
        self.expected = expected
        super().__init__(
            f"{path} says {key} is {found}, but this node is configured with {expected}: point the node at its own "
            "folder, or correct the config"
        )


class FolderExposed(FolderRefused):
    """The folder is open to users who must not read what is in it. `mode` is its permission bits."""

    def __init__(self, folder: Path, mode: int) -> None:
        self.folder = folder
        self.mode = mode
        super().__init__(
            f"{folder} has the permissions {mode:04o}, so other users of this machine can read it or write to it, "
            "and it holds the keys of users who log in. This process cannot change that: run "
            f"`chmod g-w,o-rwx {folder}` as its owner, or set kquorum.allow.exposed.log.dirs=true where the file "
            "system keeps no permissions"
        )


class FolderLocked(FolderRefused):
    def __init__(self, folder: Path, holder_pid: int | None) -> None:
        self.folder = folder
        self.holder_pid = holder_pid
        holder = "another process" if holder_pid is None else f"process {holder_pid}"
        super().__init__(
            f"{folder} is in use by {holder}: stop it first, or give this node a folder of its own"
        )
