"""`records`, `batches` and `damage`: what the files hold, before any of it is interpreted."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from spark_replay.schemas import BATCHES, DAMAGE, RECORDS
from spark_replay.tables.common import shaped


def records(rows: DataFrame) -> DataFrame:
    """The record rows of the data source."""
    chosen = rows.where(F.col("row_kind") == "record")
    return shaped(chosen.withColumn("timestamp", F.timestamp_millis("timestamp_ms")), RECORDS)


def batches(rows: DataFrame) -> DataFrame:
    """The batch rows of the data source."""
    chosen = rows.where(F.col("row_kind") == "batch")
    return shaped(chosen.withColumn("timestamp", F.timestamp_millis("timestamp_ms")), BATCHES)


def damage(rows: DataFrame, batches_table: DataFrame) -> DataFrame:
    """The damage rows of the data source, and the gaps between batches for which it has no row."""
    found = shaped(rows.where(F.col("row_kind") == "damage"), DAMAGE)
    return found.unionByName(_gaps(batches_table, found))


def _gaps(batches_table: DataFrame, found: DataFrame) -> DataFrame:
    """Where a log's batch does not continue the one before it, across segments and across splits of one.

    Within a file the scan reports this itself, so a gap which a damage row explains is left out.
    """
    order = Window.partitionBy("source").orderBy("segment_base_offset", "position")
    before = {"last_before": "last_offset", "file_before": "file", "position_before": "position"}
    log = batches_table.where(F.col("file_kind") == "log").withColumns(
        {name: F.lag(column).over(order) for name, column in before.items()}
    )
    broken = log.withColumn("expected", F.col("last_before") + 1).where(
        F.col("base_offset") != F.col("expected")
    )
    same_file = F.col("gap.file") == F.col("file_before")
    behind_last = (F.col("found.file") == F.col("file_before")) & (
        F.col("found.position") > F.col("position_before")
    )
    up_to_here = (F.col("found.file") == F.col("gap.file")) & (
        F.col("found.position") <= F.col("gap.position")
    )
    explained = (F.col("gap.source") == F.col("found.source")) & F.when(
        same_file, behind_last & up_to_here
    ).otherwise(behind_last | up_to_here)
    unexplained = broken.alias("gap").join(F.broadcast(found.alias("found")), explained, "left_anti")
    return shaped(
        unexplained.select(
            "source",
            "file",
            "file_kind",
            "segment_base_offset",
            "position",
            F.col("expected").alias("offset"),
            F.lit("gap").alias("kind"),
            F.format_string(
                "batch begins at offset %d; %d was expected after %s",
                F.col("base_offset"),
                F.col("expected"),
                F.col("file_before"),
            ).alias("reason"),
        ),
        DAMAGE,
    )
