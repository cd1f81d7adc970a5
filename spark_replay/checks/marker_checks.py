"""Checks of what comes in pairs and chains: metadata transactions, and audit notes."""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from kquorum.spark_replay.checks.findings import NOTE, VIOLATION, CheckName, found
from kquorum.spark_replay.checks.inputs import CheckInputs
from kquorum.spark_replay.decode.rows import MARKERS

_BEGIN: Final = MARKERS[0]


def transactions(inputs: CheckInputs) -> DataFrame:
    """A Begin is followed by an End or an Abort (KIP-868). One that is open where the log ends is a note: the next
    leader aborts it."""
    order = Window.partitionBy("source").orderBy("offset")
    markers = inputs.table("records").where(
        (F.col("file_kind") == "log") & F.col("record_type").isin(*MARKERS)
    )
    placed = markers.withColumns(
        {
            "type_before": F.lag("record_type").over(order),
            "offset_before": F.lag("offset").over(order),
            "offset_behind": F.lead("offset").over(order),
        }
    )
    is_begin, was_begin = F.col("record_type") == _BEGIN, F.col("type_before") == _BEGIN
    within = found(
        placed.where(is_begin & was_begin),
        CheckName.TRANSACTIONS,
        proof=["offset_before"],
        reason=F.format_string(
            "a transaction begins while the one that began at offset %d is still open", "offset_before"
        ),
    )
    none_open = ~is_begin & ~F.coalesce(was_begin, F.lit(False))
    # The transaction that a log's first marker ends may have begun before the log does.
    may_be_older = F.col("type_before").isNull() & F.col("source").isin(list(inputs.beheaded))
    closed = found(
        placed.where(none_open),
        CheckName.TRANSACTIONS,
        severity=F.when(may_be_older, NOTE).otherwise(VIOLATION),
        proof=["offset_before"],
        reason=F.concat(
            F.regexp_replace("record_type", "Record$", ""),
            F.when(may_be_older, " of a transaction that began before the log does").otherwise(
                ", but no transaction is open"
            ),
        ),
    )
    still_open = found(
        placed.where(is_begin & F.col("offset_behind").isNull()),
        CheckName.TRANSACTIONS,
        severity=NOTE,
        reason=F.lit("the transaction is still open where the log ends; the next leader aborts it"),
    )
    return within.unionByName(closed).unionByName(still_open)


def audit_chain(inputs: CheckInputs) -> DataFrame:
    """Each committed note holds the hash of the one before it, the first of all holds none."""
    order = Window.partitionBy("source").orderBy("offset")
    chained = inputs.table("audit_notes").where("committed")
    notes = chained.withColumn("offset_before", F.lag("offset").over(order)).join(
        F.broadcast(_carried_notes(inputs)), "source", "left"
    )
    broken = notes.where(F.col("chain") == "broken")
    between = F.format_string(
        "the note at offset %d is not the one that this note names as the one before it: one of the two was changed, "
        "or notes between them are missing",
        "offset_before",
    )
    first = notes.where(
        (F.col("chain") == "unknown")
        & ~F.coalesce("carried_hash", F.lit("")).eqNullSafe(F.col("previous_note_hash"))
    )
    from_begin = ~F.col("source").isin([each.source for each in inputs.sources if each.base.from_offset > 0])
    impossible = from_begin | F.col("carried_hash").isNotNull()
    said = (
        F.when(from_begin, "it is the first note of the log, but names one before it: notes are missing")
        .when(
            impossible, "it names another note before it than the snapshot that the log goes on from carries"
        )
        .otherwise("the note that it names is older than the log, so that it cannot be compared")
    )
    return found(
        broken, CheckName.AUDIT_CHAIN, proof=["offset_before"], subject=_who(), reason=between
    ).unionByName(
        found(
            first,
            CheckName.AUDIT_CHAIN,
            severity=F.when(impossible, VIOLATION).otherwise(NOTE),
            subject=_who(),
            reason=said,
        )
    )


def _carried_notes(inputs: CheckInputs) -> DataFrame:
    """(source, carried_hash): the newest note in the snapshot with which the state begins."""
    bases = F.lit(False)
    for each in inputs.sources:
        bases = bases | ((F.col("source") == each.source) & (F.col("file") == F.lit(each.base.snapshot)))
    noted = inputs.table("records").where(
        (F.col("file_kind") == "snapshot") & bases & (F.col("record_type") == "NoOpRecord")
    )
    value = F.get_json_object("payload", "$.audit_note.note_hash")
    return (
        noted.where(value.isNotNull()).groupBy("source").agg(F.max_by(value, "offset").alias("carried_hash"))
    )


def _who() -> Column:
    return F.concat_ws(" ", F.lit("note of"), "principal", "api")
