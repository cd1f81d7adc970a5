"""From a snapshot's file to the state that a node starts over from."""

import gc
import logging
import time
from pathlib import Path

from kquorum.metadata.image.errors import ReplayError
from kquorum.metadata.snapshot import LoadedSnapshot, load_snapshot
from kquorum.node.errors import SnapshotUnusable
from kquorum.raft.adapters.snapshot_files import snapshot_path
from kquorum.storage.mapped_file import map_file
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_batch import OffsetAndEpoch

log = logging.getLogger("kquorum")


class SnapshotLoading:
    """Loads each fetched snapshot before the log is dropped for it. All methods belong to the snapshots' thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loaded: tuple[OffsetAndEpoch, LoadedSnapshot] | None = None

    def objection(self, path: Path, snapshot_id: OffsetAndEpoch) -> str | None:
        """Why the file at `path`, which came from the leader, cannot be loaded; what it holds is kept for `load`."""
        self._loaded = None
        try:
            self._loaded = snapshot_id, _load(path, snapshot_id)
        except (DecodeError, ReplayError) as error:
            return str(error)
        return None

    def forget(self) -> None:
        """No `load` follows: the file could not be kept, or the state is past it."""
        self._loaded = None

    def load(self, snapshot_id: OffsetAndEpoch) -> LoadedSnapshot:
        """Raises SnapshotUnusable or StorageFailed; either stops the node."""
        loaded, self._loaded = self._loaded, None
        if loaded is not None and loaded[0] == snapshot_id:
            return loaded[1]
        path = snapshot_path(self._folder, snapshot_id)
        try:
            return _load(path, snapshot_id)
        except (DecodeError, ReplayError) as error:
            raise SnapshotUnusable(path, str(error)) from error


def _load(path: Path, snapshot_id: OffsetAndEpoch) -> LoadedSnapshot:
    began = time.monotonic()
    loaded = load_snapshot(memoryview(map_file(path)), snapshot_id)
    seconds = time.monotonic() - began
    # The state lives long: the garbage collector need not go through it each time, which holds up the whole node.
    gc.freeze()
    log.info("loaded %s (%.1f s): the state at offset %d", path.name, seconds, snapshot_id.offset)
    return loaded
