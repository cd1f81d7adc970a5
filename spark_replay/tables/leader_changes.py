"""`leader_changes`: every moment at which a partition's leader became another, and who decided it."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from spark_replay.schemas import LEADER_CHANGES
from spark_replay.tables.common import shaped

_BEFORE = {
    "old_leader": "leader",
    "old_isr": "isr",
    "old_elr": "eligible_leader_replicas",
    "old_valid_to": "valid_to_offset",
}


def leader_changes(history: DataFrame, epochs: DataFrame) -> DataFrame:
    """One row for each change of `history` (`partition_history`) with another leader than the row before.

    The first row of a partition is its creation and no change. `epochs` (`quorum_epochs`) names the controller.
    """
    order = Window.partitionBy("source", "topic_id", "partition_id").orderBy("valid_from_offset")
    before = {name: F.lag(column).over(order) for name, column in _BEFORE.items()}
    changes = history.withColumns(before).where(
        F.col("old_valid_to").isNotNull() & (F.col("leader") != F.col("old_leader"))
    )
    controllers = epochs.select("source", F.col("epoch").alias("quorum_epoch"), F.col("leader_id"))
    named = changes.join(controllers, ["source", "quorum_epoch"], "left").withColumns(
        {
            "unclean": _is_unclean(),
            "offset": F.col("valid_from_offset"),
            "timestamp_ms": F.col("valid_from_ms"),
            "timestamp": F.col("valid_from"),
            "new_leader": F.col("leader"),
            "new_isr": F.col("isr"),
            "controller_id": F.col("leader_id"),
        }
    )
    return shaped(named, LEADER_CHANGES)


def _is_unclean() -> Column:
    """The new leader was outside the ISR and the ELR that the partition had (KIP-966)."""
    eligible = F.array_union(F.col("old_isr"), F.coalesce(F.col("old_elr"), F.array().cast("array<int>")))
    return (F.col("leader") >= 0) & ~F.array_contains(eligible, F.col("leader"))
