"""`isr_changes`: every moment at which a partition's in-sync replicas became others."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from kquorum.spark_replay.schemas import ISR_CHANGES
from kquorum.spark_replay.tables.common import shaped, with_controller


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
