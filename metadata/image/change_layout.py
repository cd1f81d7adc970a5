"""Ordinary partition change records as bytes, written and read by columns.

Such a record names a leader, an ISR, or both. All of its fields are tagged, so where they lie follows from which are
there and from the length of the ISR; and no two of these shapes have records of equal length.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from metadata.image.partition_changes import NO_ISR_CHANGE, PartitionChanges, Rows
from metadata.image.partition_columns import PADDING
from metadata.image.partition_state import NO_LEADER_CHANGE
from wire.metadata_records.topics import PartitionChangeRecord
from wire.record_frame import FRAME_VERSION

CHANGE_FRAME: Final = bytes([FRAME_VERSION, PartitionChangeRecord.api_key])
_ISR_TAG, _LEADER_TAG = 0, 1
_LEADER_BYTES: Final = 4
# The size of the ISR's field, 1 + 4 for each member, is one byte while it is below 128.
LONGEST_ISR: Final = 31


@dataclass(frozen=True, slots=True)
class ChangeShape:
    """`isr_count` is NO_ISR_CHANGE where the record says nothing of the ISR."""

    isr_count: int
    has_leader: bool

    @property
    def has_isr(self) -> bool:
        return self.isr_count != NO_ISR_CHANGE

    def constants(self, version: int) -> dict[str, int | bytes]:
        """What is the same in all records of this shape."""
        same: dict[str, int | bytes] = {
            "frame": CHANGE_FRAME + bytes([version]),
            "tag count": self.has_isr + self.has_leader,
        }
        if self.has_isr:
            same |= {
                "isr tag": _ISR_TAG,
                "isr size": 1 + 4 * self.isr_count,
                "isr length": self.isr_count + 1,
            }
        if self.has_leader:
            same |= {"leader tag": _LEADER_TAG, "leader size": _LEADER_BYTES}
        return same


@lru_cache(maxsize=256)
def layout_of(shape: ChangeShape) -> np.dtype[Any]:
    fields: list[tuple[Any, ...]] = [
        ("frame", "V3"),
        ("partition_id", ">i4"),
        ("topic_id", "V16"),
        ("tag count", "u1"),
    ]
    if shape.has_isr:
        fields += [("isr tag", "u1"), ("isr size", "u1"), ("isr length", "u1")]
        fields += [("isr", ">i4", (shape.isr_count,))]
    if shape.has_leader:
        fields += [("leader tag", "u1"), ("leader size", "u1"), ("leader", ">i4")]
    return np.dtype(fields)


@lru_cache(maxsize=1)
def _shapes_by_length() -> dict[int, ChangeShape]:
    isr_counts = (NO_ISR_CHANGE, *range(LONGEST_ISR + 1))
    shapes = [ChangeShape(count, has_leader) for count in isr_counts for has_leader in (False, True)]
    by_length = {layout_of(shape).itemsize: shape for shape in shapes if shape.has_isr or shape.has_leader}
    assert len(by_length) == len(shapes) - 1, "no two shapes are of equal length"
    return by_length


def change_values(changes: PartitionChanges, version: int) -> list[bytes]:
    """The record values; every change says something, and no ISR is longer than LONGEST_ISR."""
    values = [b""] * len(changes)
    has_leader = changes.leaders != NO_LEADER_CHANGE
    codes = (changes.isr_counts << 1) + has_leader
    for code in np.unique(codes).tolist():
        rows = np.flatnonzero(codes == code)
        shape = ChangeShape(code >> 1, bool(code & 1))
        for row, value in zip(rows.tolist(), _values_of(changes, rows, shape, version), strict=True):
            values[row] = value
    return values


def _values_of(changes: PartitionChanges, rows: Rows, shape: ChangeShape, version: int) -> list[bytes]:
    records = np.empty(len(rows), dtype=layout_of(shape))
    for name, value in shape.constants(version).items():
        records[name] = np.void(value) if isinstance(value, bytes) else value
    records["partition_id"] = changes.partition_ids[rows]
    records["topic_id"] = changes.topic_ids[rows]
    if shape.has_isr:
        records["isr"] = changes.isr[rows, : shape.isr_count]
    if shape.has_leader:
        records["leader"] = changes.leaders[rows]
    raw, size = records.tobytes(), records.dtype.itemsize
    return [raw[start : start + size] for start in range(0, len(raw), size)]


def changes_of(values: Sequence[bytes]) -> tuple[PartitionChanges, list[int]]:
    """The changes that these values of PartitionChangeRecords stand for, and the places of those which are no ordinary
    ones."""
    lengths = np.fromiter(map(len, values), dtype=np.intp, count=len(values))
    read: list[tuple[Rows, ChangeShape, NDArray[Any]]] = []
    is_read = np.zeros(len(values), dtype=np.bool_)
    for length in np.unique(lengths).tolist():
        shape = _shapes_by_length().get(length)
        if shape is None:
            continue
        places = np.flatnonzero(lengths == length)
        raw = b"".join([values[place] for place in places.tolist()])
        records = np.frombuffer(raw, dtype=layout_of(shape))
        is_ordinary = _is_ordinary(records, shape)
        if not is_ordinary.all():
            places, records = places[is_ordinary], records[is_ordinary]
        read.append((places, shape, records))
        is_read[places] = True
    return _columns(read, is_read), np.flatnonzero(~is_read).tolist()


def _is_ordinary(records: NDArray[Any], shape: ChangeShape) -> NDArray[np.bool_]:
    lowest, highest = PartitionChangeRecord.versions
    frames = [np.void(CHANGE_FRAME + bytes([version])) for version in range(lowest, highest + 1)]
    constants = shape.constants(highest)
    del constants["frame"]
    is_ordinary: NDArray[np.bool_] = np.logical_or.reduce([records["frame"] == frame for frame in frames])
    for name, value in constants.items():
        is_ordinary &= records[name] == value
    if shape.has_isr:
        is_ordinary &= (records["isr"] != PADDING).all(axis=1)
    return is_ordinary


def _columns(
    read: Sequence[tuple[Rows, ChangeShape, NDArray[Any]]], is_read: NDArray[np.bool_]
) -> PartitionChanges:
    count = int(is_read.sum())
    rows_of = np.cumsum(is_read) - 1
    width = max((shape.isr_count for _, shape, _ in read), default=0)
    changes = PartitionChanges(
        topic_ids=np.empty(count, dtype="V16"),
        partition_ids=np.empty(count, dtype=np.int32),
        leaders=np.full(count, NO_LEADER_CHANGE, dtype=np.int32),
        isr_counts=np.full(count, NO_ISR_CHANGE, dtype=np.int32),
        isr=np.full((count, max(width, 0)), PADDING, dtype=np.int32),
    )
    for places, shape, records in read:
        rows = rows_of[places]
        changes.topic_ids[rows] = records["topic_id"]
        changes.partition_ids[rows] = records["partition_id"]
        if shape.has_isr:
            changes.isr_counts[rows] = shape.isr_count
            changes.isr[rows, : shape.isr_count] = records["isr"]
        if shape.has_leader:
            changes.leaders[rows] = records["leader"]
    return changes
