"""`audit_notes`: who asked for which records, from the notes that this project's controllers leave in the log."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BooleanType, IntegerType, LongType, StringType, StructField, StructType

from kquorum.spark_replay.schemas import AUDIT_NOTES
from kquorum.spark_replay.tables.common import of_types, shaped, with_controller, with_payload
from kquorum.spark_replay.tables.state import uncommitted_transactions

_TEXTS = ("principal", "client_id", "client_address", "api", "reason", "operator_reason")
_HASHES = ("forwarding_id", "note_hash", "previous_note_hash")
_NOTE = StructType(
    [
        *(StructField(name, StringType()) for name in (*_TEXTS, *_HASHES)),
        StructField("correlation_id", IntegerType()),
        StructField("covered_records", LongType()),
        StructField("is_whole", BooleanType()),
    ]
)
_PAYLOAD = StructType([StructField("audit_note", _NOTE)])


def audit_notes(records: DataFrame, epochs: DataFrame, gone: DataFrame | None = None) -> DataFrame:
    """One row for each note in the log. Snapshots hold a copy of the newest, which is left out.

    `epochs` (`quorum_epochs`) names the controller that wrote it; `gone` are the `uncommitted_transactions`.
    """
    log = records.where(F.col("file_kind") == "log")
    noted = of_types(log, "NoOpRecord").where(F.col("payload").contains('"audit_note"'))
    notes = with_payload(noted, _PAYLOAD).select(
        *("source", "offset", "timestamp_ms", "timestamp"),
        F.col("leader_epoch").alias("quorum_epoch"),
        "p.audit_note.*",
    )
    covered = {
        "covered_from_offset": F.when(F.col("covered_records") > 0, F.col("offset") + 1),
        "covered_to_offset": F.when(F.col("covered_records") > 0, F.col("offset") + F.col("covered_records")),
    }
    uncommitted = uncommitted_transactions(records) if gone is None else gone
    chained = _with_chain(_with_committed(notes, uncommitted)).withColumns(covered)
    return shaped(with_controller(chained, epochs), AUDIT_NOTES)


def _with_committed(notes: DataFrame, uncommitted: DataFrame) -> DataFrame:
    gone = uncommitted.withColumnsRenamed({"source": "gone_source"})
    inside = (F.col("source") == F.col("gone_source")) & F.col("offset").between(
        F.col("begin_offset"), F.col("end_offset")
    )
    joined = notes.join(F.broadcast(gone), inside, "left")
    return joined.withColumn("committed", F.col("gone_source").isNull())


def _with_chain(notes: DataFrame) -> DataFrame:
    """Each committed note names the committed one before it, or nothing if it is the first."""
    order = Window.partitionBy("source", "committed").orderBy("offset")
    return notes.withColumn("hash_before", F.lag("note_hash").over(order)).withColumn("chain", _chain())


def _chain() -> Column:
    before, held = F.col("hash_before"), F.col("previous_note_hash")
    return (
        F.when(~F.col("committed"), None)
        .when(before.isNull(), F.when(held == "", "first").otherwise("unknown"))
        .when(before == held, "linked")
        .otherwise("broken")
    )
