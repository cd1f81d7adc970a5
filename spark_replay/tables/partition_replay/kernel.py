"""The events of partitions as rows of `partition_history`: the replay itself, over whole columns at once.

An event of a PartitionRecord holds a partition's whole state. One of a PartitionChangeRecord holds only what changed,
so the rest is carried forward from the rows before. Its leader is -2 where the leader stays; any other value, the same
leader included, raises the leader epoch by one; every change raises the partition epoch by one (Kafka's
`PartitionRegistration.merge`). A ClearElrRecord is a change of each partition that has eligible replicas to clear.

To carry a column forward is to find, for each row, the row that it has its value from: the last one of the same
partition which says something. The values are then taken from there, arrays included, without a loop over rows.
"""

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kquorum.spark_replay.arrow_types import arrow_schema
from kquorum.spark_replay.schemas import PARTITION_HISTORY
from kquorum.spark_replay.tables.common import CALENDAR_MS
from kquorum.spark_replay.tables.partition_columns import CLEARED, TOPIC
from kquorum.spark_replay.tables.partition_payload import ARRAYS, CREATED, ELR
from kquorum.spark_replay.tables.row_runs import (
    Mask,
    Rows,
    carried_from,
    first_rows,
    is_valid,
    list_sizes,
    longs,
    starts_of,
    taken,
)

NO_LEADER_CHANGE: Final = -2
NO_RECOVERY_CHANGE: Final = -1
MIGRATING_DIRECTORY: Final = "AAAAAAAAAAAAAAAAAAAAAA"
_SCHEMA: Final = arrow_schema(PARTITION_HISTORY)
_AS_THEY_ARE: Final = (
    *("source", "topic_id", "partition_id"),
    *("record_type", "quorum_epoch", "batch_base_offset"),
)


def partition_kernel(events: Any) -> Any:
    """Rows of `partition_history` as a `pyarrow.RecordBatch`, in the order of the events.

    `events` is a RecordBatch of `EVENTS`, sorted by EVENT_ORDER, with all events of each partition that is in it. What
    is told of a topic goes before each run of its partitions.
    """
    return _Replay(events).rows() if events.num_rows else pa.RecordBatch.from_pylist([], schema=_SCHEMA)


class _Replay:
    """`kept` are the events that made a state; `first` is the first event of the partition of each event."""

    def __init__(self, events: Any) -> None:
        self._events = events
        types = events.column("record_type")
        is_topic = _is(types, TOPIC)
        self._is_created = _is(types, CREATED)
        new_topic = starts_of(events.column("source"), events.column("topic_id"))
        self._topic_first = first_rows(new_topic)
        self._first = first_rows(new_topic | starts_of(events.column("partition_id")) | is_topic)
        self._elr = {name: self._elr_from(name) for name in ELR}
        self._kept = np.flatnonzero(~is_topic & (~_is(types, CLEARED) | self._had_elr()))

    def _elr_from(self, name: str) -> Rows:
        """A creation without eligible replicas has none, rather than those of the row before."""
        return carried_from(is_valid(self._events.column(name)) | self._is_created, self._first)

    def _had_elr(self) -> Mask:
        """Before the event the partition had eligible replicas: a clearing that finds none changes nothing."""
        had_any = np.zeros(len(self._first), np.bool_)
        is_first = self._first == np.arange(len(self._first))
        for name, rows in self._elr.items():
            sizes = np.where(rows >= 0, list_sizes(self._events.column(name))[rows], 0)
            had_any[1:] |= sizes[:-1] > 0
        had_any[is_first] = False
        return had_any

    def rows(self) -> Any:
        """The history of all that are kept, less what came after the removal of the topic."""
        columns = {name: taken(self._events.column(name), self._kept) for name in _AS_THEY_ARE}
        columns |= self._carried() | self._epochs() | self._validity()
        batch = pa.RecordBatch.from_arrays(
            [columns[field.name].cast(field.type) for field in _SCHEMA], schema=_SCHEMA
        )
        removed = self._of_topic("removed_offset")
        return batch.filter(pc.fill_null(pc.less(columns["valid_from_offset"], removed), fill_value=True))

    def _carried(self) -> dict[str, Any]:
        events, columns = self._events, {}
        sources = {name: is_valid(events.column(name)) for name in ARRAYS}
        sources["leader"] = self._says_leader()
        sources["leader_recovery_state"] = _says(events.column("leader_recovery_state"), NO_RECOVERY_CHANGE)
        for name, mask in sources.items():
            columns[name] = taken(events.column(name), carried_from(mask, self._first)[self._kept])
        for name, rows in self._elr.items():
            columns[name] = _empty_where(taken(events.column(name), kept := rows[self._kept]), kept >= 0)
        return columns | {"directories": self._directories(columns["replicas"])}

    def _directories(self, replicas: Any) -> Any:
        """Records of version 0 tell no directories; Kafka then takes every replica's for "migrating"."""
        told = self._events.column("directories")
        rows = carried_from(is_valid(told), self._first)[self._kept]
        is_empty = (rows >= 0) & (list_sizes(told)[rows] == 0)
        if not is_empty.any():
            return taken(told, rows)
        wanted = np.where(is_valid(replicas), list_sizes(replicas), -1)
        migrating = [[MIGRATING_DIRECTORY] * size for size in range(int(wanted.max(initial=0)) + 1)]
        values = pa.concat_arrays([told, pa.array(migrating, told.type)])
        instead = np.where(wanted >= 0, len(told) + wanted, -1)
        return taken(values, np.where(is_empty, instead, rows))

    def _says_leader(self) -> Mask:
        return _says(self._events.column("leader"), NO_LEADER_CHANGE)

    def _epochs(self) -> dict[str, Any]:
        """The epochs: those of the PartitionRecord, and the changes counted since."""
        kept, is_created = self._kept, self._is_created[self._kept]
        first = np.searchsorted(kept, self._first[kept])
        counted = {"leader_epoch": self._says_leader()[kept], "partition_epoch": np.ones(len(kept), np.bool_)}
        created = carried_from(is_created, first)
        columns = {}
        for name, mask in counted.items():
            counts = np.cumsum(mask & ~is_created)
            told = taken(self._events.column(name), kept)
            base = taken(told, carried_from(is_created & is_valid(told), first))
            since = pa.array(counts - counts[created], mask=created < 0)
            columns[name] = _wrapped(pc.add(base.cast(pa.int64()), since))
        return columns

    def _validity(self) -> dict[str, Any]:
        """Each row holds until the next one of its partition, the last until the topic's removal."""
        kept, first = self._kept, self._first[self._kept]
        following = np.arange(1, len(kept) + 1)
        following[-1:] = -1
        following[:-1][first[1:] != first[:-1]] = -1
        offsets = taken(self._events.column("state_offset"), kept)
        times = taken(self._events.column("state_timestamp_ms"), kept)
        next_offset, next_ms = taken(offsets, following), taken(times, following)
        removed = self._of_topic("removed_offset")
        goes_first = pc.less_equal(next_offset, pc.coalesce(removed, next_offset))
        valid_to_ms = pc.if_else(
            pc.fill_null(goes_first, fill_value=False), next_ms, self._of_topic("removed_ms")
        )
        return {
            "topic_name": self._of_topic("topic_name"),
            "valid_from_offset": offsets,
            "valid_from_ms": times,
            "valid_from": _timestamps(times),
            "valid_to_offset": pc.min_element_wise(next_offset, removed),
            "valid_to_ms": valid_to_ms,
            "valid_to": _timestamps(valid_to_ms),
        }

    def _of_topic(self, name: str) -> Any:
        return taken(self._events.column(name), self._topic_first[self._kept])


def _is(types: Any, record_type: str) -> Mask:
    mask: Mask = pc.equal(types, record_type).to_numpy(zero_copy_only=False)
    return mask


def _says(values: Any, nothing: int) -> Mask:
    """Where there is a value that is more than a sign that nothing changes."""
    mask: Mask = longs(values, nothing) != nothing
    return mask


def _empty_where(lists: Any, mask: NDArray[np.bool_]) -> Any:
    """Lists that are null as empty ones, where `mask` is set."""
    nulls = mask & ~is_valid(lists)
    if not nulls.any():
        return lists
    values = pa.concat_arrays([lists, pa.array([[]], lists.type)])
    return taken(values, np.where(nulls, len(lists), np.where(is_valid(lists), np.arange(len(lists)), -1)))


def _wrapped(numbers: Any) -> Any:
    """As Kafka's counters of 32 bits go on behind their largest value."""
    return pc.subtract(pc.bit_wise_and(pc.add(numbers, 2**31), 2**32 - 1), 2**31)


def _timestamps(milliseconds: Any) -> Any:
    """Null for what no calendar has."""
    first, last = CALENDAR_MS
    is_time = pc.and_(pc.greater_equal(milliseconds, first), pc.less_equal(milliseconds, last))
    times = pc.if_else(is_time, milliseconds, pa.scalar(None, milliseconds.type))
    return times.cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))
