"""`isr_changes`: every moment at which a partition's in-sync replicas became others."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from kquorum.spark_replay.tables.building.audit_table import AuditTable
from kquorum.spark_replay.tables.building.columns import (
    BOOLEAN,
    DECISION,
    INT,
    INTS,
    PARTITION_EVENT,
    STRING,
    column,
)
from kquorum.spark_replay.tables.building.frames import shaped, with_controller
from kquorum.spark_replay.tables.partition_history import partition_changes

ISR_CHANGES = StructType(
    [
        *PARTITION_EVENT,
        column("kind", STRING, "shrink, expand, or replace where brokers left and others came"),
        column("left_isr", INTS, "brokers no longer in sync, ascending"),
        column("joined_isr", INTS, "brokers newly in sync, ascending"),
        column("old_isr", INTS, "in-sync replicas before"),
        column("new_isr", INTS, "in-sync replicas after"),
        column("leader", INT, "leader after; -1 for none"),
        column("leader_epoch", INT, "partition's leader epoch after"),
        column("partition_epoch", INT, "partition's epoch after"),
        column("replicas", INTS, "assigned brokers after"),
        column("under_replicated", BOOLEAN, "an assigned broker is not in sync after it"),
        *DECISION,
    ]
)


def isr_changes(changes: DataFrame, epochs: DataFrame) -> DataFrame:
    """One row for each of `changes` (`changes_of`) that a broker left or joined the ISR by.

    Another order of the same brokers is no change. `epochs` (`quorum_epochs`) names the controller.
    """
    left, joined = (
        F.sort_array(F.array_except(F.col(before), F.col(after)))
        for before, after in (("old_isr", "isr"), ("isr", "old_isr"))
    )
    changes = (
        changes.where(F.col("isr") != F.col("old_isr"))
        .withColumns({"left_isr": left, "joined_isr": joined})
        .where((F.size("left_isr") > 0) | (F.size("joined_isr") > 0))
    )
    missing = F.array_except(F.col("replicas"), F.col("isr"))
    described = changes.withColumns(
        {"kind": _kind(), "new_isr": F.col("isr"), "under_replicated": F.size(missing) > 0}
    )
    return shaped(with_controller(described, epochs), ISR_CHANGES)


def _kind() -> Column:
    return (
        F.when(F.size("joined_isr") == 0, "shrink")
        .when(F.size("left_isr") == 0, "expand")
        .otherwise("replace")
    )


TABLE = AuditTable(
    place=120,
    schema=ISR_CHANGES,
    description="Each moment at which brokers left or joined the in-sync replicas of a partition.",
    reads_partitions=True,
    build=lambda inputs: isr_changes(partition_changes(inputs), inputs.table("quorum_epochs")),
)
