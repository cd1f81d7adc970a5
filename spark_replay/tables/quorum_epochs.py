"""`quorum_epochs`: who led the quorum when, by the leader change record with which each epoch begins."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, IntegerType, StructField, StructType

from kquorum.spark_replay.tables.building.audit_table import AuditTable
from kquorum.spark_replay.tables.building.columns import INT, INTS, LONG, SOURCE, TIMESTAMP, column
from kquorum.spark_replay.tables.building.frames import of_types, shaped, time_of, with_payload

QUORUM_EPOCHS = StructType(
    [
        SOURCE,
        column("epoch", INT, "quorum epoch"),
        column("leader_id", INT, "controller elected, by the leader change record"),
        column("voters", INTS, "voters at the election"),
        column("granting_voters", INTS, "voters whose vote it had"),
        column("start_offset", LONG, "offset of the first record of the epoch"),
        column("start_ms", LONG, "time of that record"),
        column("start", TIMESTAMP, "start_ms as a timestamp"),
        column("end_offset", LONG, "first offset of the next epoch in the log, exclusive; null for the last"),
        column("end_ms", LONG, "time of the first record of the next epoch; null for the last"),
        column("records", LONG, "records written in the epoch"),
        column("last_record_ms", LONG, "time of the last of them"),
    ]
)

_VOTERS = ArrayType(StructType([StructField("voter_id", IntegerType())]))
_PAYLOAD = StructType(
    [
        StructField("leader_id", IntegerType()),
        StructField("voters", _VOTERS),
        StructField("granting_voters", _VOTERS),
    ]
)


def quorum_epochs(records: DataFrame, partial_spans: DataFrame | None = None) -> DataFrame:
    """One row for each epoch that has a record in the log; elections without a winner leave none.

    `partial_spans` are `epoch_spans` of parts of the log; with them `records` need not hold more than the elections.
    """
    log = records.where(F.col("file_kind") == "log")
    spans = epoch_spans(log) if partial_spans is None else _merged(partial_spans)
    elections = (
        with_payload(of_types(log, "LeaderChange"), _PAYLOAD)
        .groupBy("source", F.col("leader_epoch").alias("epoch"))
        .agg(F.min_by("p", "offset").alias("p"))
    )
    order = Window.partitionBy("source").orderBy("epoch")
    epochs = spans.join(elections, ["source", "epoch"], "left").withColumns(
        {
            "leader_id": F.col("p.leader_id"),
            "voters": F.col("p.voters.voter_id"),
            "granting_voters": F.col("p.granting_voters.voter_id"),
            "start": time_of("start_ms"),
            "end_offset": F.lead("start_offset").over(order),
            "end_ms": F.lead("start_ms").over(order),
        }
    )
    return shaped(epochs, QUORUM_EPOCHS)


def epoch_spans(log: DataFrame) -> DataFrame:
    """(source, epoch, start_offset, start_ms, records, last_record_ms) by records of logs."""
    return log.groupBy("source", F.col("leader_epoch").alias("epoch")).agg(
        F.min("offset").alias("start_offset"),
        F.min_by("timestamp_ms", "offset").alias("start_ms"),
        F.count("*").alias("records"),
        F.max("timestamp_ms").alias("last_record_ms"),
    )


def _merged(spans: DataFrame) -> DataFrame:
    return spans.groupBy("source", "epoch").agg(
        F.min("start_offset").alias("start_offset"),
        F.min_by("start_ms", "start_offset").alias("start_ms"),
        F.sum("records").alias("records"),
        F.max("last_record_ms").alias("last_record_ms"),
    )


TABLE = AuditTable(
    place=40,
    schema=QUORUM_EPOCHS,
    description="Who led the quorum when: one row for each epoch that has a record in the log.",
    build=lambda inputs: quorum_epochs(inputs.stateful_records, inputs.epoch_spans),
)
