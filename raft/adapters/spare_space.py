"""Space for the election state alone, on a disk that may stay full for long.

The log's reserve is given away once, and whoever fills the disk may have taken all of it by the time a vote has to be
written. So a little is kept for that beside it: replacing a file needs room for a second copy, gives back the first
one's, and what is left over is held again.
"""

from raft.ports import QuorumStateStore
from raft.ready import QuorumState
from storage.errors import StorageFull
from storage.reserved_space import ReservedSpace

FILE_NAME = "reserved.state"
SPARE_BYTES = 64 * 1024


class SparingStateStore:
    """The given store, for a full disk; satisfies raft.ports.QuorumStateStore. Its methods belong to one thread."""

    def __init__(self, inner: QuorumStateStore, spare: ReservedSpace) -> None:
        self._inner = inner
        self._spare = spare

    def read(self) -> QuorumState | None:
        return self._inner.read()

    def write(self, state: QuorumState) -> None:
        """Raises StorageFull when there is no spare space any more, StorageFailed or FsyncFailed."""
        try:
            self._inner.write(state)
        except StorageFull:
            if not self._spare.is_held:
                raise
            self._spare.release()
            self._inner.write(state)
        self._spare.take_back()
