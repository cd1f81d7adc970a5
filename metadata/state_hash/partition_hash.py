"""The hashes of partitions, by columns: a million of them are hashed in half a second.

A partition's hash has two halves of 64 bits. For each, every number of its row is multiplied by a random key of its
own place (replica 0, replica 1, leader epoch, ...) and added up, with the hash of the topic's id; then the sum is
mixed so that every bit depends on every other, since the rows' hashes are summed up in turn, and what moves from one
partition to another must not cancel out. Numbers are counted from below the lowest that there is, where padding
stands: so padding is 0 and adds nothing, and tables of the same partitions hash alike whatever their widths.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from operator import mul
from typing import Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from kquorum.metadata.image.partitions import NUMBER_COLUMNS, PADDING, Column, PartitionTable

Lanes = NDArray[np.uint64]

_MASK: Final = 2**64 - 1
# Fewer rows than this are hashed one by one: calls of NumPy would cost more.
_FEW: Final = 12
_ROWS_AT_ONCE: Final = 1 << 14
_FACTORS: Final = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_SHIFTS: Final = (30, 27, 31)


class Rows:
    """Some rows of a topic's table by their places, or all (None); `seed` is the topic's, from `seed_of`."""

    __slots__ = ("count", "places", "seed", "table")

    def __init__(self, seed: tuple[int, int], table: PartitionTable, places: Column | None) -> None:
        self.seed = seed
        self.table = table
        self.places = places
        self.count = len(table if places is None else places)

    def pieces(self, most: int) -> Iterator["Rows"]:
        """The same rows, so many at most at a time."""
        if self.count <= most:
            yield self
            return
        places = np.arange(self.count, dtype=np.int32) if self.places is None else self.places
        for start in range(0, self.count, most):
            yield Rows(self.seed, self.table, places[start : start + most])

    @property
    def all_places(self) -> Iterable[int]:
        return range(len(self.table)) if self.places is None else self.places.tolist()

    @property
    def cells(self) -> Column:
        if self.places is None:
            return self.table.cells
        first, last = int(self.places[0]), int(self.places[-1])
        if last - first == self.count - 1:  # a run, as a single row is: a view is ten times as cheap
            return self.table.cells[:, first : last + 1]
        return self.table.cells[:, self.places]


def seed_of(topic_id: UUID) -> tuple[int, int]:
    return _lanes_of_id("topic", topic_id)


def hash_of_rows(selected: Iterable[Rows]) -> int:
    """The sum of the partitions' hashes, not reduced."""
    groups: dict[tuple[int, int], list[Rows]] = {}
    count = 0
    for rows in selected:
        if rows.count:
            groups.setdefault((rows.table.replica_width, rows.table.isr_width), []).append(rows)
            count += rows.count
    if count <= _FEW:
        return sum(
            _hash_of_row(rows, place)
            for group in groups.values()
            for rows in group
            for place in rows.all_places
        )
    return sum(_hash_of_group(widths, group) for widths, group in groups.items())


def _hash_of_group(widths: tuple[int, int], group: Sequence[Rows]) -> int:
    """A piece at a time: small tables are put side by side, large ones are cut."""
    total, first, count = 0, 0, 0
    for number, rows in enumerate(group, 1):
        count += rows.count
        if count >= _ROWS_AT_ONCE or number == len(group):
            total += _hash_of_piece(widths, group[first:number])
            first, count = number, 0
    return total


def _hash_of_piece(widths: tuple[int, int], group: Sequence[Rows]) -> int:
    sizes = [rows.count for rows in group]
    cells = np.concatenate([rows.cells for rows in group], axis=1) if len(group) > 1 else group[0].cells
    seeds = np.array([rows.seed for rows in group], dtype=np.uint64).T
    seeds = np.repeat(seeds, sizes, axis=1)
    ids, firsts = _directory_lanes(group)
    first_ids = np.repeat(firsts, sizes)
    total = 0
    for start in range(0, cells.shape[1], _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        total += _sum(_lanes_of_rows(widths, cells[:, part], seeds[:, part], ids, first_ids[part]))
    return total


def _directory_lanes(group: Sequence[Rows]) -> tuple[Lanes, NDArray[np.int32]]:
    """The halves of the directories' ids of all these tables, (2, ids), behind a 0 for none; and for each table where
    its ids begin. Many tables share one tuple of ids."""
    parts = [np.zeros((2, 1), dtype=np.uint64)]
    begins: dict[int, int] = {}
    end = 1
    firsts = []
    for rows in group:
        directory_ids = rows.table.directory_ids
        begin = begins.get(id(directory_ids))
        if begin is None:
            begin = begins[id(directory_ids)] = end
            parts.append(_lanes_of_tuple(directory_ids)[0])
            end += len(directory_ids)
        firsts.append(begin)
    return np.concatenate(parts, axis=1), np.array(firsts, dtype=np.int32)


def _lanes_of_rows(
    widths: tuple[int, int], cells: Column, seeds: Lanes, ids: Lanes, first_ids: NDArray[np.int32]
) -> Lanes:
    """(2, rows), mixed."""
    split = NUMBER_COLUMNS + sum(widths)
    numbers = (cells[:split].astype(np.int64) - PADDING).view(np.uint64)
    keys, directory_keys = _keys(*widths)
    lanes: Lanes = keys @ numbers + seeds
    if widths[0]:
        directories = cells[split:]
        places = np.where(directories == PADDING, 0, directories + first_ids)
        for lane in range(2):
            lanes[lane] += directory_keys[lane] @ ids[lane].take(places)
    _mix(lanes[0])
    lanes[1] += lanes[0]
    _mix(lanes[1])
    return lanes


def _mix(lane: Lanes) -> None:
    """In place (the finalizer of SplitMix64)."""
    lane ^= lane >> np.uint64(_SHIFTS[0])
    lane *= np.uint64(_FACTORS[0])
    lane ^= lane >> np.uint64(_SHIFTS[1])
    lane *= np.uint64(_FACTORS[1])
    lane ^= lane >> np.uint64(_SHIFTS[2])


def _sum(lanes: Lanes) -> int:
    """Of the numbers of 128 bits whose halves these are; the upper half may lose what is above 2**128."""
    low = int((lanes[1] >> np.uint64(32)).sum()) << 32
    low += int((lanes[1] & np.uint64(2**32 - 1)).sum())
    return (int(lanes[0].sum()) << 64) + low


def _hash_of_row(rows: Rows, place: int) -> int:
    """The same for one row, in Python's numbers."""
    table = rows.table
    split = NUMBER_COLUMNS + table.replica_width + table.isr_width
    cells = table.cells[:, place].tolist()
    numbers = [number - PADDING for number in cells[:split]]
    keys, directory_keys = _plain_keys(table.replica_width, table.isr_width)
    known = _lanes_of_tuple(table.directory_ids)[1]
    directories = [known[each] for each in cells[split:] if each >= 0]
    high, low = rows.seed
    high += sum(map(mul, numbers, keys[0]))
    low += sum(map(mul, numbers, keys[1]))
    for (high_id, low_id), high_key, low_key in zip(directories, *directory_keys, strict=False):
        high += high_id * high_key
        low += low_id * low_key
    high = _mixed(high & _MASK)
    return (high << 64) + _mixed((low + high) & _MASK)


def _mixed(lane: int) -> int:
    lane ^= lane >> _SHIFTS[0]
    lane = lane * _FACTORS[0] & _MASK
    lane ^= lane >> _SHIFTS[1]
    lane = lane * _FACTORS[1] & _MASK
    return lane ^ lane >> _SHIFTS[2]


_Keys = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]


@lru_cache(maxsize=1024)
def _plain_keys(replica_width: int, isr_width: int) -> _Keys:
    """For each half, a key for every column; then the same for the columns of directories."""
    names = [("number", column) for column in range(NUMBER_COLUMNS)]
    names += [("replica", column) for column in range(replica_width)]
    names += [("isr", column) for column in range(isr_width)]
    cells = [_lanes_of(f"{kind} {column}".encode()) for kind, column in names]
    directories = [_lanes_of(f"directory {column}".encode()) for column in range(replica_width)]
    return _odd(cells), _odd(directories)


def _odd(pairs: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Odd numbers lose no bit of what they are multiplied with."""
    return tuple(high | 1 for high, _ in pairs), tuple(low | 1 for _, low in pairs)


@lru_cache(maxsize=1024)
def _keys(replica_width: int, isr_width: int) -> tuple[Lanes, Lanes]:
    """As arrays of (2, columns)."""
    cells, directories = _plain_keys(replica_width, isr_width)
    return np.array(cells, dtype=np.uint64), np.array(directories, dtype=np.uint64)


_Pairs = list[tuple[int, int]]
# By identity: to hash a tuple of ids costs more than to look up what is wanted. The tuples stay here, so that no other
# can have the identity of one that was known.
_KNOWN_TUPLES: Final[dict[int, tuple[tuple[UUID, ...], tuple[Lanes, _Pairs]]]] = {}
_MOST_KNOWN_TUPLES: Final = 1 << 13


def _lanes_of_tuple(directory_ids: tuple[UUID, ...]) -> tuple[Lanes, _Pairs]:
    """The halves of each id, as an array (2, ids) and as numbers."""
    known = _KNOWN_TUPLES.get(id(directory_ids))
    if known is None:
        if len(_KNOWN_TUPLES) >= _MOST_KNOWN_TUPLES:
            _KNOWN_TUPLES.clear()
        pairs = [_lanes_of_id("directory", each) for each in directory_ids]
        lanes = np.array(pairs, dtype=np.uint64).reshape(-1, 2).T
        known = _KNOWN_TUPLES[id(directory_ids)] = (directory_ids, (lanes, pairs))
    return known[1]


@lru_cache(maxsize=1 << 14)
def _lanes_of_id(kind: str, id_: UUID) -> tuple[int, int]:
    return _lanes_of(kind.encode() + id_.bytes)


def _lanes_of(data: bytes) -> tuple[int, int]:
    digest = blake2b(data, digest_size=16, person=b"kquorum rows").digest()
    return int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")
