"""From a snapshot's file to the state that a node starts over from."""

import gc
import logging
import time
from pathlib import Path

from cli.nodes.errors import SnapshotUnusable
from metadata.image.errors import ReplayError
from metadata.snapshot_loading import LoadedSnapshot, load_snapshot
from raft.adapters.mapped_file import map_file
from raft.adapters.snapshot_files import snapshot_path
from raft.batches import OffsetAndEpoch
from wire.errors import DecodeError

log = logging.getLogger("kquorum")


def read_snapshot(folder: Path, snapshot_id: OffsetAndEpoch) -> LoadedSnapshot:
    """Runs in the snapshots' thread. Raises SnapshotUnusable or StorageFailed, both of which end the node."""
    path = snapshot_path(folder, snapshot_id)
    began = time.monotonic()
    try:
        loaded = load_snapshot(memoryview(map_file(path)), snapshot_id)
    except (DecodeError, ReplayError) as error:
        raise SnapshotUnusable(path, str(error)) from error
    seconds = time.monotonic() - began
    # The state lives long: the garbage collector need not go through it each time, which holds up the whole node.
    gc.freeze()
    log.info("loaded %s (%.1f s): the state at offset %d", path.name, seconds, snapshot_id.offset)
    return loaded
