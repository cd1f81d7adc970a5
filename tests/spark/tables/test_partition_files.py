"""`partition_history` written by the executors: the same rows as the driver writes for a small log."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kquorum.spark_replay.arrow_types import arrow_schema
from kquorum.spark_replay.tables.partition_history import (
    PARTITION_HISTORY,
    PartitionFolders,
    write_partition_history,
)
from kquorum.spark_replay.tables.partition_replay.columns import (
    ARRAYS,
    CHANGED,
    CHANGES,
    CREATED,
    EVENTS,
    TOPIC,
)

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

TOPICS, PARTITIONS = 9, 4


def random_events(count: int) -> list[dict[str, Any]]:
    chance = random.Random(7)
    blank = dict.fromkeys(EVENTS.fieldNames()) | {"source": "log", "state_timestamp_ms": 5}
    topics = [
        blank | {"topic_id": f"t{topic}", "partition_id": -1, "record_type": TOPIC, "topic_name": f"n{topic}"}
        for topic in range(TOPICS)
    ]
    topics[0] |= {"removed_offset": count // 2, "removed_ms": 9}
    rows = []
    for offset in range(count):
        is_first = offset < TOPICS * PARTITIONS
        number = offset if is_first else chance.randrange(TOPICS * PARTITIONS)
        row = blank | {"topic_id": f"t{number % TOPICS}", "partition_id": number // TOPICS}
        row |= {"state_offset": offset, "offset": offset, "record_type": CREATED if is_first else CHANGED}
        row |= {name: [1, 2, 3] if is_first else None for name in ARRAYS}
        row |= {"isr": chance.sample([1, 2, 3], chance.randint(1, 3)), "leader": chance.choice([-2, 1, 2])}
        rows.append(row | {"leader_epoch": 0, "partition_epoch": 0, "leader_recovery_state": 0})
    return [*topics, *rows]


def test_executors_write_what_the_driver_would(spark: Any, tmp_path: Path) -> None:
    table = pa.Table.from_pylist(random_events(2000), schema=arrow_schema(EVENTS))
    pq.write_table(table, tmp_path / "events.parquet")
    events = spark.read.schema(EVENTS).parquet(str(tmp_path / "events.parquet"))
    written: dict[str, list[list[str]]] = {}
    for on_driver in (True, False):
        out = tmp_path / f"{on_driver}"
        folders = PartitionFolders(history=out / "history", staging=out / "staging")
        (out / "history").mkdir(parents=True)
        (out / "history" / "part-99999.parquet").write_bytes(b"of an earlier audit")
        rows = write_partition_history(events, folders, on_driver=on_driver)
        assert rows == pq.read_table(folders.history).num_rows > 1800
        assert not folders.events.exists()
        assert len(list(folders.history.iterdir())) == (1 if on_driver else 2)
        for folder, schema in ((folders.history, PARTITION_HISTORY), (folders.changes, CHANGES)):
            found = spark.read.schema(schema).parquet(str(folder)).collect()
            written.setdefault(folder.name, []).append(sorted(map(str, found)))
    assert all(by_driver == by_executors for by_driver, by_executors in written.values())
    assert all(len(by_driver) > 500 for by_driver, _ in written.values())


@pytest.mark.parametrize("on_driver", [True, False])
def test_no_events_leave_tables_without_rows(spark: Any, tmp_path: Path, *, on_driver: bool) -> None:
    folders = PartitionFolders(history=tmp_path / "history", staging=tmp_path / "staging")
    events = spark.createDataFrame([], EVENTS)
    assert write_partition_history(events, folders, on_driver=on_driver) == 0
    assert spark.read.parquet(str(folders.history)).schema == PARTITION_HISTORY
    assert spark.read.parquet(str(folders.changes)).count() == 0
