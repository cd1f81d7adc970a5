"""Questions to the partitions' logs, on DuckDB, over folders with known answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kquorum.cli.main import run
from kquorum.spark_replay.data.building import build_data
from kquorum.spark_replay.data.log_dirs import find_log_dirs
from kquorum.spark_replay.data.questions import (
    differing_replicas,
    hanging_transactions,
    lag_over_time,
    on_one_replica,
    written_by,
)
from kquorum.spark_replay.engine.duckdb_tables import DuckTables, open_in_duckdb
from kquorum.wire.data_batch import Record, write_data_batch
from kquorum.wire.offsets_records import OffsetCommitValue, OffsetKey, encode_offset_key, encode_offset_value

# Small logs are read in this process: of Spark only the number of cores is asked.
ONE_CORE = cast(Any, SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=1)))


def batch(offset: int, time_ms: int, value: bytes = b"v", *, epoch: int = 0, **producer: Any) -> bytes:
    return write_data_batch([Record(offset, time_ms, b"k", value)], leader_epoch=epoch, **producer)


def write_log(folder: Path, *batches: bytes) -> None:
    folder.mkdir(parents=True)
    (folder / f"{0:020d}.log").write_bytes(b"".join(batches))


def write_marks(log_dir: Path, high_watermark: int) -> None:
    (log_dir / "replication-offset-checkpoint").write_text(f"0\n1\nt 0 {high_watermark}\n")


@contextmanager
def asked(root: Path) -> Iterator[DuckTables]:
    out = root.parent / "audit"
    build_data(ONE_CORE, find_log_dirs([root]), out)
    with open_in_duckdb(out) as tables:
        yield tables


def rows(frame: Any, *names: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in names) for row in frame.collect())


def test_a_difference_is_named_with_its_first_offset(tmp_path: Path) -> None:
    same, other = batch(0, 1), batch(1, 2)
    for name, second in (("a", other), ("b", batch(1, 2, b"w")), ("c", other)):
        write_log(tmp_path / "logs" / name / "t-0", same, second, batch(2, 3))
        write_log(tmp_path / "logs" / name / "same-0", same, other)
        write_marks(tmp_path / "logs" / name, 3)
    with asked(tmp_path / "logs") as tables:
        (row,) = differing_replicas(tables).collect()
    assert (row["topic_name"], row["partition_id"], row["first_offset"], row["batches"]) == ("t", 0, 1, 1)
    assert (row["replicas"], row["from_offset"], row["to_offset"]) == (3, 0, 3)
    crcs = {each["source"]: each["crc"] for each in row["held"]}
    assert crcs["a"] == crcs["c"] != crcs["b"]


@pytest.mark.parametrize(("high_watermark", "differs"), [(1, []), (2, [("t", 1)])])
def test_what_lies_above_the_high_watermark_may_differ(
    tmp_path: Path, high_watermark: int, differs: list[tuple[str, int]]
) -> None:
    for name, value in (("a", b"v"), ("b", b"w")):
        write_log(tmp_path / "logs" / name / "t-0", batch(0, 1), batch(1, 2, value))
        write_marks(tmp_path / "logs" / name, high_watermark)
    with asked(tmp_path / "logs") as tables:
        assert rows(differing_replicas(tables), "topic_name", "first_offset") == differs


def test_replicas_of_a_real_cluster_hold_the_same(real_data: Path, tmp_path: Path) -> None:
    roots = [real_data / f"three-brokers-{number}" for number in (1, 2, 3)]
    if not roots[0].is_dir():
        pytest.skip(f"no three-brokers-1 in {real_data}")
    build_data(ONE_CORE, find_log_dirs(roots), tmp_path / "audit")
    with open_in_duckdb(tmp_path / "audit") as tables:
        assert differing_replicas(tables).collect() == []


def test_a_transaction_hangs_where_its_coordinator_knows_nothing_of_it(
    real_data: Path, tmp_path: Path
) -> None:
    name = "kafka-4.3-transactions-1"
    if not (real_data / name).is_dir():
        pytest.skip(f"no {name} in {real_data}")
    log_dirs = find_log_dirs([real_data / name])
    names = ("topic_name", "transactional_id", "state", "is_hanging")
    build_data(ONE_CORE, log_dirs, tmp_path / "audit")
    with open_in_duckdb(tmp_path / "audit") as tables:
        assert rows(hanging_transactions(tables), *names) == [("tx", "t-open", "Ongoing", False)]
    producer = {"producer_id": 1001, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    write_log(tmp_path / "more" / "late-0", batch(0, 5, **producer))
    build_data(ONE_CORE, [*log_dirs, *find_log_dirs([tmp_path / "more"])], tmp_path / "audit")
    with open_in_duckdb(tmp_path / "audit") as tables:
        assert ("late", "t-open", "Ongoing", True) in rows(hanging_transactions(tables), *names)


def commit(offset: int, group: str, committed: int | None, time_ms: int) -> bytes:
    value = OffsetCommitValue(offset=committed or 0, commit_timestamp=time_ms)
    record = Record(
        offset,
        time_ms,
        encode_offset_key(OffsetKey(group, "t", 0)),
        None if committed is None else encode_offset_value(value),
    )
    return write_data_batch([record], leader_epoch=0)


def test_lag_is_what_was_written_and_not_committed_then(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_log(tmp_path / "logs" / name / "t-0", batch(0, 100), batch(1, 200), batch(2, 300))
        write_log(
            *(
                tmp_path / "logs" / name / "__consumer_offsets-3",
                commit(0, "g", 0, 50),
                commit(1, "g", 1, 250),
            ),
            *(commit(2, "other", 0, 260), commit(3, "g", 3, 300), commit(4, "g", None, 400)),
        )
    with asked(tmp_path / "logs") as tables:
        found = rows(lag_over_time(tables, "g"), "commit_ms", "committed_offset", "end_offset", "lag")
    assert sorted(found, key=lambda row: row[0]) == [(50, 0, None, None), (250, 1, 2, 1), (300, 3, 3, 0)]


def test_the_metadata_log_says_who_led_and_which_replicas_were_in_sync(tmp_path: Path) -> None:
    write_log(tmp_path / "logs" / "a" / "t-0", batch(0, 100), batch(1, 200, epoch=1), batch(2, 300, epoch=1))
    build_data(ONE_CORE, find_log_dirs([tmp_path / "logs"]), tmp_path / "audit")
    columns = {
        "source": ["log"] * 3,
        "topic_name": ["t"] * 3,
        "partition_id": pa.array([0] * 3, pa.int32()),
        "leader_epoch": pa.array([0, 1, 1], pa.int32()),
        "leader": pa.array([5, 6, 6], pa.int32()),
        "isr": [[5, 6], [6], [6, 5]],
        "replicas": [[5, 6]] * 3,
        "valid_from_ms": [0, 150, 250],
        "valid_to_ms": [150, 250, None],
    }
    (tmp_path / "audit" / "partition_history").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "audit" / "partition_history" / "part.parquet")
    with open_in_duckdb(tmp_path / "audit") as tables:
        names = ("leader_epoch", "leader", "first_offset", "last_offset", "batches")
        assert rows(written_by(tables, "log"), *names) == [(0, 5, 0, 0, 1), (1, 6, 1, 2, 2)]
        names = ("leader", "replicas", "since_ms", "first_offset", "last_offset")
        assert rows(on_one_replica(tables, "log"), *names) == [(6, 2, 150, 1, 1)]


def test_the_command_answers_and_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path / "logs" / "a" / "t-0", batch(0, 100))
    write_log(tmp_path / "logs" / "a" / "__consumer_offsets-3", commit(0, "g", 0, 150))
    with asked(tmp_path / "logs"):
        audit = str(tmp_path / "audit")
    assert run(["audit", "partitions", audit, "replicas"]) == 0
    assert "all replicas hold the same batches" in capsys.readouterr().out
    assert run(["audit", "partitions", audit, "leaders", "--topic", "t", "--json"]) == 0
    assert '"last_offset": 0' in capsys.readouterr().out
    assert run(["audit", "partitions", audit, "lag", "--group", "g"]) == 0
    assert "t-0" in capsys.readouterr().out
    assert run(["audit", "partitions", audit, "hanging"]) == 0
    assert "every transaction has ended" in capsys.readouterr().out
    for wrong, told in (
        (["lag"], "--group names the group"),
        (["hanging", "--group", "g"], "--group names the group"),
        (["single-replica"], "holds no metadata log"),
    ):
        assert run(["audit", "partitions", audit, *wrong]) == 2
        assert told in " ".join(capsys.readouterr().err.split())
    assert run(["audit", "partitions", str(tmp_path), "hanging"]) == 2
    assert "no finished audit" in " ".join(capsys.readouterr().err.split())
