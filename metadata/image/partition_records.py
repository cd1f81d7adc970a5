"""PartitionRecords of many partitions at once: the layout of their bytes, read into tables and written by columns.

A snapshot of a large cluster is nearly all partition records, and nearly all of these have one shape: so many replicas,
so many in the ISR, nothing rare. Records of one shape have their fields at the same places, so their bytes end to end
are an array of structures, read and written as one. A record of any other shape goes through the codec of single
records.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from kquorum.metadata.image.directories import MIGRATING
from kquorum.metadata.image.partition_state import RECOVERED
from kquorum.metadata.image.partitions import NUMBER_COLUMNS, PADDING, Column, PartitionTable, table_of_cells
from kquorum.wire.codegen.kinds import FIXED, uuid_of
from kquorum.wire.metadata_records.topics import PartitionRecord
from kquorum.wire.record_frame import FRAME_VERSION, encode_record
from kquorum.wire.schema import plan_of

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


# Topics may share a list of directories that is no longer than this, though they use few of them.
_SHARED_DIRECTORIES = 64
# Fewer records of one shape are quicker read one by one.
_WORTH_COLUMNS = 6


@dataclass(frozen=True, slots=True)
class _Group:
    """Records of one shape, and their places among all."""

    places: NDArray[np.intp]
    records: Records


def read_by_columns(values: Sequence[bytes]) -> tuple[list[tuple[UUID, PartitionTable]], list[int]]:
    """Tables of the PartitionRecords with these values, and the places of the values that are in none of them.

    A topic has a table for each stretch of its records. No two values may be of the same partition.
    """
    groups, others = _grouped(values)
    if not groups:
        return [], others
    read = np.sort(np.concatenate([group.places for group in groups]))
    columns = _ColumnsRead(groups, read)
    return list(columns.tables()), others


def _grouped(values: Sequence[bytes]) -> tuple[list[_Group], list[int]]:
    by_look: dict[tuple[int, int], list[int]] = {}
    for place, value in enumerate(values):
        by_look.setdefault((len(value), value[VERSION_AT]), []).append(place)
    groups: list[_Group] = []
    others: list[int] = []
    for places in by_look.values():
        shape = shape_of(values[places[0]]) if len(places) >= _WORTH_COLUMNS else None
        records = None if shape is None else records_of([values[place] for place in places], shape)
        if records is None or _has_padding(records):
            others += places
        else:
            groups.append(_Group(np.array(places), records))
    return groups, others


def _has_padding(records: Records) -> bool:
    return bool((records["replicas"] == PADDING).any() or (records["isr"] == PADDING).any())


class _ColumnsRead:
    """The cells of a table, for the partitions of all topics at once."""

    def __init__(self, groups: Sequence[_Group], places: NDArray[np.intp]) -> None:
        count = len(places)
        self._replica_width = max(group.records["replicas"].shape[1] for group in groups)
        self._isr_width = max(group.records["isr"].shape[1] for group in groups)
        self._cells = np.full(
            (NUMBER_COLUMNS + 2 * self._replica_width + self._isr_width, count), PADDING, dtype=np.int32
        )
        self._topics = np.empty(count, dtype="V16")
        self._replica_counts = np.zeros(count, dtype=np.intp)
        self._isr_counts = np.zeros(count, dtype=np.intp)
        self._numbers: dict[UUID, int] = {}
        for group in groups:
            self._put(group.records, places.searchsorted(group.places))
        self._directory_ids = tuple(self._numbers)

    def _put(self, records: Records, rows: NDArray[np.intp]) -> None:
        for column, name in enumerate(NUMBERS):
            self._cells[column, rows] = records[name]
        self._cells[len(NUMBERS), rows] = RECOVERED
        start = NUMBER_COLUMNS
        parts = (records["replicas"], records["isr"], self._directory_numbers(records))
        for part, width in zip(
            parts, (self._replica_width, self._isr_width, self._replica_width), strict=True
        ):
            for column in range(part.shape[1]):
                self._cells[start + column, rows] = part[:, column]
            start += width
        self._topics[rows] = records["topic_id"]
        self._replica_counts[rows] = parts[0].shape[1]
        self._isr_counts[rows] = parts[1].shape[1]

    def _directory_numbers(self, records: Records) -> Column:
        """Records without directories leave all replicas MIGRATING."""
        shape = records["replicas"].shape
        names = records.dtype.names or ()
        if "directories" not in names or records["directories"].shape != shape or not shape[1]:
            number = self._numbers.setdefault(MIGRATING, len(self._numbers)) if shape[1] else 0
            return np.full(shape, number, dtype=np.int32)
        # As byte strings of equal length, ids sort like themselves: that zeros at their end are not told is no matter.
        flat = np.ascontiguousarray(records["directories"]).view("S16").reshape(-1)
        unique, inverse = np.unique(flat, return_inverse=True)
        raw = unique.tobytes()
        ids = [uuid_of(raw[start : start + 16]) for start in range(0, len(raw), 16)]
        numbers = np.array([self._numbers.setdefault(each, len(self._numbers)) for each in ids], np.int32)
        of_replicas: Column = numbers[inverse].reshape(shape)
        return of_replicas

    def tables(self) -> Iterator[tuple[UUID, PartitionTable]]:
        begins = np.concatenate(([0], np.flatnonzero(self._topics[1:] != self._topics[:-1]) + 1))
        ends = [*begins[1:].tolist(), len(self._topics)]
        replica_widths = np.maximum.reduceat(self._replica_counts, begins).tolist()
        isr_widths = np.maximum.reduceat(self._isr_counts, begins).tolist()
        topic_ids = self._topics[begins].tobytes()
        for number, (start, stop) in enumerate(zip(begins.tolist(), ends, strict=True)):
            topic_id = uuid_of(topic_ids[16 * number : 16 * number + 16])
            widths = (replica_widths[number], isr_widths[number])
            yield topic_id, self._table(start, stop, widths)

    def _table(self, start: int, stop: int, widths: tuple[int, int]) -> PartitionTable:
        cells = self._cells[:, start:stop]
        replica_width, isr_width = widths
        if (replica_width, isr_width) != (self._replica_width, self._isr_width):
            isr_at = NUMBER_COLUMNS + self._replica_width
            directories_at = isr_at + self._isr_width
            parts = (
                cells[: NUMBER_COLUMNS + replica_width],
                cells[isr_at : isr_at + isr_width],
                cells[directories_at : directories_at + replica_width],
            )
            cells = np.concatenate(parts)
        else:
            cells = cells.copy()
        ids = cells[0]
        if not (ids[1:] > ids[:-1]).all():
            cells = cells[:, ids.argsort()]
        return table_of_cells(cells, widths, self._own_directories(cells[NUMBER_COLUMNS + sum(widths) :]))

    def _own_directories(self, numbers: Column) -> tuple[UUID, ...]:
        """The list that `numbers` are into; they are made numbers into a list of the topic's own if that of all is
        long."""
        if len(self._directory_ids) <= _SHARED_DIRECTORIES:
            return self._directory_ids
        used = np.unique(numbers)
        used = used[used != PADDING]
        numbers[:] = np.where(numbers == PADDING, PADDING, used.searchsorted(numbers))
        return tuple([self._directory_ids[number] for number in used.tolist()])


_NO_SHAPE = -1


def partition_values(
    tables: Sequence[tuple[UUID, PartitionTable]], version: int
) -> Iterator[list[bytes | None]]:
    """For each topic's table the record values of its partitions, in the order of their ids.

    None stands for a partition that no layout has room for: what is rare goes through the codec of single records.
    """
    if not tables:
        return
    columns = _ColumnsWritten(
        [table for _, table in tables], np.array([each.bytes for each, _ in tables], "V16")
    )
    values = columns.values(version)
    for start, stop in pairwise(accumulate((len(table) for _, table in tables), initial=0)):
        yield values[start:stop]


def _cut(records: Records, size: int) -> list[bytes]:
    raw = records.tobytes()
    return [raw[start : start + size] for start in range(0, len(raw), size)]


class _ColumnsWritten:
    """The tables of several topics side by side, as one."""

    def __init__(self, tables: Sequence[PartitionTable], topic_ids: Records) -> None:
        sizes = [len(table) for table in tables]
        self._numbers = np.concatenate([table.cells[:NUMBER_COLUMNS] for table in tables], axis=1)
        self._replicas = _side_by_side([table.replicas for table in tables])
        self._isr = _side_by_side([table.isr for table in tables])
        self._topic_ids = np.repeat(topic_ids, sizes)
        firsts = list(accumulate((len(table.directory_ids) for table in tables[:-1]), initial=0))
        # Padding stays far below zero.
        self._directories = _side_by_side([table.directories for table in tables])
        self._directories += np.repeat(np.array(firsts, dtype=np.int32), sizes)[:, np.newaxis]
        self._directory_ids = np.array(
            [each.bytes for table in tables for each in table.directory_ids], dtype="V16"
        )
        self._is_rare = np.concatenate(
            [np.isin(table.ids, list(table.rare_lists)) for table in tables]
            if any(table.rare_lists for table in tables)
            else [np.zeros(len(self._topic_ids), dtype=np.bool_)]
        )

    def values(self, version: int) -> list[bytes | None]:
        values: list[bytes | None] = [None] * len(self._topic_ids)
        replica_counts = (self._replicas != PADDING).sum(axis=1)
        isr_counts = (self._isr != PADDING).sum(axis=1)
        is_plain = (replica_counts <= LONGEST_LIST) & (isr_counts <= LONGEST_LIST) & ~self._is_rare
        is_plain &= self._numbers[len(NUMBERS)] == RECOVERED
        codes = np.where(is_plain, replica_counts << 8 | isr_counts, _NO_SHAPE)
        for code in np.unique(codes[is_plain]).tolist():
            replica_count, isr_count = code >> 8, code & 255
            shape = Shape(version, replica_count, isr_count, replica_count if version else 0)
            rows = np.flatnonzero(codes == code)
            for row, value in zip(rows.tolist(), self._values_of(rows, shape), strict=True):
                values[row] = value
        return values

    def _values_of(self, rows: NDArray[np.intp], shape: Shape) -> list[bytes]:
        example = _example(shape)
        records = np.frombuffer(bytearray(example * len(rows)), dtype=layout_of(shape))
        for column, name in enumerate(NUMBERS):
            records[name] = self._numbers[column, rows]
        records["topic_id"] = self._topic_ids[rows]
        records["replicas"] = self._replicas[rows, : shape.replica_count]
        records["isr"] = self._isr[rows, : shape.isr_count]
        if shape.directory_count:
            numbers = self._directories[rows, : shape.directory_count]
            records["directories"] = self._directory_ids[numbers]
        return _cut(records, len(example))


def _side_by_side(matrices: Sequence[Column]) -> Column:
    """Matrices of (rows, width) one below the other, padded to the widest."""
    width = max(matrix.shape[1] for matrix in matrices)
    if all(matrix.shape[1] == width for matrix in matrices):
        return np.concatenate(matrices)
    whole = np.full((sum(map(len, matrices)), width), PADDING, dtype=np.int32)
    start = 0
    for matrix in matrices:
        whole[start : start + len(matrix), : matrix.shape[1]] = matrix
        start += len(matrix)
    return whole


def _example(shape: Shape) -> bytes:
    """A record of this shape, by the codec of single records: what all records of the shape have in common."""
    return encode_record(
        PartitionRecord(
            partition_id=0,
            topic_id=UUID(int=0),
            replicas=(0,) * shape.replica_count,
            isr=(0,) * shape.isr_count,
            directories=(MIGRATING,) * shape.directory_count,
        ),
        shape.version,
    )
