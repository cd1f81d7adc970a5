"""One audit for all tests, whatever the number of test processes: starting Spark is most of the time that it takes.

The first process that asks builds the tables; the others wait for it and read the Parquet files without any Spark.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow.parquet as pq
import pytest

from kquorum.wire.metadata_records.features import BeginTransactionRecord, NoOpRecord
from kquorum.wire.metadata_records.topics import TopicRecord
from tests.support.sample_logs import LogBuilder, write_sample, write_trimmed_sample
from tests.support.spark.lawful_history import write_lawful_logs
from tests.support.spark.leader_history import write_leader_history
from tests.support.spark.planted_logs import write_planted
from tests.support.spark.question_log import write_question_log
from tests.support.spark.random_history import (
    write_formatted_history,
    write_random_history,
    write_random_trimmed_history,
)
from tests.support.spark.session import Unstopped

RANDOM_SEED = 20_260_131


@dataclass(frozen=True)
class Audited:
    """The logs that were audited, their tables, and the number of rows that the audit says it wrote to each."""

    root: Path
    out: Path
    written: dict[str, int]

    def table(self, name: str, source: str | None = None, columns: tuple[str, ...] | None = None) -> Any:
        """One table, or the rows of one log in it, as Arrow."""
        filters = None if source is None else [("source", "=", source)]
        return pq.read_table(self.out / name, columns=columns and list(columns), filters=filters)

    def rows(self, name: str, source: str, *columns: str, order: tuple[str, ...]) -> list[tuple[Any, ...]]:
        """The rows of one log, in order, as plain tuples of the columns named."""
        chosen = self.table(name, source).sort_by([(column, "ascending") for column in order]).select(columns)
        return [tuple(row[column] for column in columns) for row in chosen.to_pylist()]

    def counts(self, name: str, *keys: str) -> dict[tuple[Any, ...], int]:
        """How many rows of a table have each combination of `keys`."""
        grouped = self.table(name, columns=keys).group_by(list(keys)).aggregate([([], "count_all")])
        return {tuple(row[key] for key in keys): row["count_all"] for row in grouped.to_pylist()}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A quiet local session on one core; skips where there is no Java to run it."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, and there is none on this machine")
    from kquorum.spark_replay.session import start_session

    session = start_session(tmp_path_factory.mktemp("spark"), master="local[1]", small=True)
    yield session
    session.stop()


@pytest.fixture
def shared_session(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands of the test use the session of all tests and leave it running."""

    def start_session(work_folder: Path, **options: object) -> Unstopped:
        (work_folder / "spark.log").write_text("what Spark said\n")
        return Unstopped(spark)

    monkeypatch.setattr("kquorum.cli.commands.audit.spark.start_session", start_session)


@pytest.fixture(scope="session")
def audited(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Audited:
    """An audit of every log the tests make up: written by hand, and random."""
    return _audit_once("audited", _write_logs, tmp_path_factory, request)


@pytest.fixture(scope="session")
def audited_real(
    real_logs: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Audited:
    """An audit of the logs of real clusters; their sources begin with real/."""

    def copy(root: Path) -> None:
        root.mkdir(exist_ok=True)
        # Links in a folder of logs are passed over.
        shutil.copytree(real_logs, root / "real")

    return _audit_once("audited-real", copy, tmp_path_factory, request)


def _audit_once(
    name: str,
    write_logs: Callable[[Path], None],
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Audited:
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    shared.mkdir(exist_ok=True)
    root, out, done = shared / "logs", shared / "tables", shared / "done.json"
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(root, ignore_errors=True)
            write_logs(root)
            done.write_text(json.dumps(_build(request.getfixturevalue("spark"), root, out)))
    return Audited(root, out, json.loads(done.read_text()))


def _build(spark: Any, root: Path, out: Path) -> dict[str, int]:
    from kquorum.spark_replay.audit import build

    return build(spark, root, out, split_bytes=1024 * 1024).rows


def _write_logs(root: Path) -> None:
    write_sample(root / "sample")
    write_trimmed_sample(root / "trimmed")
    write_leader_history(root / "leaders")
    _write_gap(root / "gap")
    write_planted(root / "planted")
    write_random_history(root / "random", seed=RANDOM_SEED, operations=1200)
    write_random_trimmed_history(root / "random-trimmed", seed=RANDOM_SEED + 1, operations=300)
    write_formatted_history(root / "random-formatted", seed=RANDOM_SEED + 2, operations=300)
    write_lawful_logs(root)
    write_question_log(root / "questions")


def _write_gap(folder: Path) -> None:
    """Two segments with offsets 2 to 4 missing between them, and a transaction that is open at the end."""
    log_folder = folder / "__cluster_metadata-0"
    log_folder.mkdir(parents=True)
    first = LogBuilder().records(1, NoOpRecord()).records(2, NoOpRecord())
    second = (
        LogBuilder(next_offset=5).records(3, NoOpRecord()).records(4, BeginTransactionRecord(name="open"))
    )
    second.records(5, TopicRecord(name="never", topic_id=UUID(int=7)))
    (log_folder / "00000000000000000000.log").write_bytes(first.data)
    (log_folder / "00000000000000000005.log").write_bytes(second.data)
