"""Tables that the executors write themselves: the rows that Spark gets from the source."""

from pathlib import Path
from typing import Any

import pytest

from spark_replay import table_files
from spark_replay.schemas import TABLES
from spark_replay.sources import find_log_files
from spark_replay.table_files import Destination, write_tables
from tests.support.sample_logs import write_sample

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.mark.parametrize("small_bytes", [0, 1 << 20], ids=["executors", "driver"])
def test_spark_reads_the_files_as_its_own(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_bytes: int
) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    monkeypatch.setattr(table_files, "SMALL_BYTES", small_bytes)
    sample = write_sample(tmp_path / "sample")
    tables = {"record": "records", "batch": "batches", "damage": "damage"}
    folders = {kind: tmp_path / "out" / name for kind, name in tables.items()}
    folders["record"].mkdir(parents=True)
    (folders["record"] / "part-99999.zstd.parquet").write_bytes(b"of an earlier audit")
    facts = write_tables(spark, find_log_files(sample), Destination(folders=folders), split_bytes=500)
    counts = {kind: sum(split.rows[kind] for split in facts) for kind in tables}
    for kind, name in tables.items():
        source = (
            spark.read.format("kraft_log").option("rows", name).option("split_bytes", "500").load(str(sample))
        )
        written = spark.read.schema(TABLES[name]).parquet(str(folders[kind]))
        columns = [column for column in source.columns if column != "row_kind"]
        assert written.count() == counts[kind] > 0
        assert written.select(columns).exceptAll(source.select(columns)).count() == 0
        if "timestamp" in written.columns:
            is_right = F.unix_millis("timestamp") == F.col("timestamp_ms")
            assert written.where(is_right).count() == counts[kind]
