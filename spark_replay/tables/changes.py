"""The rows of `partition_history` beside what the partition was before: what the tables of changes are made of."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

_BEFORE = {
    "old_leader": "leader",
    "old_isr": "isr",
    "old_elr": "eligible_leader_replicas",
    "old_replicas": "replicas",
    "old_removing": "removing_replicas",
    "old_adding": "adding_replicas",
    "old_valid_to": "valid_to_offset",
}


def changes_of(history: DataFrame) -> DataFrame:
    """The rows of `history` (`partition_history`) with another leader or ISR than the row before them of their
    partition, whose columns they have as `old_*`. The first row of a partition is its creation and no change."""
    order = Window.partitionBy("source", "topic_id", "partition_id").orderBy("valid_from_offset")
    before = {name: F.lag(column).over(order) for name, column in _BEFORE.items()}
    return (
        history.withColumns(before)
        .where(F.col("old_valid_to").isNotNull())
        .where((F.col("leader") != F.col("old_leader")) | (F.col("isr") != F.col("old_isr")))
        .withColumns(
            {
                "offset": F.col("valid_from_offset"),
                "timestamp_ms": F.col("valid_from_ms"),
                "timestamp": F.col("valid_from"),
            }
        )
    )
