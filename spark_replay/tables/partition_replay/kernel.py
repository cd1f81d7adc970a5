"""The events of partitions as rows of `partition_history`: the replay itself, over whole columns at once.

An event of a PartitionRecord holds a partition's whole state. One of a PartitionChangeRecord holds only what changed,
so the rest is carried forward from the rows before. Its leader is -2 where the leader stays; any other value, the same
leader included, raises the leader epoch by one; every change raises the partition epoch by one (Kafka's
`PartitionRegistration.merge`). A ClearElrRecord is a change of each partition that has eligible replicas to clear.

To carry a column forward is to find, for each row, the row that it has its value from: the last one of the same
partition which says something. The values are then taken from there, arrays included, without a loop over rows.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kquorum.spark_replay.arrow_types import arrow_schema
from kquorum.spark_replay.tables.building.frames import CALENDAR_MS
from kquorum.spark_replay.tables.partition_replay.columns import (
    ARRAYS,
    BEFORE,
    CHANGES,
    CLEARED,
    CREATED,
    ELR,
    MOMENT,
    TOPIC,
)

# Runs of rows that belong together, as numbers of rows: what has no vectorised form in Arrow.

Mask: TypeAlias = NDArray[np.bool_]
# Numbers of rows; -1 for none.
Rows: TypeAlias = NDArray[np.int64]


def starts_of(*columns: Any) -> Mask:
    """True where a row differs from the row before in one of the columns; the first row starts a run."""
    count = len(columns[0])
    starts = np.zeros(count, np.bool_)
    starts[:1] = True
    for column in columns:
        codes = column if pa.types.is_integer(column.type) else column.dictionary_encode().indices
        numbers = longs(codes, np.iinfo(np.int64).min)
        starts[1:] |= numbers[1:] != numbers[:-1]
    return starts


def first_rows(starts: Mask) -> Rows:
    """For each row the first of its run."""
    rows: Rows = np.maximum.accumulate(np.where(starts, np.arange(len(starts)), 0))
    return rows


def carried_from(mask: Mask, first: Rows) -> Rows:
    """For each row the last one up to it, itself included, and not before `first`, where `mask` is set."""
    rows: Rows = np.maximum.accumulate(np.where(mask, np.arange(len(mask)), -1))
    return np.where(rows >= first, rows, -1)


def taken(column: Any, rows: Rows) -> Any:
    """The column's values at these rows, null for none."""
    missing = rows < 0
    return column.take(pa.array(rows, mask=missing) if missing.any() else pa.array(rows))


def is_valid(column: Any) -> Mask:
    mask: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    return mask


def longs(column: Any, missing: int) -> Rows:
    """Integers as 64 bits, `missing` for null."""
    numbers: Rows = pc.fill_null(column.cast(pa.int64()), missing).to_numpy(zero_copy_only=False)
    return numbers


def list_sizes(column: Any) -> Rows:
    """The lengths of lists; 0 for null."""
    return longs(pc.list_value_length(column), 0)


def lists_differ(left: Any, right: Any) -> Mask:
    """Where two lists of integers, neither of them null, are not equal in length, values and order."""
    both = is_valid(left) & is_valid(right)
    differ: Mask = list_sizes(left) != list_sizes(right)
    same = both & ~differ
    left_same, right_same = left.filter(pa.array(same)), right.filter(pa.array(same))
    row_of = np.repeat(np.flatnonzero(same), list_sizes(left_same))
    unequal = longs(left_same.flatten(), 0) != longs(right_same.flatten(), 0)
    differ[row_of[unequal]] = True
    return differ & both


NO_LEADER_CHANGE: Final = -2
NO_RECOVERY_CHANGE: Final = -1
MIGRATING_DIRECTORY: Final = "AAAAAAAAAAAAAAAAAAAAAA"
_AS_THEY_ARE: Final = (
    *("source", "topic_id", "partition_id"),
    *("record_type", "quorum_epoch", "batch_base_offset"),
)


def partition_kernel(events: Any, schema: Any) -> Any:
    """Rows of `partition_history` as a `pyarrow.RecordBatch`, in the order of the events.

    `events` is a RecordBatch of `EVENTS`, sorted by EVENT_ORDER, with all events of each partition that is in it. The
    row about a topic goes before each run of its partitions.
    """
    return _Replay(events).rows(schema) if events.num_rows else pa.RecordBatch.from_pylist([], schema=schema)


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

    def rows(self, schema: Any) -> Any:
        """The history of all that are kept, less what came after the removal of the topic."""
        columns = {name: taken(self._events.column(name), self._kept) for name in _AS_THEY_ARE}
        columns |= self._carried() | self._epochs() | self._validity()
        batch = pa.RecordBatch.from_arrays(
            [columns[field.name].cast(field.type) for field in schema], schema=schema
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
        recorded = self._events.column("directories")
        rows = carried_from(is_valid(recorded), self._first)[self._kept]
        is_empty = (rows >= 0) & (list_sizes(recorded)[rows] == 0)
        if not is_empty.any():
            return taken(recorded, rows)
        wanted = np.where(is_valid(replicas), list_sizes(replicas), -1)
        migrating = [[MIGRATING_DIRECTORY] * size for size in range(int(wanted.max(initial=0)) + 1)]
        values = pa.concat_arrays([recorded, pa.array(migrating, recorded.type)])
        instead = np.where(wanted >= 0, len(recorded) + wanted, -1)
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
            recorded = taken(self._events.column(name), kept)
            base = taken(recorded, carried_from(is_created & is_valid(recorded), first))
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


# Sorted events of partitions in batches of any size, cut again so that none cuts through a partition.

ROWS_AT_ONCE: Final = 65_536


def whole_partitions(batches: Iterable[Any], rows_at_once: int = ROWS_AT_ONCE) -> Iterator[Any]:
    """RecordBatches of `EVENTS`, sorted, of at least so many rows where there are; none goes on in the next one.

    The row about a topic is repeated before each batch that begins within it.
    """
    waiting: list[Any] = []
    count, enough = 0, rows_at_once
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        if count >= enough:
            whole, rest = _without_last_partition(_joined(waiting))
            if whole.num_rows:
                yield whole
            waiting, count = [rest], rest.num_rows
            # A partition longer than a batch is not looked through again with every batch.
            enough = max(rows_at_once, 2 * count)
    if count:
        yield _joined(waiting)


def _joined(batches: list[Any]) -> Any:
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _without_last_partition(events: Any) -> tuple[Any, Any]:
    """The events before those of the last partition, and those, after the row about their topic."""
    new_topic = starts_of(events.column("source"), events.column("topic_id"))
    starts = np.flatnonzero(new_topic | starts_of(events.column("partition_id")))
    last = int(starts[-1])
    topic = int(first_rows(new_topic)[last])
    rest = events.slice(last)
    if topic < last and events.column("record_type")[topic].as_py() == TOPIC:
        rest = _joined([events.slice(topic, 1), rest])
    return events.slice(0, last), rest


_CHANGES: Final = arrow_schema(CHANGES)


# Rows of `partition_history` beside what the partition was before: what the tables of changes are made of.


def changes_of(history: Any) -> Any:
    """The rows with another leader or ISR than the row before them of their partition, which they have as `old_*`.

    The first row of a partition is its creation and no change. `history` is a RecordBatch of rows of
    `partition_history`, all those of each partition that is in it, in their order.
    """
    starts = starts_of(*map(history.column, ("source", "topic_id", "partition_id")))
    after = np.flatnonzero(~starts)
    differ = _leaders_differ(history, after)
    rest = after[~differ]
    isr = history.column("isr")
    others = lists_differ(isr.take(pa.array(rest)), isr.take(pa.array(rest - 1)))
    differ[~differ] = others
    now = history.take(pa.array(after[differ]))
    before = history.take(pa.array(after[differ] - 1))
    columns = [
        before.column(BEFORE[name]) if name in BEFORE else now.column(MOMENT.get(name, name))
        for name in _CHANGES.names
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_CHANGES)


def _leaders_differ(history: Any, after: Any) -> Mask:
    leader = history.column("leader")
    numbers, valid = longs(leader, 0), is_valid(leader)
    differ: Mask = (numbers[after] != numbers[after - 1]) & valid[after] & valid[after - 1]
    return differ
