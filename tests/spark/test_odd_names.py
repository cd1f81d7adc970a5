"""Folders whose names Hadoop would take for patterns."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kquorum.spark_replay.audit import build
from kquorum.spark_replay.audit_folder import open_audit
from tests.support.sample_logs import write_sample

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.slow]


def test_tables_are_those_of_the_folder_that_was_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "q1").mkdir()
    for name in ("topics", "records"):  # another audit, which has no rows
        spark.range(0).write.parquet(str(tmp_path / "q1" / name))
    out = tmp_path / "q[1]" / "a b%20#{ü"
    (tmp_path / "q1" / out.name).symlink_to(tmp_path / "q1")
    build(spark, write_sample(tmp_path / "log"), out)
    audit = open_audit(spark, out)
    for name in ("topics", "records", "partition_history", "leader_changes"):
        assert audit.table(name).count() == audit.manifest.rows[name], name
    assert audit.manifest.rows["topics"] > 0
