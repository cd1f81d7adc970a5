"""Ordinary changes of many partitions at once, of leaders and ISRs: as columns, replayed into tables, and as bytes.

When a broker fails, hundreds of thousands of partitions change in the same few ways. As columns they are decided,
written, read and replayed without an object for each. An ordinary PartitionChangeRecord names a leader, an ISR, or
both. All of its fields are tagged, so their places follow from which are there and from the length of the ISR; and no
two of these shapes have records of equal length.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from kquorum.metadata.image.partition_state import NO_LEADER_CHANGE
from kquorum.metadata.image.partitions import NUMBER_COLUMNS, PADDING, Column, PartitionTable, table_of_cells
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from kquorum.wire.record_frame import FRAME_VERSION

NO_ISR_CHANGE: Final = -1
_IDS, _LEADERS, _LEADER_EPOCHS, _PARTITION_EPOCHS, _RECOVERY_STATES = range(5)

Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartitionChanges:
    """As many PartitionChangeRecords, in their order, that say of leader and ISR only.

    Shapes, for n changes: `topic_ids` (n,) of 16 bytes each, `partition_ids`, `leaders`, `isr_counts` (n,), `isr`
    (n, longest). NO_LEADER_CHANGE and NO_ISR_CHANGE stand where nothing is said. `isr` is padded behind its end.
    """

    topic_ids: NDArray[Any]
    partition_ids: Column
    leaders: Column
    isr_counts: Column
    isr: Column

    def __len__(self) -> int:
        return len(self.partition_ids)

    def take(self, rows: Rows) -> "PartitionChanges":
        return PartitionChanges(
            topic_ids=self.topic_ids[rows],
            partition_ids=self.partition_ids[rows],
            leaders=self.leaders[rows],
            isr_counts=self.isr_counts[rows],
            isr=self.isr[rows],
        )


class StackedTables:
    """Tables side by side as one, or of each table only some `rows`, in the order in which these are given.

    Shapes, for n partitions in all: `ids`, `leaders`, `leader_epochs`, `partition_epochs`, `recovery_states`, `numbers`
    (n,), `replicas` and `isr` (longest, n). `numbers` are the places of the tables that the partitions are from.
    """

    def __init__(self, tables: Sequence[PartitionTable], rows: Sequence[Rows] | None = None) -> None:
        self._tables = tables
        self.replica_width = max((table.replica_width for table in tables), default=0)
        self.isr_width = max((table.isr_width for table in tables), default=0)
        self._sizes = [len(table) for table in tables] if rows is None else [len(each) for each in rows]
        wide = [
            _widened(
                table.cells if rows is None else table.cells[:, rows[number]],
                (table.replica_width, table.isr_width),
                (self.replica_width, self.isr_width),
            )
            for number, table in enumerate(tables)
        ]
        height = NUMBER_COLUMNS + 2 * self.replica_width + self.isr_width
        empty = np.empty((height, 0), dtype=np.int32)
        self.cells: Column = np.concatenate([empty, *wide], axis=1)
        self.numbers: Rows = np.repeat(np.arange(len(tables)), self._sizes)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def ids(self) -> Column:
        ids: Column = self.cells[_IDS]
        return ids

    @property
    def leaders(self) -> Column:
        leaders: Column = self.cells[_LEADERS]
        return leaders

    @property
    def leader_epochs(self) -> Column:
        epochs: Column = self.cells[_LEADER_EPOCHS]
        return epochs

    @property
    def partition_epochs(self) -> Column:
        epochs: Column = self.cells[_PARTITION_EPOCHS]
        return epochs

    @property
    def recovery_states(self) -> Column:
        states: Column = self.cells[_RECOVERY_STATES]
        return states

    @property
    def replicas(self) -> Column:
        return self.cells[NUMBER_COLUMNS : NUMBER_COLUMNS + self.replica_width]

    @property
    def isr(self) -> Column:
        start = NUMBER_COLUMNS + self.replica_width
        return self.cells[start : start + self.isr_width]

    def directory_owners(self, rows: Rows, owners: Mapping[UUID, int], otherwise: int) -> Column:
        """Whose the directories of these partitions are, in shape (rows, longest replica list)."""
        sizes = [len(table.directory_ids) for table in self._tables]
        # Tables share their lists of directories where they can, and an id takes long to look up.
        of_lists: dict[int, list[int]] = {}
        flat: list[int] = []
        for table in self._tables:
            known_owners = of_lists.get(id(table.directory_ids))
            if known_owners is None:
                known_owners = [owners.get(each, otherwise) for each in table.directory_ids]
                of_lists[id(table.directory_ids)] = known_owners
            flat += known_owners
        firsts = np.cumsum([0, *sizes[:-1]]) if sizes else np.zeros(0, dtype=np.intp)
        numbers = self.cells[NUMBER_COLUMNS + self.replica_width + self.isr_width :, rows].T
        places = numbers + firsts[self.numbers[rows]][:, np.newaxis]
        if not flat:
            return np.full(numbers.shape, otherwise, dtype=np.int32)
        known = np.array(flat, dtype=np.int32)[np.maximum(places, 0)]
        of_replicas: Column = np.where(numbers == PADDING, otherwise, known)
        return of_replicas

    def in_elr(self, broker_id: int) -> Rows:
        """Which partitions have this broker among their eligible leader replicas, ascending."""
        return np.flatnonzero(self._is_among(lambda table: table.in_elr(broker_id)))

    def is_rare(self, rows: Rows) -> NDArray[np.bool_]:
        """Which of these partitions have rare lists."""
        return self._is_among(lambda table: list(table.rare_lists))[rows]

    def _is_among(self, ids_of: Callable[[PartitionTable], Column | list[int]]) -> NDArray[np.bool_]:
        """Whether each partition is one of those that `ids_of` names of its table, where that has rare lists."""
        is_among = np.zeros(len(self), dtype=np.bool_)
        start = 0
        for table, size in zip(self._tables, self._sizes, strict=True):
            stop = start + size
            if table.rare_lists:
                is_among[start:stop] = np.isin(self.ids[start:stop], ids_of(table))
            start = stop
        return is_among


def _widened(cells: Column, widths: tuple[int, int], wanted: tuple[int, int]) -> Column:
    """Of replica lists and ISRs of the wanted widths, which are no smaller."""
    if widths == wanted:
        return cells
    wide = np.full((NUMBER_COLUMNS + 2 * wanted[0] + wanted[1], cells.shape[1]), PADDING, dtype=np.int32)
    wide[:NUMBER_COLUMNS] = cells[:NUMBER_COLUMNS]
    start = wide_start = NUMBER_COLUMNS
    for width, wide_width in zip((*widths, widths[0]), (*wanted, wanted[0]), strict=True):
        wide[wide_start : wide_start + width] = cells[start : start + width]
        start, wide_start = start + width, wide_start + wide_width
    return wide


def tables_after(
    tables: Sequence[PartitionTable], numbers: Rows, changes: PartitionChanges
) -> list[PartitionTable] | None:
    """The tables after the changes; each change belongs to the table with its number in `numbers`.

    None if one is of a partition that its table lacks, or two are of the same partition.
    """
    after: list[PartitionTable] = list(tables)
    of_widths: dict[tuple[int, int], list[int]] = {}
    for number, table in enumerate(tables):
        of_widths.setdefault((table.replica_width, table.isr_width), []).append(number)
    for alike in of_widths.values():
        if len(of_widths) == 1:
            changed = _alike_after(tables, numbers, changes)
        else:
            places = np.full(len(tables), -1)
            places[alike] = np.arange(len(alike))
            rows = np.flatnonzero(places[numbers] >= 0)
            part = [tables[number] for number in alike]
            changed = _alike_after(part, places[numbers[rows]], changes.take(rows))
        if changed is None:
            return None
        for number, table in zip(alike, changed, strict=True):
            after[number] = table
    return after


def _alike_after(
    tables: Sequence[PartitionTable], numbers: Rows, changes: PartitionChanges
) -> list[PartitionTable] | None:
    """The same of tables with equal widths."""
    stack = StackedTables(tables)
    rows = _rows_of(stack, numbers, changes.partition_ids)
    if rows is None:
        return None
    cells, replica_width, isr_width = stack.cells, stack.replica_width, stack.isr_width
    wanted = max(isr_width, int(changes.isr_counts.max(initial=NO_ISR_CHANGE)))
    isr_start = NUMBER_COLUMNS + replica_width
    if wanted > isr_width:
        more = np.full((wanted - isr_width, cells.shape[1]), PADDING, dtype=np.int32)
        cells = np.concatenate([cells[: isr_start + isr_width], more, cells[isr_start + isr_width :]])
    _put(cells, rows, changes, slice(isr_start, isr_start + wanted))
    ends = accumulate((len(table) for table in tables), initial=0)
    return [
        table_of_cells(cells[:, start:stop], (replica_width, wanted), table.directory_ids, table.rare_lists)
        for table, (start, stop) in zip(tables, pairwise(ends), strict=True)
    ]


def _rows_of(stack: StackedTables, numbers: Rows, partition_ids: Column) -> Rows | None:
    """Where the partitions lie in the stack; None if one is not there, or comes twice."""
    if not len(stack):
        return None if len(partition_ids) else np.empty(0, dtype=np.intp)
    known = (stack.numbers << 32) + stack.ids
    wanted = (numbers << 32) + partition_ids
    rows = np.minimum(known.searchsorted(wanted), len(known) - 1)
    if (known[rows] != wanted).any():
        return None
    if not (rows[1:] > rows[:-1]).all() and len(np.unique(rows)) != len(rows):
        return None
    return rows


def _put(cells: Column, rows: Rows, changes: PartitionChanges, isr: slice) -> None:
    """Every change bumps the partition epoch; one that names a leader, even the same, bumps the leader epoch too."""
    has_leader = changes.leaders != NO_LEADER_CHANGE
    led = rows[has_leader]
    cells[_LEADERS, led] = changes.leaders[has_leader]
    cells[_LEADER_EPOCHS, led] += 1
    cells[_PARTITION_EPOCHS, rows] += 1
    has_isr = changes.isr_counts != NO_ISR_CHANGE
    changed = rows[has_isr]
    for place, column in enumerate(range(isr.start, isr.stop)):
        is_known = place < changes.isr.shape[1]
        cells[column, changed] = changes.isr[has_isr, place] if is_known else PADDING


def compacted(members: Column, is_kept: NDArray[np.bool_]) -> Column:
    """Lists of (rows, width) without what is not kept, in their order, padded behind their end."""
    order = np.argsort(~is_kept, axis=1, kind="stable")
    kept: Column = np.where(
        np.take_along_axis(is_kept, order, axis=1), np.take_along_axis(members, order, axis=1), PADDING
    )
    return kept


def stretches(topic_ids: NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Where rows of the same topic begin and end."""
    begins = np.flatnonzero(topic_ids[1:] != topic_ids[:-1]) + 1
    return pairwise([0, *begins.tolist(), len(topic_ids)]) if len(topic_ids) else iter(())


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
