"""The fence between a quorum that was recovered (`kquorum recover run`) and the controllers that were left behind.

A recovery writes records into the best folder that is left, in an epoch at least `EPOCH_JUMP` above all that were
known. No quorum climbs so far by elections: at one election a second, that takes twelve days. So a controller that has
a history and learns of a leader that far ahead belonged to the quorum that is gone. It may hold records that the
recovered quorum lacks, which it would cut off, and its vote counts there no more. It leaves a mark in its folder and
ends, and every later start refuses with the reason. `recover run` leaves the same mark in the other folders that it is
given. Brokers are not fenced: they have voted for nothing, and follow.
"""

from pathlib import Path
from typing import Final

from kquorum.storage.durable_files import replace_file
from kquorum.storage.errors import FolderRefused
from kquorum.storage.file_system import POSIX, FileSystem

FILE_NAME: Final = "kquorum-fenced"
EPOCH_JUMP: Final = 1 << 20
_REMEDY: Final = (
    "keep a copy of this folder, for it may hold changes that the recovered quorum lacks (`kquorum log dump`); then "
    "empty it, format it with --no-initial-controllers, start the node, and run `kquorum quorum add-voter`"
)


class Fenced(FolderRefused):
    """The folder belongs to a voter that a recovery has left behind."""

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(f"{folder} is fenced: {reason}; {_REMEDY}")


def fence(folder: Path, reason: str, fs: FileSystem = POSIX) -> None:
    """Leave the mark in a node's metadata folder, durable on return. Raises StorageFailed or FsyncFailed."""
    replace_file(folder / FILE_NAME, f"{reason}\n".encode(), fs)


def check_not_fenced(folder: Path, fs: FileSystem = POSIX) -> None:
    """Raises Fenced."""
    if fs.exists(folder / FILE_NAME):
        raise Fenced(folder, fs.read(folder / FILE_NAME).decode("utf-8", "replace").strip())


class FenceWatch:
    """Notices that this replica was left behind. `epoch` is the one that it starts with, and `has_history` says whether
    it has had records or an election."""

    def __init__(self, folder: Path, epoch: int, *, has_history: bool) -> None:
        self._folder = folder
        self._epoch = epoch
        self._has_history = has_history

    def look_at(self, epoch: int, leader_id: int) -> Fenced | None:
        """Call this when the replica learns of a leader, itself excluded: the error with which the node is to end, or
        None."""
        if leader_id < 0:
            return None
        before, self._epoch = self._epoch, max(epoch, self._epoch)
        if not (self._has_history and epoch - before >= EPOCH_JUMP):
            self._has_history = True
            return None
        reason = (
            f"node {leader_id} leads epoch {epoch}, and this controller knew epoch {before}: the quorum was recovered "
            "without it (kquorum recover)"
        )
        fence(self._folder, reason)
        return Fenced(self._folder, reason)
