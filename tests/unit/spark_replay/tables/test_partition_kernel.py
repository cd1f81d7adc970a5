"""The replay of partitions over whole columns, against one event after the other."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from kquorum.spark_replay.arrow_types import arrow_schema
from kquorum.spark_replay.tables.partition_history import PARTITION_HISTORY
from kquorum.spark_replay.tables.partition_replay.columns import (
    ARRAYS,
    BEFORE,
    CHANGED,
    CHANGES,
    CLEARED,
    CREATED,
    ELR,
    EVENTS,
    MOMENT,
    TOPIC,
)
from kquorum.spark_replay.tables.partition_replay.kernel import (
    MIGRATING_DIRECTORY,
    changes_of,
    partition_kernel,
    whole_partitions,
)

Row = dict[str, Any]
HISTORY = arrow_schema(PARTITION_HISTORY)

BROKERS = st.lists(st.integers(0, 3), max_size=3)
MAYBE_BROKERS = st.none() | BROKERS
TIMES = st.none() | st.integers(0, 10**13)
DIRECTORIES = st.lists(st.sampled_from(["a", "b"]), max_size=3)


def event(draw: st.DrawFn, kind: str) -> Row:
    row: Row = dict.fromkeys(EVENTS.fieldNames())
    row |= {"record_type": kind, "state_timestamp_ms": draw(TIMES), "quorum_epoch": draw(st.integers(0, 3))}
    row["batch_base_offset"] = draw(st.none() | st.integers(0, 9))
    if kind == CLEARED:
        return row | {name: [] for name in ELR}
    if kind == CREATED:
        row |= {name: draw(BROKERS) for name in ARRAYS} | {name: draw(MAYBE_BROKERS) for name in ELR}
        row |= {"leader": draw(st.integers(-1, 3)), "leader_recovery_state": draw(st.integers(0, 1))}
        row |= {"leader_epoch": draw(st.integers(0, 9)), "partition_epoch": draw(st.integers(0, 9))}
        return row | {"directories": draw(DIRECTORIES)}
    row |= {name: draw(MAYBE_BROKERS) for name in (*ARRAYS, *ELR)}
    row |= {"leader": draw(st.integers(-2, 3)), "leader_recovery_state": draw(st.integers(-1, 1))}
    return row | {"directories": draw(st.none() | DIRECTORIES)}


@st.composite
def histories(draw: st.DrawFn) -> list[Row]:
    """Sorted events. A partition may begin with a change, as in a log that is damaged, and be made twice."""
    rows: list[Row] = []
    kinds = st.sampled_from([CREATED, CHANGED, CHANGED, CHANGED, CLEARED])
    topics = draw(st.lists(st.tuples(st.sampled_from("pq"), st.sampled_from("tuv")), unique=True, max_size=4))
    for source, topic_id in sorted(topics):
        ids = {"source": source, "topic_id": topic_id}
        if draw(st.booleans()):
            removed = draw(st.none() | st.integers(0, 12))
            told = {"topic_name": draw(st.none() | st.just("name")), "removed_offset": removed}
            told["removed_ms"] = None if removed is None else draw(TIMES)
            blank = dict.fromkeys(EVENTS.fieldNames())
            rows.append(blank | ids | told | {"partition_id": -1, "record_type": TOPIC})
        for partition_id in range(draw(st.integers(0, 3))):
            offset = draw(st.integers(0, 4))
            first = draw(st.sampled_from([CREATED, CREATED, CREATED, CHANGED, CLEARED]))
            for kind in [first, *draw(st.lists(kinds, max_size=6))]:
                place = {"partition_id": partition_id, "state_offset": offset, "offset": offset}
                rows.append(event(draw, kind) | ids | place)
                offset += draw(st.integers(1, 3))
    return rows


@dataclass
class Plain:
    """One partition, one event after the other."""

    topic: Row
    state: Row = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    def apply(self, event: Row) -> None:
        kind, state = event["record_type"], self.state
        if kind == CLEARED and not any(state.get(name) for name in ELR):
            for name in ELR:
                state[name] = []
            return
        told = {name: event[name] for name in (*ARRAYS, *ELR, "directories")}
        told["leader"] = None if event["leader"] == -2 else event["leader"]
        told["leader_recovery_state"] = (
            None if event["leader_recovery_state"] == -1 else event["leader_recovery_state"]
        )
        if kind == CREATED:
            told |= {name: event[name] or [] for name in ELR}
            state |= {name: event[name] for name in ("leader_epoch", "partition_epoch")}
        elif state.get("partition_epoch") is not None:
            state["partition_epoch"] += 1
            state["leader_epoch"] += told["leader"] is not None
        state |= {name: value for name, value in told.items() if value is not None}
        self._open(event)

    def _open(self, event: Row) -> None:
        row: Row = {name: self.state.get(name) for name in (*ARRAYS, *ELR, "directories", "leader")}
        names = ("leader_epoch", "partition_epoch", "leader_recovery_state")
        row |= {name: self.state.get(name) for name in names}
        if row["directories"] == []:
            replicas = row["replicas"]
            row["directories"] = None if replicas is None else [MIGRATING_DIRECTORY] * len(replicas)
        same = ("source", "topic_id", "partition_id", "record_type", "quorum_epoch", "batch_base_offset")
        row |= {name: event[name] for name in same} | {"topic_name": self.topic.get("topic_name")}
        row |= {"valid_from_offset": event["state_offset"], "valid_from_ms": event["state_timestamp_ms"]}
        self._close(row["valid_from_offset"], row["valid_from_ms"])
        self.rows.append(row | {"valid_to_offset": None, "valid_to_ms": None})

    def _close(self, offset: int, ms: int | None) -> None:
        if self.rows:
            self.rows[-1] |= {"valid_to_offset": offset, "valid_to_ms": ms}

    def ended(self) -> list[Row]:
        removed = self.topic.get("removed_offset")
        if removed is None:
            return self.rows
        kept = [row for row in self.rows if row["valid_from_offset"] < removed]
        if kept and (kept[-1]["valid_to_offset"] is None or kept[-1]["valid_to_offset"] > removed):
            kept[-1] |= {"valid_to_offset": removed, "valid_to_ms": self.topic["removed_ms"]}
        return kept


def plain_history(events: list[Row]) -> Iterator[list[Row]]:
    """The rows of each partition."""
    for _, of_topic in groupby(events, key=lambda row: (row["source"], row["topic_id"])):
        topic: Row = {}
        for _, of_partition in groupby(of_topic, key=lambda row: row["partition_id"]):
            plain = Plain(topic)
            for row in of_partition:
                if row["record_type"] == TOPIC:
                    topic |= row
                else:
                    plain.apply(row)
            yield plain.ended()


def with_times(row: Row) -> Row:
    for name in ("valid_from", "valid_to"):
        ms = row[f"{name}_ms"]
        row[name] = None if ms is None else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    return row


def plain_changes(partitions: list[list[Row]]) -> list[Row]:
    found = []
    for rows in partitions:
        for before, after in pairwise(rows):
            both = [(before[name], after[name]) for name in ("leader", "isr")]
            if any(old is not None and new is not None and old != new for old, new in both):
                renamed = {name: before[column] for name, column in BEFORE.items()}
                renamed |= {name: after[column] for name, column in MOMENT.items()}
                found.append({name: renamed.get(name, after.get(name)) for name in CHANGES.fieldNames()})
    return found


@settings(deadline=None)
@given(histories(), st.data())
def test_the_kernel_is_equal_to_one_event_after_the_other(events: list[Row], data: st.DataObject) -> None:
    partitions = [[with_times(row) for row in rows] for rows in plain_history(events)]
    table = pa.Table.from_pylist(events, schema=arrow_schema(EVENTS))
    batches = table.to_batches(max_chunksize=data.draw(st.integers(1, 9)))
    history, changes = [], []
    for whole in whole_partitions(batches, rows_at_once=data.draw(st.integers(1, 20))):
        part = partition_kernel(whole, HISTORY)
        history += part.to_pylist()
        changes += changes_of(part).to_pylist()
    assert history == [row for rows in partitions for row in rows]
    assert changes == plain_changes(partitions)


def test_no_batch_cuts_through_a_partition_and_none_is_much_longer_than_asked() -> None:
    blank = dict.fromkeys(EVENTS.fieldNames()) | {"source": "p", "topic_id": "t", "record_type": CHANGED}
    topic = blank | {"partition_id": -1, "record_type": TOPIC}
    rows = [topic, *(blank | {"partition_id": number // 4, "state_offset": number} for number in range(400))]
    table = pa.Table.from_pylist(rows, schema=arrow_schema(EVENTS))
    found = [batch.to_pylist() for batch in whole_partitions(table.to_batches(max_chunksize=5), 20)]
    assert all(batch[0] == topic for batch in found)
    assert [row for batch in found for row in batch[1:]] == rows[1:]
    seen = [{row["partition_id"] for row in batch[1:]} for batch in found]
    assert sum(map(len, seen)) == 100
    assert len(found) >= 18
    assert max(map(len, found)) <= 30


def test_epochs_at_their_largest_and_times_that_no_calendar_has_stop_nothing() -> None:
    blank = dict.fromkeys(EVENTS.fieldNames())
    place = {"source": "s", "topic_id": "t", "partition_id": 0}
    created = {
        "leader": 1,
        "leader_epoch": 2**31 - 1,
        "partition_epoch": 2**31 - 1,
        "leader_recovery_state": 0,
    }
    created |= {name: [1] for name in ARRAYS} | {"directories": ["a"], "record_type": CREATED}
    changed = {"leader": 2, "leader_recovery_state": -1, "record_type": CHANGED}
    rows = [
        blank | place | created | {"state_offset": 1, "offset": 1, "state_timestamp_ms": 2**63 - 1},
        blank | place | changed | {"state_offset": 2, "offset": 2, "state_timestamp_ms": -(2**63)},
    ]
    events = pa.RecordBatch.from_pylist(rows, schema=arrow_schema(EVENTS))
    first, second = partition_kernel(events, HISTORY).to_pylist()
    assert (first["valid_from"], first["valid_to"], first["valid_from_ms"]) == (None, None, 2**63 - 1)
    assert (second["leader_epoch"], second["partition_epoch"]) == (-(2**31), -(2**31))
