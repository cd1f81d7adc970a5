"""Names of snapshot files: `<end offset, 20 digits>-<epoch, 10 digits>.checkpoint`."""

import re
from dataclasses import dataclass

CHECKPOINT_SUFFIX = ".checkpoint"
PART_SUFFIX = ".checkpoint.part"
DELETED_SUFFIX = ".checkpoint.deleted"
BOOTSTRAP_CHECKPOINT_NAME = "bootstrap.checkpoint"

_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


@dataclass(frozen=True, slots=True)
class SnapshotId:
    """`end_offset` is exclusive; `epoch` is the leader epoch of the last record in the snapshot."""

    end_offset: int
    epoch: int

    @property
    def order(self) -> tuple[int, int]:
        """Sorts the newest last: epochs count before offsets."""
        return self.epoch, self.end_offset

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}{CHECKPOINT_SUFFIX}"


# Written by a format tool to carry the first voters; never served to a follower.
BOOTSTRAP_SNAPSHOT_ID = SnapshotId(0, 0)


def snapshot_id_of(file_name: str) -> SnapshotId | None:
    """The id in the name of a finished snapshot; None for every other file."""
    match = _NAME.fullmatch(file_name)
    return None if match is None else SnapshotId(int(match[1]), int(match[2]))
