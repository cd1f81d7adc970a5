"""Recovery of the metadata log: the storage checks the batches, and here is read what they say of the quorum."""

from collections.abc import Sequence
from pathlib import Path

from raft.adapters.errors import QuorumRecordUnreadable
from raft.quorum_records import QuorumRecord, quorum_records
from storage.errors import BatchUnreadable
from storage.file_system import POSIX, FileSystem
from storage.recovery import KnownDurable, RecoveredLog, recover_paths, recover_segments
from wire.log_batch import log_batch
from wire.log_scan import ScannedBatch


class MetadataBatches:
    """What the batches of one recovery say: `quorum_records`, and whether they bear out their own leader epochs."""

    def __init__(self) -> None:
        self.quorum_records: list[QuorumRecord] = []
        self._epoch = -1
        # Of the epochs before the newest one.
        self._were_certain = True
        # Of the newest epoch: whether it begins with a control batch, as the first batch of every leader is one.
        self._is_led = True
        self._batches = 0

    def read(self, found: ScannedBatch) -> None:
        """A `storage.recovery.BatchReader`."""
        header = found.header
        if header.partition_leader_epoch > self._epoch:
            is_cut = self._epoch < 0 and header.base_offset > 0
            self._were_certain = self.are_epochs_certain
            self._epoch = header.partition_leader_epoch
            self._is_led, self._batches = header.is_control or is_cut, 0
        self._batches += 1
        if header.is_control:
            self.quorum_records.extend(quorum_records(log_batch(bytes(found.data))))

    @property
    def are_epochs_certain(self) -> bool:
        """No checksum covers a batch's epoch: one batch alone is no proof of it."""
        return self._were_certain and (self._epoch < 0 or (self._is_led and self._batches > 1))


def recover_metadata_log(
    folder: Path, known: KnownDurable, fs: FileSystem = POSIX, paths: Sequence[Path] | None = None
) -> tuple[RecoveredLog, MetadataBatches]:
    """Recover the log in `folder`, or the log that consists of these segments.

    Raises QuorumRecordUnreadable, StorageFailed or FsyncFailed.
    """
    batches = MetadataBatches()
    try:
        if paths is None:
            return recover_segments(folder, known, batches.read, fs), batches
        return recover_paths(folder, paths, known, batches.read, fs), batches
    except BatchUnreadable as error:
        raise QuorumRecordUnreadable(error.damage) from error
