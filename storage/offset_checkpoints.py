"""Kafka's checkpoint files of a log directory: one offset for each partition, as a text file.

`recovery-point-offset-checkpoint`, `log-start-offset-checkpoint`, `replication-offset-checkpoint` (high watermarks) and
`cleaner-offset-checkpoint` (where the next cleaning begins) have the same form: version 0, the number of entries, then
a line `TOPIC PARTITION OFFSET` for each, in any order.
"""

from collections.abc import Mapping
from pathlib import Path

from kquorum.storage.durable_files import read_if_there
from kquorum.storage.errors import DamagedInput
from kquorum.storage.file_system import POSIX, FileSystem

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANED = "cleaner-offset-checkpoint"
PartitionName = tuple[str, int]


class CheckpointDamaged(DamagedInput):
    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path} is damaged: {reason}; restore the file, or remove it: what it held is then found out from the logs"
        )
        self.path = path


def encode_offsets(offsets: Mapping[PartitionName, int]) -> bytes:
    lines = [
        "0",
        str(len(offsets)),
        *(f"{topic} {number} {offset}" for (topic, number), offset in offsets.items()),
    ]
    return ("\n".join(lines) + "\n").encode()


def decode_offsets(content: bytes) -> dict[PartitionName, int]:
    """Raises ValueError with the reason; an empty file, or one with a version alone, holds no offsets."""
    lines = content.decode().splitlines()
    if not lines:
        return {}
    if lines[0].strip() != "0":
        raise ValueError(f"format version {lines[0]!r} is not supported (0 is)")
    offsets: dict[PartitionName, int] = {}
    for line in lines[2:]:
        words = line.split()
        if len(words) != 3:
            raise ValueError(f"the line {line!r} is not TOPIC PARTITION OFFSET")
        offsets[words[0], int(words[1])] = int(words[2])
    if len(lines) > 1 and int(lines[1]) != len(lines) - 2:
        raise ValueError(f"the second line says {lines[1]} entries, but {len(lines) - 2} lines follow")
    return offsets


def read_offsets(path: Path, fs: FileSystem = POSIX) -> dict[PartitionName, int]:
    """Raises CheckpointDamaged or StorageFailed; a file that is not there holds no offsets."""
    try:
        return decode_offsets(read_if_there(path, fs) or b"")
    except ValueError as error:
        raise CheckpointDamaged(path, str(error)) from error
