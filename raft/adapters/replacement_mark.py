"""Says that the log is being replaced by a snapshot, from before anything of it is removed until it begins there.

Dropping the log takes many steps. The snapshot may turn bad between a step and the next start, and what is left of the
log then looks like a whole one that is shorter. This file of ours lies beside the segments meanwhile: it names the
snapshot, and where the log ended. Kafka passes over it.
"""

from dataclasses import dataclass
from pathlib import Path

from crc32c import crc32c

from kquorum.storage.corruption_marker import CorruptionMarker
from kquorum.storage.durable_files import read_if_there, remove_file, replace_file, sync_folder
from kquorum.storage.file_system import POSIX, FileSystem
from kquorum.wire.log_batch import OffsetAndEpoch

FILE_NAME = "replaced-by-snapshot"


@dataclass(frozen=True, slots=True)
class Replacement:
    """The log that ended at `log_end_offset` (where a record may have been acknowledged) is dropped for `snapshot`.

    Of a file that cannot be read nothing is known: `snapshot` is None then, and `fault` says why.
    """

    snapshot: OffsetAndEpoch | None
    log_end_offset: int
    fault: str = ""

    def is_finished(self, first_base_offset: int | None) -> bool:
        """Whether the log begins where the snapshot ends, or later; None: there is no segment."""
        return self.snapshot is not None and (first_base_offset or 0) >= self.snapshot.offset

    def can_go_on_at(self, newest: OffsetAndEpoch | None) -> bool:
        """Whether this sound snapshot holds all that was to be replaced."""
        return self.snapshot is not None and newest is not None and newest.offset >= self.snapshot.offset

    def as_damage(self, log_end_offset: int) -> CorruptionMarker:
        """What is lost if the log ends at `log_end_offset` and the snapshot is gone."""
        if self.snapshot is None:
            reason = f"the log was being replaced by a snapshot, and {FILE_NAME} cannot be read: {self.fault}"
            return CorruptionMarker(log_end_offset, 0, reason, is_repair=False)
        reason = (
            f"the log was being replaced by the snapshot that ends at offset {self.snapshot.offset} when the node "
            f"stopped ({FILE_NAME} says so), and no sound snapshot reaches that offset now"
        )
        end_offset = max(self.snapshot.offset, self.log_end_offset)
        return CorruptionMarker(log_end_offset, end_offset, reason, is_repair=False)


def mark_replacement(
    folder: Path, snapshot: OffsetAndEpoch, log_end_offset: int, fs: FileSystem = POSIX
) -> None:
    """Durable on return. Raises StorageFull, StorageFailed or FsyncFailed."""
    text = f"{snapshot.offset} {snapshot.epoch} {log_end_offset}"
    replace_file(folder / FILE_NAME, f"{text} {crc32c(text.encode()):08x}\n".encode(), fs)


def forget_replacement(folder: Path, fs: FileSystem = POSIX) -> None:
    """The log begins at the snapshot, or it is noted as damage that it does not; durable on return.

    Raises StorageFailed or FsyncFailed.
    """
    if fs.exists(folder / FILE_NAME):
        remove_file(folder / FILE_NAME, fs)
        sync_folder(folder, fs)


def replacement_under_way(folder: Path, fs: FileSystem = POSIX) -> Replacement | None:
    """What the file says; None if there is none. Raises StorageFailed."""
    content = read_if_there(folder / FILE_NAME, fs)
    if content is None:
        return None
    try:
        return _decode(content)
    except ValueError as error:
        return Replacement(None, 0, str(error))


def _decode(content: bytes) -> Replacement:
    """Raises ValueError with the reason."""
    fields = content.decode().removesuffix("\n").split(" ")
    if len(fields) != 4 or not all(field.isdecimal() for field in fields[:3]):
        raise ValueError("it is not two offsets, an epoch and a checksum")
    if fields[3] != f"{crc32c(' '.join(fields[:3]).encode()):08x}":
        raise ValueError("its checksum does not match")
    offset, epoch, log_end_offset = (int(field) for field in fields[:3])
    return Replacement(OffsetAndEpoch(offset, epoch), log_end_offset)
