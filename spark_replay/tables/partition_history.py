"""`partition_history`: what each partition was between any two changes, rebuilt from the records of the changes.

A PartitionRecord holds a partition's whole state. A PartitionChangeRecord holds only what changed, so the rest is
carried forward from the rows before. Its leader is -2 where the leader stays; any other value, the same leader
included, raises the leader epoch by one; every change raises the partition epoch by one (Kafka's
`PartitionRegistration.merge`). A ClearElrRecord is a change of each partition that has eligible replicas to clear.
"""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType

from spark_replay.schemas import PARTITION_HISTORY
from spark_replay.tables.common import (
    STATE_ORDER,
    in_log,
    of_types,
    shaped,
    with_validity_times,
)
from spark_replay.tables.partition_payload import (
    ARRAYS,
    CHANGED,
    CREATED,
    ELR,
    INTS,
    PARTITION_PAYLOAD,
    with_partition_payload,
)
from spark_replay.tables.topics import removals, topic_names

CLEARED = "ClearElrRecord"
NO_LEADER_CHANGE = -2
NO_RECOVERY_CHANGE = -1
MIGRATING_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAA"

_EVENT_COLUMNS = (
    *("state_offset", "offset", "state_timestamp_ms", "record_type", "quorum_epoch"),
    "batch_base_offset",
)

_CARRIED = ("leader", *ARRAYS, "leader_recovery_state", "directories")


def partition_history(state: DataFrame) -> DataFrame:
    """One row for each state that a partition was in."""
    order = Window.partitionBy("source", "topic_id", "partition_id").orderBy(*STATE_ORDER)
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    # By topic, so that the windows and the joins below find the rows where they need them: one shuffle for all.
    events = _events(state).unionByName(_clearings(state)).repartition("source", "topic_id")
    carried = _with_epochs(_with_carried(_with_elr(events, order, so_far), so_far), so_far)
    return shaped(with_validity_times(_with_end(carried, order, state)), PARTITION_HISTORY)


def _events(state: DataFrame) -> DataFrame:
    """The records of partitions with their fields as columns; null where a field keeps its value."""
    parsed = with_partition_payload(of_types(state, CREATED, CHANGED))
    is_created = F.col("record_type") == CREATED
    p = {name: F.col(f"p.{name}") for name in PARTITION_PAYLOAD.fieldNames()}
    kept = {
        "leader": F.when(p["leader"] != NO_LEADER_CHANGE, p["leader"]),
        "leader_recovery_state": F.when(
            p["leader_recovery_state"] != NO_RECOVERY_CHANGE, p["leader_recovery_state"]
        ),
        "leader_epoch": F.when(is_created, p["leader_epoch"]),
        "partition_epoch": F.when(is_created, p["partition_epoch"]),
        **{name: _never_null_when(is_created, p[name], INTS) for name in ELR},
    }
    return parsed.select(*_keys(), *(kept.get(name, p[name]).alias(name) for name in p))


def _keys() -> list[Column]:
    return [
        *map(F.col, ("source", "topic_id", "partition_id", "state_offset", "offset", "state_timestamp_ms")),
        F.col("record_type"),
        F.col("leader_epoch").alias("quorum_epoch"),
        in_log(F.col("batch_base_offset")).alias("batch_base_offset"),
    ]


def _never_null_when(condition: Column, value: Column, data_type: ArrayType) -> Column:
    return F.when(condition, F.coalesce(value, F.array().cast(data_type))).otherwise(value)


def _clearings(state: DataFrame) -> DataFrame:
    """A change with empty ELRs of every partition that a ClearElrRecord names; an empty name means every topic."""
    clears = of_types(state, CLEARED).select(*_keys(), F.col("topic_name").alias("cleared_name"))
    partitions = (
        of_types(state, CREATED)
        .select("source", "topic_id", "partition_id", "state_offset")
        .join(topic_names(state), ["source", "topic_id"])
        .alias("partition")
    )
    hit = (
        (F.col("clear.source") == F.col("partition.source"))
        & (F.col("clear.state_offset") > F.col("partition.state_offset"))
        & F.coalesce(F.col("cleared_name") == F.col("partition.topic_name"), F.lit(True))
    )
    joined = F.broadcast(clears.alias("clear")).join(partitions, hit)
    keys = [
        F.col(f"{'partition' if name in ('topic_id', 'partition_id') else 'clear'}.{name}").alias(name)
        for name in ("source", "topic_id", "partition_id", *_EVENT_COLUMNS)
    ]
    empty = {name: F.array().cast(INTS) for name in ELR}
    return joined.select(
        *keys,
        *(
            empty.get(field.name, F.lit(None).cast(field.dataType)).alias(field.name)
            for field in PARTITION_PAYLOAD.fields
        ),
    )


def _with_elr(events: DataFrame, order: WindowSpec, so_far: WindowSpec) -> DataFrame:
    """Carries the ELRs forward, and drops clearings which found nothing to clear: those change no epoch."""
    carried = events.withColumns({name: F.last(name, ignorenulls=True).over(so_far) for name in ELR})
    sizes_before = [F.coalesce(F.size(F.lag(name).over(order)), F.lit(0)) for name in ELR]
    had_any = carried.withColumn("had_elr", sum(sizes_before, F.lit(0)) > 0)
    return had_any.where((F.col("record_type") != CLEARED) | F.col("had_elr"))


def _with_carried(events: DataFrame, so_far: WindowSpec) -> DataFrame:
    carried = events.withColumns(
        {
            **{name: F.last(name, ignorenulls=True).over(so_far) for name in _CARRIED},
            "leader_bumps": F.count_if(_is_change() & F.col("leader").isNotNull()).over(so_far),
            "changes": F.count_if(_is_change()).over(so_far),
            "base_leader_epoch": F.last("leader_epoch", ignorenulls=True).over(so_far),
            "base_partition_epoch": F.last("partition_epoch", ignorenulls=True).over(so_far),
        }
    )
    # Records of version 0 tell no directories; Kafka then takes every replica's for "migrating".
    migrating = F.array_repeat(F.lit(MIGRATING_DIRECTORY), F.size("replicas"))
    directories = F.when(F.size("directories") == 0, migrating).otherwise(F.col("directories"))
    return carried.withColumn("directories", directories)


def _with_epochs(carried: DataFrame, so_far: WindowSpec) -> DataFrame:
    """The epochs: those of the PartitionRecord, and the changes counted since."""

    def since_created(counter: str) -> Column:
        at_creation = F.when(~_is_change(), F.col(counter))
        return F.col(counter) - F.last(at_creation, ignorenulls=True).over(so_far)

    return carried.withColumns(
        {
            "leader_epoch": F.col("base_leader_epoch") + since_created("leader_bumps"),
            "partition_epoch": F.col("base_partition_epoch") + since_created("changes"),
        }
    )


def _is_change() -> Column:
    return F.col("record_type") != CREATED


def _with_end(carried: DataFrame, order: WindowSpec, state: DataFrame) -> DataFrame:
    """Each row holds until the next one of its partition, the last until the topic's removal."""
    removed = removals(state).withColumnsRenamed(
        {"valid_to_offset": "removed_offset", "valid_to_ms": "removed_ms"}
    )
    return (
        carried.withColumns(
            {
                "next_offset": F.lead("state_offset").over(order),
                "next_ms": F.lead("state_timestamp_ms").over(order),
            }
        )
        .withColumnsRenamed({"state_offset": "valid_from_offset", "state_timestamp_ms": "valid_from_ms"})
        .join(removed, ["source", "topic_id"], "left")
        .where(F.col("removed_offset").isNull() | (F.col("valid_from_offset") < F.col("removed_offset")))
        .join(topic_names(state), ["source", "topic_id"], "left")
        .withColumns(
            {
                "valid_to_offset": F.least("next_offset", "removed_offset"),
                "valid_to_ms": F.when(
                    F.col("next_offset") <= F.coalesce("removed_offset", "next_offset"), F.col("next_ms")
                ).otherwise(F.col("removed_ms")),
            }
        )
    )
