"""The mark that a broker which is shut down in order leaves in its folders, and finds when it starts again (KIP-966).

It names the epoch that the broker had. Only a broker that can name it keeps its place among the eligible leader
replicas: a broker that crashed may have lost what it had not yet written to disk. Kafka's file, by name and content; it
counts only if all of the folders have it, with the same epoch. It need not be removed at once: once the broker is
registered, its epoch is another.
"""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kquorum.broker.identity import NO_EPOCH
from kquorum.regular_files import read_regular
from kquorum.storage.durable_files import replace_file
from kquorum.storage.errors import FsyncFailed, StorageFailed
from kquorum.storage.file_system import POSIX, FileSystem

log = logging.getLogger("broker.lifecycle")

FILE_NAME: Final = ".kafka_cleanshutdown"
_VERSION: Final = 0


def previous_broker_epoch(folders: Sequence[Path]) -> int:
    """NO_EPOCH where it is not known: the former process crashed, or there was none."""
    epochs = {_epoch_in(folder / FILE_NAME) for folder in folders}
    return epochs.pop() if len(epochs) == 1 else NO_EPOCH


def mark_clean_shutdown(folders: Sequence[Path], broker_epoch: int, fs: FileSystem = POSIX) -> None:
    """A mark that cannot be written is missed at the next start only: the broker then counts as crashed."""
    data = json.dumps({"version": _VERSION, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()
    for folder in folders:
        try:
            replace_file(folder / FILE_NAME, data, fs)
        except (StorageFailed, FsyncFailed) as error:
            log.warning(
                "the shutdown in order could not be noted, so the next start counts as one after a crash: %s",
                error,
            )


def _epoch_in(path: Path) -> int:
    """NO_EPOCH for a file that is not there, or does not hold one."""
    try:
        content = json.loads(read_regular(path))
    except (OSError, ValueError):
        return NO_EPOCH
    epoch = content.get("brokerEpoch") if isinstance(content, dict) else None
    return epoch if isinstance(epoch, int) and not isinstance(epoch, bool) and epoch >= 0 else NO_EPOCH
