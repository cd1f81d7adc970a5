"""Where the fields of a PartitionRecord lie, when its lists have given lengths.

A snapshot of a large cluster is nearly all partition records, and nearly all of these have one shape: so many replicas,
so many in the ISR, nothing rare. Records of one shape have their fields at the same places, so their bytes end to end
are an array of structures, read and written as one. A record of any other shape goes through the codec of single
records.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wire.codegen.kinds import FIXED
from wire.metadata_records.topics import PartitionRecord
from wire.record_frame import FRAME_VERSION
from wire.schema import plan_of

PARTITION_FRAME: Final = bytes([FRAME_VERSION, PartitionRecord.api_key])
VERSION_AT: Final = len(PARTITION_FRAME)
IDENTITY: Final = slice(VERSION_AT + 1, VERSION_AT + 21)  # partition id and topic id
TOPIC_ID: Final = slice(VERSION_AT + 5, VERSION_AT + 21)
LISTS_AT: Final = VERSION_AT + 21
# A length is stored as one more, in one byte while that is below 128.
LONGEST_LIST: Final = 126
NUMBERS: Final = ("partition_id", "leader", "leader_epoch", "partition_epoch")
TAG_COUNT: Final = "tag count"

Records = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """`directory_count` is that of the replicas, or 0 where the record has none."""

    version: int
    replica_count: int
    isr_count: int
    directory_count: int

    def length_of(self, name: str) -> int:
        """Of the list in this field; none is under reassignment."""
        lengths = {"replicas": self.replica_count, "isr": self.isr_count, "directories": self.directory_count}
        return lengths.get(name, 0)


def length_name(name: str) -> str:
    return f"length of {name}"


def list_names(version: int) -> tuple[str, ...]:
    """The fields that are lists, in the order of the wire."""
    return tuple(field.name for field in plan_of(PartitionRecord, version).positional if field.is_array)


@lru_cache(maxsize=1024)
def layout_of(shape: Shape) -> np.dtype[Any]:
    """A record value of this shape without tagged fields. Before each list comes its length, named by `length_name`."""
    fields: list[tuple[Any, ...]] = [("frame", f"V{VERSION_AT + 1}")]
    for field in plan_of(PartitionRecord, shape.version).positional:
        layout = FIXED[field.kind].layout
        kind = f"V{FIXED[field.kind].size}" if layout.endswith("s") else f">{layout}"
        if field.is_array:
            fields.append((length_name(field.name), "u1"))
            fields.append((field.name, kind, (shape.length_of(field.name),)))
        else:
            fields.append((field.name, kind))
    return np.dtype([*fields, (TAG_COUNT, "u1")])


def shape_of(value: bytes) -> Shape | None:
    """The shape that a PartitionRecord's value seems to have; None where it has none with a layout.

    Whether it has it indeed, `records_of` finds out: the length of the value and the first two lists do not say all.
    """
    version = value[VERSION_AT]
    lowest, highest = PartitionRecord.versions
    if not lowest <= version <= highest:
        return None
    replicas = value[LISTS_AT] - 1
    isr_at = LISTS_AT + 1 + 4 * replicas
    if not 0 <= replicas <= LONGEST_LIST or isr_at >= len(value):
        return None
    isr = value[isr_at] - 1
    if not 0 <= isr <= LONGEST_LIST:
        return None
    for directories in (replicas, 0) if version else (0,):
        shape = Shape(version, replicas, isr, directories)
        if layout_of(shape).itemsize == len(value):
            return shape
    return None


def records_of(values: list[bytes], shape: Shape) -> Records | None:
    """The values as one array; None if not all of them have this shape, and nothing more."""
    records = np.frombuffer(b"".join(values), dtype=layout_of(shape))
    for name in list_names(shape.version):
        if (records[length_name(name)] != shape.length_of(name) + 1).any():
            return None
    return None if records[TAG_COUNT].any() else records
