"""The stream: the tables of a log that grew are those of the log built whole, wherever the stream was interrupted."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

from kquorum.spark_replay.audit_manifest import read_manifest
from kquorum.spark_replay.stream.log_stream import LogStream
from kquorum.spark_replay.stream.state import write_state
from kquorum.spark_replay.stream.tables import BatchWriter
from kquorum.spark_replay.tables.building.registry import TABLES
from tests.spark.conftest import RANDOM_SEED, Audited
from tests.support.spark.growing_log import GrowingLog

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.slow]

SPLIT_BYTES = 16 * 1024
SOURCES = ("sample", "trimmed", "leaders", "gap", "random", "random-trimmed", "random-formatted")


class PulledPlug(Exception):
    """The process is gone: nothing after this is done."""


def pulled(step: Callable[..., Any], patch: pytest.MonkeyPatch, *, after: bool) -> None:
    """The next call of a step of the writer is the last thing that happens, or does not happen any more."""

    def interrupted(*args: object, **options: object) -> None:
        if after:
            step(*args, **options)
        raise PulledPlug(step.__name__)

    patch.setattr(f"kquorum.spark_replay.stream.tables.{step.__qualname__}", interrupted)


def half_published(writer: BatchWriter, batch: int) -> None:
    """Some files have their names, the others not yet."""
    folder = writer._destination.folders["record"]
    for path in sorted(folder.rglob(f".part-{batch:08d}*.parquet"))[::2]:
        path.rename(path.with_name(path.name.removeprefix(".")))
    raise PulledPlug("publish")


def sorted_rows(table: Any) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def rows_of(folder: Path, sources: tuple[str, ...]) -> list[str]:
    return sorted_rows(pq.read_table(folder, filters=[("source", "in", list(sources))]))


@pytest.fixture(scope="module")
def streamed(spark: Any, audited: Audited, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every log but the real ones, grown step by step, each step read; the plug is pulled at every step of a batch."""
    folder = tmp_path_factory.mktemp("streamed")
    random = Random(RANDOM_SEED)
    logs = [GrowingLog(audited.root / name, folder / "logs" / name, random) for name in SOURCES]
    out = folder / "tables"
    plugs: list[Callable[[pytest.MonkeyPatch], None]] = [
        lambda patch: pulled(BatchWriter.write_gaps, patch, after=False),
        lambda patch: patch.setattr(BatchWriter, "publish", half_published),
        lambda patch: pulled(BatchWriter.publish, patch, after=True),
        lambda patch: pulled(write_state, patch, after=True),
    ]
    for log in logs:
        log.grow()
    while plugs or not all(log.is_whole for log in logs):
        if plugs:
            with pytest.MonkeyPatch.context() as patch:
                plugs.pop(0)(patch)
                with pytest.raises(StreamingQueryException, match=PulledPlug.__name__):
                    LogStream(spark, folder / "logs", out, split_bytes=SPLIT_BYTES).read()
        LogStream(spark, folder / "logs", out, split_bytes=SPLIT_BYTES).read()
        for log in logs:
            if random.random() < 0.5:
                log.remove_old()
            log.grow_much()
    assert not plugs
    LogStream(spark, folder / "logs", out).run_until_caught_up()
    return out


@pytest.mark.parametrize("name", TABLES)
def test_a_streamed_table_is_the_built_one(streamed: Path, audited: Audited, name: str) -> None:
    assert rows_of(streamed / name, SOURCES) == rows_of(audited.out / name, SOURCES)


def test_the_audits_source_is_reported_as_by_a_build(streamed: Path, audited: Audited) -> None:
    built = {each.source: each for each in read_manifest(audited.out).sources}
    found = read_manifest(streamed)
    assert {each.source for each in found.sources} == set(SOURCES)
    for each in found.sources:
        other = built[each.source]
        assert (each.base, each.start_offset, each.end_offset) == (
            other.base,
            other.start_offset,
            other.end_offset,
        )
        assert {file.name for file in each.files} == {file.name for file in other.files}
    assert found.rows == {name: len(rows_of(streamed / name, SOURCES)) for name in TABLES}
