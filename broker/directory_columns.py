"""In which directories a broker's replicas lie, asked of the columns of whole topics: a replaced disk concerns all of
them at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from kquorum.metadata.image.partitions import Column, PartitionTable, stacked

Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class OwnReplicas:
    """Shapes: `counts` (directories of the broker,), how many replicas lie in each; `elsewhere` has for each table the
    ids of the partitions whose replica lies in none of them, ascending."""

    counts: Rows
    elsewhere: Sequence[Column]


def own_replicas(
    tables: Sequence[tuple[PartitionTable, Column | None]], broker_id: int, directories: Mapping[UUID, int]
) -> OwnReplicas:
    """Of those partitions (among the ids given, or all) that have a replica on the broker, whose directories are
    numbered from 0. The ids given ascend and are in the table."""
    ids = [table.ids if some is None else some for table, some in tables]
    nowhere = [each[:0] for each in ids]
    if not any(map(len, ids)):
        return OwnReplicas(np.zeros(len(directories), dtype=np.intp), nowhere)
    chosen = [slice(None) if some is None else table.ids.searchsorted(some) for table, some in tables]
    pairs = [(table, rows) for (table, _), rows in zip(tables, chosen, strict=True)]
    rows, columns = np.nonzero(stacked([table.replicas[some] for table, some in pairs]) == broker_id)
    numbers = stacked([table.directories[some] for table, some in pairs])[rows, columns]
    ends = np.cumsum([0, *map(len, ids)])
    firsts, places = _numbered([table.directory_ids for table, _ in tables], directories)
    of_rows = places[numbers + np.repeat(firsts, np.diff(ends))[rows]]
    is_elsewhere = of_rows == len(directories)
    counts = np.bincount(of_rows[~is_elsewhere], minlength=len(directories))
    if not is_elsewhere.any():
        return OwnReplicas(counts, nowhere)
    lost = rows[is_elsewhere]
    bounds = pairwise(lost.searchsorted(ends).tolist())
    starts = ends[:-1].tolist()
    return OwnReplicas(
        counts,
        [
            some[lost[first:last] - start]
            for some, (first, last), start in zip(ids, bounds, starts, strict=True)
        ],
    )


def _numbered(lists: Sequence[tuple[UUID, ...]], directories: Mapping[UUID, int]) -> tuple[Rows, Rows]:
    """Where each list starts among the places of all, and those: the number of a directory, or one more than the last
    for any that is not the broker's. Tables share their lists where they can."""
    starts: dict[int, int] = {}
    places: list[int] = []
    for each in lists:
        if id(each) not in starts:
            starts[id(each)] = len(places)
            places += [directories.get(directory_id, len(directories)) for directory_id in each]
    return (
        np.array([starts[id(each)] for each in lists], dtype=np.intp),
        np.array(places, dtype=np.intp),
    )
