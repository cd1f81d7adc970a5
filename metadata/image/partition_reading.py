"""Partition records, of any topics, read by columns into tables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from metadata.image.directories import MIGRATING
from metadata.image.partition_columns import PADDING, Column
from metadata.image.partition_records import (
    NUMBERS,
    VERSION_AT,
    Records,
    records_of,
    shape_of,
)
from metadata.image.partition_state import RECOVERED
from metadata.image.partitions import NUMBER_COLUMNS, PartitionTable, table_of_cells
from wire.codegen.kinds import uuid_of

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
    columns = _Columns(groups, read)
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


class _Columns:
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
