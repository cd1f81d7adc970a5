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
    """Every row but the first of each partition, with the columns of the row before as `old_*`."""
    order = Window.partitionBy("source", "topic_id", "partition_id").orderBy("valid_from_offset")
    before = {name: F.lag(column).over(order) for name, column in _BEFORE.items()}
    return (
        history.withColumns(before)
        .where(F.col("old_valid_to").isNotNull())
        .withColumns(
            {
                "offset": F.col("valid_from_offset"),
                "timestamp_ms": F.col("valid_from_ms"),
                "timestamp": F.col("valid_from"),
            }
        )
    )
