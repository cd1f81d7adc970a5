"""One Spark session and one audit for all tests: starting Spark is most of the time that they take."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.spark.random_history import write_random_history
from tests.support.sample_logs import LogBuilder, write_sample, write_trimmed_sample
from wire.metadata_records.features import BeginTransactionRecord, NoOpRecord
from wire.metadata_records.topics import TopicRecord

RANDOM_SEED = 20_260_131


@dataclass(frozen=True)
class Audited:
    """The tables of one audit of several logs."""

    root: Path
    out: Path
    spark: Any
    result: Any

    def table(self, name: str) -> Any:
        from spark_replay.audit import read_table

        return read_table(self.spark, self.out, name)

    def rows(self, name: str, source: str, *columns: str, order: tuple[str, ...]) -> list[tuple[Any, ...]]:
        """The rows of one log, in order, as plain tuples of the columns named."""
        chosen = self.table(name).where(f"source = '{source}'").orderBy(*order).select(*columns)
        return [tuple(row) for row in chosen.collect()]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A quiet local session on two cores; skips where there is no Java to run it."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, and there is none on this machine")
    from spark_replay.session import start_session

    session = start_session(tmp_path_factory.mktemp("spark"), master="local[2]", small=True)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def audited(spark: Any, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Audited:
    """An audit of every log the tests know: written by hand, random, and real where there are any."""
    from spark_replay.audit import build

    root = tmp_path_factory.mktemp("logs")
    write_sample(root / "sample")
    write_trimmed_sample(root / "trimmed")
    write_gap(root / "gap")
    write_random_history(root / "random", seed=RANDOM_SEED, operations=900)
    try:
        (root / "real").symlink_to(request.getfixturevalue("real_logs"))
    except pytest.skip.Exception:
        pass  # only the tests of real logs skip
    out = tmp_path_factory.mktemp("tables")
    return Audited(root, out, spark, build(spark, root, out, split_bytes=64 * 1024))


def write_gap(folder: Path) -> None:
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
