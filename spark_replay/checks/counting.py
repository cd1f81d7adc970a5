"""How much each check of the tables had to look at."""

from collections.abc import Mapping
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from kquorum.spark_replay.checks.findings import CheckName
from kquorum.spark_replay.checks.inputs import CheckInputs
from kquorum.spark_replay.checks.removal_checks import removable_records
from kquorum.spark_replay.decode.rows import MARKERS

UNITS: Final[Mapping[CheckName, str]] = {
    CheckName.CHECKSUMS: "batches",
    CheckName.OFFSETS: "batches",
    CheckName.RECORDS: "records",
    CheckName.EPOCHS: "batches",
    CheckName.ELECTIONS: "elections",
    CheckName.TIMESTAMPS: "batches",
    CheckName.TRANSACTIONS: "markers",
    CheckName.LEADERS: "partition states",
    CheckName.ISR: "partition states",
    CheckName.PARTITION_EPOCHS: "partition states",
    CheckName.REMOVALS: "records",
    CheckName.AUDIT_CHAIN: "notes",
    CheckName.BATCH_RULES: "records",
    CheckName.REPLAY: "records",
    CheckName.SNAPSHOT_FILES: "snapshots",
    CheckName.SNAPSHOT_NAMES: "snapshots",
    CheckName.SNAPSHOT_STATE: "snapshots",
    CheckName.STATE_HASH: "hashes",
    CheckName.REPLICAS: "batches",
}


def checked_counts(inputs: CheckInputs) -> dict[tuple[str, str], int]:
    """By source and check, in one query."""
    batches, records = inputs.table("batches"), inputs.table("records")
    states = inputs.table("partition_history")
    log = F.col("file_kind") == "log"
    one = F.lit(1)
    counts = [
        _count(batches, one, CheckName.CHECKSUMS),
        _count(inputs.table("damage").where(F.col("kind").isin("torn", "corrupt")), one, CheckName.CHECKSUMS),
        _count(batches.where(log), one, CheckName.OFFSETS, CheckName.EPOCHS, CheckName.TIMESTAMPS),
        _count(batches, F.col("record_count"), CheckName.RECORDS),
        _count(records.where(log & (F.col("record_type") == "LeaderChange")), one, CheckName.ELECTIONS),
        _count(records.where(log & F.col("record_type").isin(*MARKERS)), one, CheckName.TRANSACTIONS),
        _count(states.where("leader >= 0"), one, CheckName.LEADERS),
        _count(states, one, CheckName.ISR, CheckName.PARTITION_EPOCHS),
        _count(removable_records(inputs), one, CheckName.REMOVALS),
        _count(inputs.table("audit_notes").where("committed"), one, CheckName.AUDIT_CHAIN),
    ]
    rows = reduce(DataFrame.unionAll, counts).groupBy("source", "check").agg(F.sum("count").alias("count"))
    return {(row["source"], row["check"]): row["count"] for row in rows.collect()}


def _count(frame: DataFrame, weight: Column, *checks: CheckName) -> DataFrame:
    counted = frame.groupBy("source").agg(F.sum(weight).cast("long").alias("count"))
    names = F.explode(F.array(*(F.lit(str(check)) for check in checks)))
    return counted.select("source", names.alias("check"), "count")
