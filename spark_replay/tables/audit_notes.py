"""`audit_notes`: the principal behind each group of records, from the notes that this project's controllers write to
the log."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from kquorum.spark_replay.tables.building.audit_table import AuditTable
from kquorum.spark_replay.tables.building.columns import (
    BOOLEAN,
    CONTROLLER_ID,
    EVENT_MS,
    EVENT_OFFSET,
    INT,
    LONG,
    QUORUM_EPOCH,
    SOURCE,
    STRING,
    TIMESTAMP_COLUMN,
    column,
)
from kquorum.spark_replay.tables.building.frames import of_types, shaped, with_controller, with_payload
from kquorum.spark_replay.tables.building.state import uncommitted_transactions

AUDIT_NOTES = StructType(
    [
        SOURCE,
        EVENT_OFFSET,
        EVENT_MS,
        TIMESTAMP_COLUMN,
        column("principal", STRING, "who asked, as in User:alice"),
        column("client_id", STRING, "client.id of the request"),
        column("client_address", STRING, "address it came from"),
        column("api", STRING, "which request it was, by Kafka's name"),
        column("correlation_id", INT, "correlation id of the request"),
        column("reason", STRING, "what was asked for, in the controller's words"),
        column("operator_reason", STRING, "the reason that the request gave; empty when it gave none"),
        column("covered_records", LONG, "how many records behind the note carry the request out"),
        column("covered_from_offset", LONG, "offset of the first of them"),
        column("covered_to_offset", LONG, "offset of the last of them, inclusive"),
        column("forwarding_id", STRING, "of the envelope that brought it, in hex; null if it came directly"),
        column("is_whole", BOOLEAN, "of a forwarded request: all that it does stands behind this note"),
        column("note_hash", STRING, "SHA-256 of the note, in hex"),
        column(
            "previous_note_hash", STRING, "what the note says that of the note before is; empty in the first"
        ),
        column(
            "chain",
            STRING,
            "first, linked (it names the note before), broken (notes are missing or changed), unknown (the note "
            "before is older than the log); null if not committed",
        ),
        column("committed", BOOLEAN, "false in a metadata transaction that was aborted or is still open"),
        QUORUM_EPOCH,
        CONTROLLER_ID,
    ]
)

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


def audit_notes(records: DataFrame, epochs: DataFrame, aborted: DataFrame | None = None) -> DataFrame:
    """One row for each note in the log. Snapshots hold a copy of the newest, which is left out.

    `epochs` (`quorum_epochs`) names the controller that wrote it; `aborted` are the `uncommitted_transactions`.
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
    uncommitted = uncommitted_transactions(records) if aborted is None else aborted
    chained = _with_chain(_with_committed(notes, uncommitted)).withColumns(covered)
    return shaped(with_controller(chained, epochs), AUDIT_NOTES)


def _with_committed(notes: DataFrame, uncommitted: DataFrame) -> DataFrame:
    aborted = uncommitted.withColumnsRenamed({"source": "aborted_source"})
    inside = (F.col("source") == F.col("aborted_source")) & F.col("offset").between(
        F.col("begin_offset"), F.col("end_offset")
    )
    joined = notes.join(F.broadcast(aborted), inside, "left")
    return joined.withColumn("committed", F.col("aborted_source").isNull())


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


TABLE = AuditTable(
    place=160,
    schema=AUDIT_NOTES,
    description="Who asked for which records, from where and why. Kafka's own logs have none.",
    build=lambda inputs: audit_notes(
        inputs.stateful_records, inputs.table("quorum_epochs"), inputs.aborted_transactions
    ),
    made_from=("NoOpRecord",),
)
