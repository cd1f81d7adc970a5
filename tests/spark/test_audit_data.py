"""`kquorum audit data` from end to end: the tables that Spark's tasks write are those of a plain pass."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kquorum.cli.main import run
from kquorum.spark_replay.data import building
from kquorum.spark_replay.data.log_dirs import find_log_dirs
from kquorum.spark_replay.data.registry import DATA_TABLES
from kquorum.wire.data_batch import Record, write_data_batch, write_transaction_marker
from kquorum.wire.transaction_markers import TransactionMarker
from tests.support.sample_logs import write_sample

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
    pytest.mark.usefixtures("shared_session"),
]


def batch(offset: int, time_ms: int) -> bytes:
    return write_data_batch(
        [Record(offset, time_ms, b"key", b"a secret")],
        producer_id=7,
        producer_epoch=0,
        base_sequence=offset,
        transactional=True,
        leader_epoch=0,
    )


def write_log_dir(folder: Path) -> Path:
    """Two partitions: one with a transaction that ended and one that is open, one with a torn end."""
    marker = write_transaction_marker(
        TransactionMarker(True, 3),
        producer_id=7,
        producer_epoch=0,
        timestamp_ms=2_000,
        offset=1,
        leader_epoch=0,
    )
    for name, data in (("t-0", batch(0, 1_000) + marker + batch(2, 3_000)), ("t-1", (batch(0, 1) * 2)[:-2])):
        (folder / name).mkdir(parents=True)
        (folder / name / f"{0:020d}.log").write_bytes(data)
    return folder


def rows_written(out: Path) -> dict[str, list[Any]]:
    return {name: sorted(map(repr, pq.read_table(out / name).to_pylist())) for name in DATA_TABLES}


def rows_expected(root: Path) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = defaultdict(list)
    for log_dir in find_log_dirs([root]):
        for folder in log_dir.partitions:
            for name, made in building.rows_of(folder):
                rows[name] += made
        for name, table in DATA_TABLES.items():
            rows[name] += () if table.of_log_dir is None else table.of_log_dir(log_dir)
    every = {name: table.schema.fieldNames() for name, table in DATA_TABLES.items()}
    return {
        name: sorted(repr({field: row.get(field) for field in fields}) for row in rows[name])
        for name, fields in every.items()
    }


def test_the_tables_are_those_of_a_plain_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log_dir, out = write_log_dir(tmp_path / "broker"), tmp_path / "out"
    assert run(["audit", "data", str(log_dir), "--out", str(out), "--json"]) == 3
    summary = json.loads(capsys.readouterr().out)
    assert summary["log_dirs"] == [{"source": "broker", "path": str(log_dir), "partitions": 2}]
    assert summary["tables"]["data_batches"]["rows"] == 4
    assert rows_written(out) == rows_expected(log_dir)
    assert all(b"a secret" not in path.read_bytes() for path in out.rglob("*.parquet"))
    query = "SELECT outcome, first_offset, duration_ms FROM transactions WHERE partition_id = 0 ORDER BY 2"
    assert run(["audit", "sql", str(out), query, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [
        {"outcome": "committed", "first_offset": 0, "duration_ms": 1_000},
        {"outcome": "open", "first_offset": 2, "duration_ms": 0},
    ]
    assert run(["audit", "as-of", str(out)]) == 2
    assert "holds no metadata log" in capsys.readouterr().err


@pytest.mark.slow
def test_spark_tasks_write_the_same_and_the_metadata_tables_stay(
    tmp_path: Path, real_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assert run(["audit", "build", str(write_sample(tmp_path / "log", torn=False)), "--out", str(out)]) == 0
    before = json.loads((out / "audit.json").read_text())
    name = "kafka-4.3-transactions-1"
    if not (real_data / name).is_dir():
        pytest.skip(f"no {name} in {real_data}")
    monkeypatch.setattr(building, "SMALL_BYTES", -1)
    assert run(["audit", "data", str(real_data / name), "--out", str(out)]) == 0
    assert rows_written(out) == rows_expected(real_data / name)
    after = json.loads((out / "audit.json").read_text())
    assert after["sources"] == before["sources"]
    assert before["rows"].items() <= after["rows"].items()
    assert run(["audit", "as-of", str(out)]) == 0
    assert run(["audit", "build", str(tmp_path / "log"), "--out", str(out), "--overwrite"]) == 0
    assert not any((out / name).exists() for name in DATA_TABLES), "they belonged to the earlier audit"


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda out: out.write_text("x"), "is a file; name a folder"),
        (lambda out: (out.mkdir(), (out / "x").write_text("x")), "is not empty, and is no finished audit"),
    ],
    ids=["file", "other folder"],
)
def test_a_folder_of_something_else_is_left_alone(
    make: Any, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "out")
    log_dir = write_log_dir(tmp_path / "broker")
    assert run(["audit", "data", str(log_dir), "--out", str(tmp_path / "out")]) == 2
    assert told in " ".join(capsys.readouterr().err.split())


def test_what_is_no_log_directory_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert run(["audit", "data", str(tmp_path / "empty"), "--out", str(tmp_path / "out")]) == 2
    assert "is no log directory of a broker" in " ".join(capsys.readouterr().err.split())
    log_dir = write_log_dir(tmp_path / "broker")
    assert run(["audit", "data", str(log_dir), "--out", str(log_dir / "out")]) == 2
    assert "is inside a log directory" in " ".join(capsys.readouterr().err.split())
