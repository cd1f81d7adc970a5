"""The partitions of one topic, held in columns.

A cluster may have a million partitions, and when a broker dies the question "which of them have it in their ISR"
must be answered at once. So a partition is no object but a row: numbers in NumPy columns, replica lists in matrices
padded to the longest list, directories as numbers into a short list of ids. What hardly any partition has (a running
reassignment, eligible leader replicas) sits in a dict beside the columns.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from metadata.image.partition_state import NO_LEADER, PartitionState

Column = NDArray[np.int32]

# Fills a row of a matrix behind the end of a list that is shorter than the longest; no broker has this id.
PADDING = int(np.iinfo(np.int32).min)


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartitionTable:
    """Immutable: a change makes a new table, and the columns refuse to be written.

    Shapes, for n partitions: `ids`, `leaders`, `leader_epochs`, `partition_epochs`, `recovery_states` are (n,),
    `replicas` and `directories` (n, longest replica list), `isr` (n, longest ISR). `ids` ascend.
    """

    ids: Column
    leaders: Column
    leader_epochs: Column
    partition_epochs: Column
    recovery_states: Column
    replicas: Column
    isr: Column
    directories: Column
    directory_ids: tuple[UUID, ...]
    rare_lists: Mapping[int, RareLists]

    def __len__(self) -> int:
        return len(self.ids)

    def __eq__(self, other: object) -> bool:
        """By content: padding and the numbering of directories do not count."""
        if not isinstance(other, PartitionTable):
            return NotImplemented
        if self is other:
            return True
        return np.array_equal(self.ids, other.ids) and list(self.items()) == list(other.items())

    __hash__ = None  # type: ignore[assignment]

    def get(self, partition_id: int) -> PartitionState | None:
        row = int(np.searchsorted(self.ids, partition_id))
        if row == len(self.ids) or self.ids[row] != partition_id:
            return None
        return next(self._states(slice(row, row + 1)))[1]

    def items(self) -> Iterator[tuple[int, PartitionState]]:
        """Each partition with its id, ascending."""
        return self._states(slice(0, len(self.ids)))

    def led_by(self, broker_id: int) -> Column:
        """Ids of the partitions that this broker leads."""
        return self._ids_where(self.leaders == broker_id)

    def in_isr(self, broker_id: int) -> Column:
        """Ids of the partitions that have this broker in their ISR."""
        return self._ids_where((self.isr == broker_id).any(axis=1))

    def with_replica_on(self, broker_id: int) -> Column:
        """Ids of the partitions that this broker holds a replica of."""
        return self._ids_where((self.replicas == broker_id).any(axis=1))

    def leaderless(self) -> Column:
        return self._ids_where(self.leaders == NO_LEADER)

    def with_changes(self, changes: Mapping[int, PartitionState]) -> "PartitionTable":
        """A table with these rows put in or replaced."""
        if not changes:
            return self
        changed_ids = np.array(sorted(changes), dtype=np.int32)
        states = [changes[partition_id] for partition_id in changed_ids.tolist()]
        ids = np.union1d(self.ids, changed_ids).astype(np.int32)
        rows = _Rows(len(ids), np.searchsorted(ids, self.ids), np.searchsorted(ids, changed_ids))
        directory_ids, directory_numbers = _numbered(self.directory_ids, states)
        return PartitionTable(
            ids=_frozen(ids),
            leaders=rows.column(self.leaders, [state.leader for state in states]),
            leader_epochs=rows.column(self.leader_epochs, [state.leader_epoch for state in states]),
            partition_epochs=rows.column(self.partition_epochs, [state.partition_epoch for state in states]),
            recovery_states=rows.column(
                self.recovery_states, [state.leader_recovery_state for state in states]
            ),
            replicas=rows.matrix(self.replicas, [state.replicas for state in states]),
            isr=rows.matrix(self.isr, [state.isr for state in states]),
            directories=rows.matrix(self.directories, directory_numbers),
            directory_ids=directory_ids,
            rare_lists=_changed_rare_lists(self.rare_lists, changes),
        )

    def _ids_where(self, mask: NDArray[np.bool_]) -> Column:
        selected: Column = self.ids[mask]
        return selected

    def _states(self, rows: slice) -> Iterator[tuple[int, PartitionState]]:
        numbers = zip(
            self.ids[rows].tolist(),
            self.leaders[rows].tolist(),
            self.leader_epochs[rows].tolist(),
            self.partition_epochs[rows].tolist(),
            self.recovery_states[rows].tolist(),
            self.replicas[rows].tolist(),
            self.isr[rows].tolist(),
            self.directories[rows].tolist(),
            strict=True,
        )
        for (
            partition_id,
            leader,
            leader_epoch,
            partition_epoch,
            recovery,
            replicas,
            isr,
            directories,
        ) in numbers:
            rare = self.rare_lists.get(partition_id, NO_RARE_LISTS)
            yield (
                partition_id,
                PartitionState(
                    replicas=_unpadded(replicas),
                    directories=tuple(self.directory_ids[number] for number in _unpadded(directories)),
                    isr=_unpadded(isr),
                    removing_replicas=rare.removing_replicas,
                    adding_replicas=rare.adding_replicas,
                    leader=leader,
                    leader_recovery_state=recovery,
                    leader_epoch=leader_epoch,
                    partition_epoch=partition_epoch,
                    elr=rare.elr,
                    last_known_elr=rare.last_known_elr,
                ),
            )


@dataclass(frozen=True, slots=True)
class _Rows:
    """Where old rows go in a table of `length` rows, and where changed ones are put over them."""

    length: int
    old: NDArray[np.intp]
    changed: NDArray[np.intp]

    def column(self, old: Column, values: Sequence[int]) -> Column:
        new = np.empty(self.length, dtype=np.int32)
        new[self.old] = old
        new[self.changed] = values
        return _frozen(new)

    def matrix(self, old: Column, lists: Sequence[Sequence[int]]) -> Column:
        width = max(old.shape[1], *(len(values) for values in lists))
        new = np.full((self.length, width), PADDING, dtype=np.int32)
        new[self.old, : old.shape[1]] = old
        new[self.changed] = [(*values, *(PADDING,) * (width - len(values))) for values in lists]
        return _frozen(new)


def _numbered(
    known: tuple[UUID, ...], states: Sequence[PartitionState]
) -> tuple[tuple[UUID, ...], list[list[int]]]:
    """The directories of `states` as numbers into a list of ids, which grows where they are new."""
    numbers = {directory_id: number for number, directory_id in enumerate(known)}
    lists = [
        [numbers.setdefault(directory, len(numbers)) for directory in state.directories] for state in states
    ]
    return tuple(numbers), lists


def _changed_rare_lists(
    old: Mapping[int, RareLists], changes: Mapping[int, PartitionState]
) -> Mapping[int, RareLists]:
    changed = {partition_id: _rare_lists(state) for partition_id, state in changes.items()}
    if not old and all(lists.is_empty for lists in changed.values()):
        return old
    return {partition_id: lists for partition_id, lists in {**old, **changed}.items() if not lists.is_empty}


def _rare_lists(state: PartitionState) -> RareLists:
    return RareLists(state.removing_replicas, state.adding_replicas, state.elr, state.last_known_elr)


def _unpadded(values: list[int]) -> tuple[int, ...]:
    return tuple(values) if not values or values[-1] != PADDING else tuple(v for v in values if v != PADDING)


def _frozen(column: Column) -> Column:
    column.flags.writeable = False
    return column


def _empty_table() -> PartitionTable:
    column = _frozen(np.empty(0, dtype=np.int32))
    matrix = _frozen(np.empty((0, 0), dtype=np.int32))
    return PartitionTable(
        ids=column,
        leaders=column,
        leader_epochs=column,
        partition_epochs=column,
        recovery_states=column,
        replicas=matrix,
        isr=matrix,
        directories=matrix,
        directory_ids=(),
        rare_lists={},
    )


EMPTY_PARTITIONS = _empty_table()
