"""Remembers that the log has lost records which its owner may have acknowledged, until the log is whole again.

The recovery point cannot: it says how far the log was durable at least, and what was acknowledged may lie beyond. So a
log that has grown past it need not be whole yet; only the owner of the log knows when it is. This file of ours lies
beside the segments from before anything is set aside until then. Its presence counts, whatever it says: a node that
stops in the middle of a repair goes on with the repair. Kafka passes over the file.
"""

from dataclasses import dataclass
from pathlib import Path

from crc32c import crc32c

from kquorum.storage.durable_files import read_if_there, remove_file, replace_file, sync_folder
from kquorum.storage.errors import DamagedRange
from kquorum.storage.file_system import POSIX, FileSystem

FILE_NAME = "damaged-range"


@dataclass(frozen=True, slots=True)
class CorruptionMarker:
    """Offsets from `start_offset` up to, not including, `end_offset` at least were lost, for this `reason`.

    `is_repair`: it was set aside already, and some of it may have been fetched again.
    """

    start_offset: int
    end_offset: int
    reason: str
    is_repair: bool = True

    def with_log(self, folder: Path, log_end_offset: int, end_offset: int) -> DamagedRange:
        """What is left of it in a log that is sound and ends there; something may be missing up to `end_offset`."""
        known_until = max(self.end_offset, end_offset)
        end_offset = max(known_until, log_end_offset + 1)
        if not self.is_repair:
            return DamagedRange(log_end_offset, end_offset, folder, 0, self.reason, known_until)
        reason = (
            f"a repair was begun and is not finished: of what was lost from offset {self.start_offset} on, something "
            f"may be missing still ({FILE_NAME} says so; the loss was: {self.reason})"
        )
        return DamagedRange(log_end_offset, end_offset, folder, 0, reason, known_until)


def write_corruption_marker(folder: Path, damage: DamagedRange, fs: FileSystem = POSIX) -> None:
    """Durable on return; the loss that the marker named before stays in it.

    Raises StorageFull, StorageFailed or FsyncFailed.
    """
    before = read_corruption_marker(folder, fs)
    marker = CorruptionMarker(damage.start_offset, damage.known_until, damage.reason)
    if before is not None and before.end_offset > 0:
        start_offset = min(before.start_offset, damage.start_offset)
        marker = CorruptionMarker(start_offset, max(before.end_offset, damage.known_until), before.reason)
    if marker == before:
        sync_folder(folder, fs)
    else:
        replace_file(folder / FILE_NAME, encode_corruption_marker(marker), fs)


def remove_corruption_marker(folder: Path, fs: FileSystem = POSIX) -> None:
    """The log is whole again; durable on return. Raises StorageFailed or FsyncFailed."""
    remove_file(folder / FILE_NAME, fs)
    sync_folder(folder, fs)


def read_corruption_marker(folder: Path, fs: FileSystem = POSIX) -> CorruptionMarker | None:
    """What was lost and is not known to be whole again; None if there is no such file. One that makes no sense says
    that something was lost. Raises StorageFailed."""
    content = read_if_there(folder / FILE_NAME, fs)
    if content is None:
        return None
    try:
        return decode_corruption_marker(content)
    except ValueError as error:
        return CorruptionMarker(0, 0, f"not known, as the file cannot be read: {error}")


def encode_corruption_marker(marker: CorruptionMarker) -> bytes:
    """The two offsets and a checksum on the first line, the reason on the second."""
    text = f"{marker.start_offset} {marker.end_offset} {' '.join(marker.reason.split())}"
    start, end, reason = text.split(" ", 2)
    return f"{start} {end} {crc32c(text.encode()):08x}\n{reason}\n".encode()


def decode_corruption_marker(content: bytes) -> CorruptionMarker:
    """Raises ValueError with the reason."""
    first_line, _, rest = content.decode().partition("\n")
    fields, reason = first_line.split(" "), rest.removesuffix("\n")
    if len(fields) != 3 or not all(field.isdecimal() for field in fields[:2]):
        raise ValueError("its first line is not two offsets and a checksum")
    if fields[2] != f"{crc32c(f'{fields[0]} {fields[1]} {reason}'.encode()):08x}":
        raise ValueError("its checksum does not match")
    return CorruptionMarker(int(fields[0]), int(fields[1]), reason)
