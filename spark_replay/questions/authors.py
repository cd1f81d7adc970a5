"""Who did it: the audit note that covers an offset, and the controller that led there.

A note stands right before the records that it is about, so the last note before an offset is the only one that can
cover it: one sorted run of notes, epochs and events finds them all, where a join by ranges would be quadratic.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import LongType, StringType, StructField, StructType

from kquorum.spark_replay.audit_folder import AuditTables

NOTE_FIELDS: Final = (
    *("principal", "client_id", "client_address", "api", "reason", "operator_reason", "note_offset"),
)
AUTHOR_FIELDS: Final = (*NOTE_FIELDS, "controller_id")
_NOTE_TYPE: Final = StructType(
    [
        *(StructField(name, LongType() if name == "note_offset" else StringType()) for name in NOTE_FIELDS),
        StructField("covered_to_offset", LongType()),
    ]
)


def with_author(events: DataFrame, tables: AuditTables) -> DataFrame:
    """`events` (`source`, `offset` and any others) with `AUTHOR_FIELDS`: all null where nothing is known.

    The note is null of what the controller did by itself, and in logs that hold no notes. `offset` may be null.
    """
    order = Window.partitionBy("source").orderBy("offset", F.col("is_event"))
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    marked = events.withColumn("is_event", F.lit(True))
    for marks in ([_notes(tables)] if has_notes(tables) else []) + [_epochs(tables)]:
        marked = marked.unionByName(marks, allowMissingColumns=True)
    if not has_notes(tables):
        marked = marked.withColumn("note", F.lit(None).cast(_NOTE_TYPE))
    found = marked.withColumns(
        {
            "note": F.last("note", ignorenulls=True).over(so_far),
            "epoch": F.last("epoch", ignorenulls=True).over(so_far),
        }
    ).where("is_event")
    covers = F.col("note.covered_to_offset") >= F.col("offset")
    fields = {name: F.when(covers, F.col(f"note.{name}")) for name in NOTE_FIELDS}
    leader = {"controller_id": F.col("epoch.leader_id")}
    return found.withColumns({**fields, **leader}).drop("note", "epoch", "is_event")


def _notes(tables: AuditTables) -> DataFrame:
    notes = tables.table("audit_notes").where(F.col("committed") & (F.col("covered_records") > 0))
    fields = [F.col("offset").alias(name) if name == "note_offset" else F.col(name) for name in NOTE_FIELDS]
    note = F.struct(*fields, "covered_to_offset").alias("note")
    return notes.select("source", "offset", note, F.lit(False).alias("is_event"))


def _epochs(tables: AuditTables) -> DataFrame:
    epochs = tables.table("quorum_epochs")
    epoch = F.struct("leader_id").alias("epoch")
    return epochs.select(
        "source", F.col("start_offset").alias("offset"), epoch, F.lit(False).alias("is_event")
    )


def has_notes(tables: AuditTables) -> bool:
    """Whether any of the logs holds notes; Kafka's own hold none."""
    return bool(tables.manifest.rows.get("audit_notes"))
