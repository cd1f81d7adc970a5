"""The tables of a finished audit in Spark."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kquorum.spark_replay.audit_manifest import AuditedSource, AuditManifest, read_manifest, table_folder
from kquorum.spark_replay.data.registry import DATA_TABLES
from kquorum.spark_replay.engine.on_spark import SparkFrame
from kquorum.spark_replay.table_files import hadoop_path
from kquorum.spark_replay.tables.building.registry import TABLES


class AuditTables:
    """The tables of a finished audit, each with the columns and comments of its schema."""

    def __init__(self, spark: SparkSession, folder: Path, manifest: AuditManifest) -> None:
        self.spark = spark
        self.folder = folder
        self.manifest = manifest

    def table(self, name: str) -> DataFrame:
        """One table by its name in `TABLES` or `DATA_TABLES`; KeyError for another."""
        return read_table(self.spark, self.folder, name, self.manifest.table_format)

    def frame(self, name: str) -> SparkFrame:
        """As `table`, for questions."""
        return SparkFrame(self.table(name))

    def values(self, rows: Sequence[tuple[Any, ...]], columns: Mapping[str, str]) -> SparkFrame:
        schema = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        return SparkFrame(self.spark.createDataFrame(list(rows), schema))

    def source(self, name: str) -> AuditedSource:
        (found,) = (each for each in self.manifest.sources if each.source == name)
        return found


def open_audit(spark: SparkSession, folder: Path) -> AuditTables:
    """The audit in `folder`. Raises NoAudit."""
    return AuditTables(spark, folder, read_manifest(folder))


def read_table(spark: SparkSession, folder: Path, name: str, table_format: str = "parquet") -> DataFrame:
    """One table of an audit, with the columns and comments of its schema."""
    schema = (TABLES.get(name) or DATA_TABLES[name]).schema
    path = table_folder(folder, name)
    # Spark puts the columns of folders (`source=...`) last.
    if table_format != "parquet":  # Delta knows its columns, and takes no schema; comments are ours
        return spark.read.format(table_format).load(str(path)).to(schema)
    return spark.read.schema(schema).parquet(hadoop_path(path)).select(*schema.fieldNames())
