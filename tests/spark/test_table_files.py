"""Tables that the executors write themselves: the rows that Spark gets from the source."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kquorum.spark_replay import table_files
from kquorum.spark_replay.decode.sources import find_log_files
from kquorum.spark_replay.session import plans_for
from kquorum.spark_replay.table_files import Destination, write_tables
from kquorum.spark_replay.tables.building.registry import TABLES
from tests.spark.conftest import Audited
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
        written = spark.read.schema(TABLES[name].schema).parquet(str(folders[kind]))
        columns = [column for column in source.columns if column != "row_kind"]
        assert written.count() == counts[kind] > 0
        assert written.select(columns).exceptAll(source.select(columns)).count() == 0
        if "timestamp" in written.columns:
            is_right = F.unix_millis("timestamp") == F.col("timestamp_ms")
            assert written.where(is_right).count() == counts[kind]


def test_a_finished_audit_has_a_folder_for_each_log_and_nothing_staged(audited: Audited) -> None:
    assert not [path.name for path in audited.out.iterdir() if path.name.startswith(("_", "."))]
    for name in ("records", "batches"):
        folders = {path.name for path in (audited.out / name).iterdir()}
        assert {"source=sample", "source=gap", "source=random"} <= folders
        assert all(folder.startswith("source=") for folder in folders)


def test_rows_lie_in_the_order_of_the_log_so_that_a_filter_by_offset_skips_row_groups(
    audited: Audited,
) -> None:
    for path in (audited.out / "records" / "source=random").glob("*.parquet"):
        table = pq.ParquetFile(path).read(columns=["file", "offset"])
        assert table.num_rows > 0
        assert len(set(table["file"].to_pylist())) == 1
        assert table["offset"].to_pylist() == sorted(table["offset"].to_pylist())
        assert pq.read_metadata(path).row_group(0).column(4).statistics.has_min_max


def test_plans_are_made_for_the_rows_there_are_and_as_before_afterwards(spark: Any) -> None:
    pieces, adaptive = "spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled"
    before = spark.conf.get(pieces), spark.conf.get(adaptive)
    with plans_for(spark, 30_000_000):
        assert int(spark.conf.get(pieces)) == 201
    spark.conf.set(adaptive, "true")
    with plans_for(spark, 100):
        assert spark.conf.get(adaptive) == "false"
    assert spark.conf.get(adaptive) == "true"
    spark.conf.set(adaptive, before[1])
    assert spark.conf.get(pieces) == before[0]
