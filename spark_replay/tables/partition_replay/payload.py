"""The fields of the records of partitions, which are most of what changes in a cluster."""

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructField, StructType

from kquorum.spark_replay.tables.common import PARSED, with_payload

CREATED, CHANGED = "PartitionRecord", "PartitionChangeRecord"
PARTITION_TYPES = (CREATED, CHANGED)

INTS = ArrayType(IntegerType())
ELR = ("eligible_leader_replicas", "last_known_elr")
ARRAYS = ("replicas", "isr", "removing_replicas", "adding_replicas")
PARTITION_PAYLOAD = StructType(
    [
        *(StructField(name, INTS) for name in (*ARRAYS, *ELR)),
        *(
            StructField(name, IntegerType())
            for name in ("leader", "leader_epoch", "partition_epoch", "leader_recovery_state")
        ),
        StructField("directories", ArrayType(StringType())),
    ]
)


def with_partition_payload(records: DataFrame) -> DataFrame:
    """Records of partitions with their fields in a struct column `p`, which may have been parsed already."""
    if PARSED in records.columns:
        return records.withColumnRenamed(PARSED, "p")
    return with_payload(records, PARTITION_PAYLOAD)
