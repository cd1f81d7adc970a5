"""The parts that a table of partitions is made of: columns of numbers, padded lists, and what is rare."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from metadata.image.partition_state import PartitionState

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
    it before it serves anybody."""
    np.unique(np.zeros(1, dtype=np.int32))


def renumbered(numbers: Column, known: tuple[UUID, ...], wanted: tuple[UUID, ...]) -> Column:
    """Numbers into `known` as numbers into `wanted`, -1 for ids which are not there; padding stays."""
    if known == wanted[: len(known)]:
        return numbers
    places = {directory_id: number for number, directory_id in enumerate(wanted)}
    mapping = np.array([places.get(directory_id, -1) for directory_id in known], dtype=np.int32)
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
