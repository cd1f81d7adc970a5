"""`features_history`: which level of each feature was finalised when, kraft.version of the quorum itself included."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from kquorum.metadata.image.metadata_version import KRAFT_VERSION
from kquorum.spark_replay.tables.building.audit_table import AuditTable
from kquorum.spark_replay.tables.building.columns import INT, QUORUM_EPOCH, SOURCE, STRING, column, validity
from kquorum.spark_replay.tables.building.frames import (
    event_columns,
    of_types,
    ordered_by_state,
    shaped,
    with_payload,
    with_validity,
)

FEATURES_HISTORY = StructType(
    [
        SOURCE,
        column("feature", STRING, "metadata.version, kraft.version, ..."),
        column("level", INT, "finalised level"),
        column("previous_level", INT, "level before; null where it had none"),
        column("change", STRING, "set, upgraded or downgraded"),
        column("record_type", STRING, "FeatureLevelRecord, or KRaftVersion for kraft.version"),
        QUORUM_EPOCH,
        *validity("the next level, or of the feature's removal"),
    ]
)

FEATURE_LEVEL, QUORUM_LEVEL = "FeatureLevelRecord", "KRaftVersion"
_PAYLOAD = StructType(
    [
        StructField("name", StringType()),
        StructField("feature_level", IntegerType()),
        StructField("k_raft_version", IntegerType()),
    ]
)


def features_history(state: DataFrame, counted: DataFrame) -> DataFrame:
    """One row for each level, none for a record that says it again.

    kraft.version is in control records of `counted` (`counted_records`). Level 0 takes a feature away; only
    kraft.version has a level 0.
    """
    order = ordered_by_state("source", "feature")
    levels = _levels(of_types(state, FEATURE_LEVEL)).unionByName(_levels(of_types(counted, QUORUM_LEVEL)))
    changed = levels.withColumn("level_before", F.lag("level").over(order)).where(
        F.col("level_before").isNull() | (F.col("level_before") != F.col("level"))
    )
    held = with_validity(changed, order).where(_is_level(F.col("level")))
    described = held.withColumn(
        "previous_level", F.when(_is_level(F.col("level_before")), F.col("level_before"))
    )
    return shaped(described.withColumn("change", _change()), FEATURES_HISTORY)


def _levels(records: DataFrame) -> DataFrame:
    is_quorum = F.col("record_type") == QUORUM_LEVEL
    return with_payload(records, _PAYLOAD).select(
        *event_columns(),
        F.when(is_quorum, KRAFT_VERSION).otherwise(F.col("p.name")).alias("feature"),
        F.when(is_quorum, F.col("p.k_raft_version")).otherwise(F.col("p.feature_level")).alias("level"),
    )


def _is_level(level: Column) -> Column:
    return (level != 0) | (F.col("record_type") == QUORUM_LEVEL)


def _change() -> Column:
    before = F.col("previous_level")
    return F.when(before.isNull(), "set").when(F.col("level") > before, "upgraded").otherwise("downgraded")


TABLE = AuditTable(
    place=140,
    schema=FEATURES_HISTORY,
    description="Each level that a feature was finalised at, kraft.version among them.",
    build=lambda inputs: features_history(inputs.state, inputs.counted_records),
)
