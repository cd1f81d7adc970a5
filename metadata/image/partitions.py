"""The partitions of one topic, held in columns.

A cluster may have a million partitions, and when a broker dies the question "which of them have it in their ISR" must
be answered at once. So a partition is no object but one place in columns of numbers: replica lists are padded to the
longest list, directories are numbers into a short list of ids. All columns of a topic are rows of one array: a topic of
a hundred partitions would otherwise pay more for the headers of its arrays than for their content. Lists that hardly
any partition has (a running reassignment, eligible leader replicas) are in a dict beside the columns.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from kquorum.metadata.image.partition_state import NO_LEADER, RECOVERED, PartitionState, StateDraft

Column = NDArray[np.int32]

# Fills a list that is shorter than the longest; no broker has this id.
PADDING: Final = int(np.iinfo(np.int32).min)


@dataclass(frozen=True, slots=True)
class RareLists:
    removing_replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]

    @property
    def is_empty(self) -> bool:
        return not (self.removing_replicas or self.adding_replicas or self.elr or self.last_known_elr)


NO_RARE_LISTS = RareLists((), (), (), ())
NONE_RARE: Mapping[int, RareLists] = {}


def warm_columns() -> None:
    """NumPy's `unique` imports some modules when it is first called, which takes some forty milliseconds: a node calls
    it before it serves clients."""
    np.unique(np.zeros(1, dtype=np.int32))


def renumbered(numbers: Column, known: tuple[UUID, ...], wanted: tuple[UUID, ...]) -> Column:
    """Numbers into `known` as numbers into `wanted`, -1 for ids which are not there; padding stays."""
    # The usual case: ids are only ever appended to `wanted`, so the numbers stay right.
    if known == wanted[: len(known)]:
        return numbers
    places = {directory_id: number for number, directory_id in enumerate(wanted)}
    mapping = np.array([places.get(directory_id, -1) for directory_id in known], dtype=np.int32)
    # `maximum` keeps PADDING from being an index; `where` then puts it back.
    renumbered: Column = np.where(numbers == PADDING, PADDING, mapping[np.maximum(numbers, 0)])
    return renumbered


def merged_ids(known: tuple[UUID, ...], more: tuple[UUID, ...]) -> tuple[UUID, ...]:
    """`known` itself where nothing comes to it: the tables of a topic, one after the other, then share it."""
    if known == more:
        return known
    merged = tuple(dict.fromkeys(known + more))
    return known if len(merged) == len(known) else merged


def unpadded(values: list[int]) -> tuple[int, ...]:
    return tuple(values) if not values or values[-1] != PADDING else tuple(v for v in values if v != PADDING)


def padded(values: Sequence[int], width: int) -> Sequence[int]:
    return values if len(values) == width else (*values, *(PADDING,) * (width - len(values)))


def stacked(lists: Sequence[Column]) -> Column:
    """Padded lists one below the other, as wide as the widest; there are some."""
    width = max(each.shape[1] for each in lists)
    return np.concatenate([each if each.shape[1] == width else _widened(each, width) for each in lists])


def _widened(lists: Column, width: int) -> Column:
    wide = np.full((len(lists), width), PADDING, dtype=np.int32)
    wide[:, : lists.shape[1]] = lists
    return wide


def lists_differ(one: Column, other: Column) -> NDArray[np.bool_]:
    """Whether two lists in the same row differ, padding aside."""
    common = min(one.shape[1], other.shape[1])
    differs: NDArray[np.bool_] = (one[:, :common] != other[:, :common]).any(axis=1)
    for longer in (one, other):
        if longer.shape[1] > common:
            # Lists are padded behind their end, so the first place too many tells.
            differs |= longer[:, common] != PADDING
    return differs


def rare_lists_of(state: PartitionState) -> RareLists:
    return RareLists(state.removing_replicas, state.adding_replicas, state.elr, state.last_known_elr)


_IDS, _LEADERS, _LEADER_EPOCHS, _PARTITION_EPOCHS, _RECOVERY_STATES = range(5)
NUMBER_COLUMNS: Final = 5
_STATES_AT_ONCE: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartitionTable:
    """Immutable: a change makes a new table, and the columns refuse to be written.

    Shapes, for n partitions: `ids`, `leaders`, `leader_epochs`, `partition_epochs`, `recovery_states` are (n,),
    `replicas` and `directories` (n, longest replica list), `isr` (n, longest ISR). `ids` ascend. `cells` holds all of
    them, a column a row; `replica_width` and `isr_width` say how many belong to the two lists. `rare_lists` has no
    empty entries.
    """

    cells: Column
    replica_width: int
    isr_width: int
    directory_ids: tuple[UUID, ...]
    rare_lists: Mapping[int, RareLists]

    @property
    def ids(self) -> Column:
        return self._column(_IDS)

    @property
    def leaders(self) -> Column:
        return self._column(_LEADERS)

    @property
    def leader_epochs(self) -> Column:
        return self._column(_LEADER_EPOCHS)

    @property
    def partition_epochs(self) -> Column:
        return self._column(_PARTITION_EPOCHS)

    @property
    def recovery_states(self) -> Column:
        return self._column(_RECOVERY_STATES)

    @property
    def replicas(self) -> Column:
        return self.cells[NUMBER_COLUMNS : self._isr_start].T

    @property
    def isr(self) -> Column:
        return self.cells[self._isr_start : self._directories_start].T

    @property
    def isr_cells(self) -> Column:
        """All that is in the ISRs, and padding, in one row."""
        return self.cells[self._isr_start : self._directories_start].ravel()

    @property
    def directories(self) -> Column:
        return self.cells[self._directories_start :].T

    @property
    def _isr_start(self) -> int:
        return NUMBER_COLUMNS + self.replica_width

    @property
    def _directories_start(self) -> int:
        return NUMBER_COLUMNS + self.replica_width + self.isr_width

    def __len__(self) -> int:
        return int(self.cells.shape[1])

    def __eq__(self, other: object) -> bool:
        """By content: padding and the numbering of directories do not count."""
        if not isinstance(other, PartitionTable):
            return NotImplemented
        if self is other:
            return True
        return np.array_equal(self.ids, other.ids) and not len(self.ids_not_in(other))

    __hash__ = None  # type: ignore[assignment]

    def get(self, partition_id: int) -> PartitionState | None:
        ids = self.ids
        row = int(ids.searchsorted(partition_id))
        if row == len(ids) or ids[row] != partition_id:
            return None
        return next(self._states(slice(row, row + 1)))[1]

    def found(self, partition_ids: Iterable[int]) -> dict[int, PartitionState]:
        """Those of these partitions that there are, quicker than one by one."""
        wanted = np.unique(np.fromiter(partition_ids, dtype=np.int32))
        rows = self.ids.searchsorted(wanted)
        # `wanted` ascends, so the rows beyond the end belong to its last ids: `wanted[: len(rows)]` stays aligned.
        rows = rows[rows < len(self)]
        return dict(self._states(rows[self.ids[rows] == wanted[: len(rows)]]))

    def items(self) -> Iterator[tuple[int, PartitionState]]:
        """Each partition with its id, ascending."""
        for start in range(0, len(self), _STATES_AT_ONCE):
            yield from self._states(slice(start, start + _STATES_AT_ONCE))

    def items_of(self, ids: Column) -> Iterator[tuple[int, PartitionState]]:
        """The partitions with these ids, in their order. All ids must be in the table."""
        rows = self.ids.searchsorted(ids)
        for start in range(0, len(rows), _STATES_AT_ONCE):
            yield from self._states(rows[start : start + _STATES_AT_ONCE])

    def part(self, start: int, stop: int) -> "PartitionTable":
        """The partitions in these places, counted in the order of their ids."""
        if start <= 0 and stop >= len(self):
            return self
        cells = self.cells[:, start:stop]
        rare_lists = NONE_RARE
        if self.rare_lists:
            known = cells[_IDS].tolist()
            rare_lists = {each: self.rare_lists[each] for each in known if each in self.rare_lists}
        return table_of_cells(cells, (self.replica_width, self.isr_width), self.directory_ids, rare_lists)

    def replica_counts(self) -> dict[int, int]:
        """How many replicas each broker has of the topic."""
        return _counts(self.cells[NUMBER_COLUMNS : self._isr_start])

    def preferred_counts(self) -> dict[int, int]:
        """Of how many partitions each broker is the preferred replica."""
        return _counts(self.cells[NUMBER_COLUMNS : min(NUMBER_COLUMNS + 1, self._isr_start)])

    def in_elr(self, broker_id: int) -> Column:
        """Ids of the partitions that have this broker among their eligible leader replicas, ascending."""
        found = [each for each, lists in self.rare_lists.items() if broker_id in lists.elr]
        return np.array(sorted(found), dtype=np.int32)

    def leaderless(self) -> Column:
        return self._ids_where(self.leaders == NO_LEADER)

    def ids_not_in(self, other: "PartitionTable") -> Column:
        """Ids of the partitions that `other` lacks, or has in another state."""
        ids = self.ids
        if not len(other):
            return ids
        # One comparison of whole arrays is far cheaper than the column by column one below, and most tables are equal.
        if self._is_same_bytes(other):
            return ids[:0]
        # An id that `other` lacks gets some neighbour's row; the comparison of ids below marks it as different.
        rows = np.minimum(other.ids.searchsorted(ids), len(other) - 1)
        differs = other.ids[rows] != ids
        for column in range(_IDS + 1, NUMBER_COLUMNS):
            differs |= self.cells[column] != other.cells[column, rows]
        differs |= lists_differ(self.replicas, other.replicas[rows])
        differs |= lists_differ(self.isr, other.isr[rows])
        directories = renumbered(other.directories[rows], other.directory_ids, self.directory_ids)
        differs |= lists_differ(self.directories, directories)
        if self.rare_lists or other.rare_lists:
            differs |= self._has_other_rare_lists(other)
        differing: Column = ids[differs]
        return differing

    def with_rows(self, rows: "PartitionTable") -> "PartitionTable":
        """A table with the partitions of `rows` put in or replaced."""
        if not len(self) or not len(rows):
            return rows if len(rows) else self
        ids = self.ids
        changed = ids.searchsorted(rows.ids)
        if changed[-1] < len(ids) and np.array_equal(ids[changed], rows.ids):
            length, old = len(ids), np.arange(len(ids))
        else:
            united = np.union1d(ids, rows.ids)
            length, old, changed = len(united), united.searchsorted(ids), united.searchsorted(rows.ids)
        directory_ids = merged_ids(self.directory_ids, rows.directory_ids)
        widths = [
            max(one.shape[1], two.shape[1]) for one, two in zip(_parts(self), _parts(rows), strict=True)
        ]
        cells = np.full((sum(widths), length), PADDING, dtype=np.int32)
        start = 0
        for number, (mine, new, width) in enumerate(zip(_parts(self), _parts(rows), widths, strict=True)):
            # The last part holds numbers of directories, and each table numbers them in its own way.
            if number == len(widths) - 1:
                new = renumbered(new, rows.directory_ids, directory_ids)
            part = cells[start : start + width].T
            part[old, : mine.shape[1]] = mine
            # A shorter new list must not leave the tail of the old one behind it.
            part[changed, new.shape[1] :] = PADDING
            part[changed, : new.shape[1]] = new
            start += width
        rare_lists = self._merged_rare_lists(rows)
        return table_of_cells(cells, (widths[1], widths[2]), directory_ids, rare_lists)

    def _is_same_bytes(self, other: "PartitionTable") -> bool:
        """The quick answer of large tables, where False says nothing."""
        return (
            (self.replica_width, self.isr_width) == (other.replica_width, other.isr_width)
            and self.rare_lists == other.rare_lists
            and np.array_equal(self.cells, other.cells)
            and self.directory_ids == other.directory_ids
        )

    def _column(self, number: int) -> Column:
        column: Column = self.cells[number]
        return column

    def _ids_where(self, mask: NDArray[np.bool_]) -> Column:
        selected: Column = self.ids[mask]
        return selected

    def _has_other_rare_lists(self, other: "PartitionTable") -> NDArray[np.bool_]:
        both = self.rare_lists.keys() | other.rare_lists.keys()
        differing = [each for each in both if self.rare_lists.get(each) != other.rare_lists.get(each)]
        return np.isin(self.ids, differing)

    def _merged_rare_lists(self, rows: "PartitionTable") -> Mapping[int, RareLists]:
        if not self.rare_lists:
            return rows.rare_lists
        replaced = set(rows.ids.tolist())
        kept = {each: lists for each, lists in self.rare_lists.items() if each not in replaced}
        return {**kept, **rows.rare_lists} or NONE_RARE

    def _states(self, rows: "slice | NDArray[np.intp]") -> Iterator[tuple[int, PartitionState]]:
        isr_start, directories_start = self._isr_start, self._directories_start
        for numbers in self.cells[:, rows].T.tolist():
            rare = self.rare_lists.get(numbers[_IDS], NO_RARE_LISTS) if self.rare_lists else NO_RARE_LISTS
            state = StateDraft()
            state.replicas = unpadded(numbers[NUMBER_COLUMNS:isr_start])
            state.directories = tuple(
                [self.directory_ids[number] for number in unpadded(numbers[directories_start:])]
            )
            state.isr = unpadded(numbers[isr_start:directories_start])
            state.removing_replicas = rare.removing_replicas
            state.adding_replicas = rare.adding_replicas
            state.leader = numbers[_LEADERS]
            state.leader_recovery_state = numbers[_RECOVERY_STATES]
            state.leader_epoch = numbers[_LEADER_EPOCHS]
            state.partition_epoch = numbers[_PARTITION_EPOCHS]
            state.elr = rare.elr
            state.last_known_elr = rare.last_known_elr
            # A frozen dataclass sets each field through object.__setattr__, which takes several times as long.
            state.__class__ = PartitionState
            yield numbers[_IDS], state


def table_of(states: Mapping[int, PartitionState]) -> PartitionTable:
    """The table of these partitions."""
    ids = sorted(states)
    ordered = [states[partition_id] for partition_id in ids]
    numbers: dict[UUID, int] = {}
    directories = [
        [numbers.setdefault(each, len(numbers)) for each in state.directories] for state in ordered
    ]
    replica_width = max((len(state.replicas) for state in ordered), default=0)
    isr_width = max((len(state.isr) for state in ordered), default=0)
    rows = [
        (
            partition_id,
            state.leader,
            state.leader_epoch,
            state.partition_epoch,
            state.leader_recovery_state,
            *padded(state.replicas, replica_width),
            *padded(state.isr, isr_width),
            *padded(where, replica_width),
        )
        for partition_id, state, where in zip(ids, ordered, directories, strict=True)
    ]
    width = NUMBER_COLUMNS + 2 * replica_width + isr_width
    cells = np.array(rows, dtype=np.int32).reshape(len(rows), width).T
    rare_lists = {
        each: lists for each, state in states.items() if not (lists := rare_lists_of(state)).is_empty
    }
    return table_of_cells(cells, (replica_width, isr_width), tuple(numbers), rare_lists or NONE_RARE)


def table_of_new(
    ids: Column, replicas: Column, isr: Column, directories: Column, directory_ids: tuple[UUID, ...]
) -> PartitionTable:
    """The table of partitions that have just been made, the lists in shape (partitions, width): each is recovered, its
    epochs are 0, and the first of its ISR leads, which is not empty."""
    numbers = np.zeros((NUMBER_COLUMNS, len(ids)), dtype=np.int32)
    numbers[_IDS] = ids
    numbers[_LEADERS] = isr[:, 0]
    numbers[_RECOVERY_STATES] = RECOVERED
    cells = np.concatenate([numbers, replicas.T, isr.T, directories.T])
    return table_of_cells(cells, (replicas.shape[1], isr.shape[1]), directory_ids)


def table_of_cells(
    cells: Column,
    widths: tuple[int, int],
    directory_ids: tuple[UUID, ...],
    rare_lists: Mapping[int, RareLists] = NONE_RARE,
) -> PartitionTable:
    """`widths` are those of the replica lists and of the ISRs; `cells` is not written to any more."""
    cells = np.ascontiguousarray(cells)
    cells.flags.writeable = False
    return PartitionTable(
        cells=cells,
        replica_width=widths[0],
        isr_width=widths[1],
        directory_ids=directory_ids,
        rare_lists=rare_lists,
    )


def _counts(cells: Column) -> dict[int, int]:
    """How often each number is there, padding aside."""
    numbers, counts = np.unique(cells[cells != PADDING], return_counts=True)
    return dict(zip(numbers.tolist(), counts.tolist(), strict=True))


def _parts(table: PartitionTable) -> tuple[Column, Column, Column, Column]:
    return table.cells[:NUMBER_COLUMNS].T, table.replicas, table.isr, table.directories


EMPTY_PARTITIONS = table_of({})
