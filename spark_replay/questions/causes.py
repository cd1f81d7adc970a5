"""Why a partition changed, as far as the log tells: its leader's election, or what befell the brokers of its ISR."""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from kquorum.spark_replay.audit_folder import AuditTables

BY_LEADER: Final = "leader_request"
CREATION: Final = "creation"
UNKNOWN: Final = "unknown"  # the first that the log has of it is a change: its creation is not in the log
# Of a broker's records those that put it out of the ISR, or let it back in, by the name of the cause.
_ISR_CAUSES: Final = {
    "fenced": "fencing",
    "controlled_shutdown": "shutdown",
    "registered": "restart",
    "directories": "directory_failure",
}
OF_OLD_LEADER: Final = ("fencing", "shutdown", "unregistration", "restart", "directory_failure")
OF_NEW_LEADER: Final = ("unfencing",)
_KEYS = ("source", "topic_id", "partition_id")


def partition_steps(history: DataFrame) -> DataFrame:
    """Rows of `partition_history` (all of each partition that is asked for) with the row before them.

    `old_<field>` are the fields of that row, null in the first one, which `is_first`.
    """
    order = Window.partitionBy(*_KEYS).orderBy("valid_from_offset", F.col("partition_epoch"))
    lagged = (
        *("leader", "isr", "replicas", "adding_replicas", "removing_replicas", "leader_epoch", "directories"),
        *("eligible_leader_replicas", "leader_recovery_state"),
    )
    old = {f"old_{name}": F.lag(name).over(order) for name in lagged}
    return history.withColumns({**old, "is_first": F.lag(F.lit(False), 1, True).over(order)})


def with_cause(steps: DataFrame, tables: AuditTables, source: str) -> DataFrame:
    """Adds `cause` and `cause_broker` to `partition_steps`; null where the log tells of none.

    A change of leader has the cause that `leader_changes` gives. A change of the ISR alone is of the brokers' records
    in its batch, or, where there are none, asked for by the partition's leader (AlterPartition): Kafka knows no other
    way. What is in the first row of a partition is its creation,
    or unknown where that is not in the log.
    """
    elections = tables.table("leader_changes").where(F.col("source") == source)
    known = elections.select(
        *_KEYS, F.col("offset").alias("valid_from_offset"), F.col("cause").alias("election_cause")
    )
    joined = steps.join(known, [*_KEYS, "valid_from_offset"], "left")
    caused = joined.join(_broker_events(tables, source), ["source", "batch_base_offset"], "left")
    left = F.array_except("old_isr", "isr")
    event = F.get(F.filter("broker_events", lambda each: F.array_contains(left, each["broker_id"])), F.lit(0))
    return (
        caused.withColumn("isr_event", F.when(F.size(left) > 0, event))
        .withColumns({"cause": _cause(), "cause_broker": _cause_broker()})
        .drop("election_cause", "broker_events", "isr_event")
    )


def _broker_events(tables: AuditTables, source: str) -> DataFrame:
    """What happened to brokers in each batch."""
    happened = tables.table("brokers_history").where(
        (F.col("source") == source)
        & F.col("change").isin(*_ISR_CAUSES)
        & F.col("batch_base_offset").isNotNull()
    )
    event = F.struct("broker_id", "change")
    return happened.groupBy("source", "batch_base_offset").agg(
        F.sort_array(F.collect_list(event)).alias("broker_events")
    )


def _cause() -> Column:
    of_isr = F.lit(None).cast("string")
    for change, name in _ISR_CAUSES.items():
        of_isr = F.when(F.col("isr_event.change") == change, name).otherwise(of_isr)
    first = F.when(F.col("record_type") == "PartitionRecord", CREATION).otherwise(UNKNOWN)
    isr_alone = (
        (F.col("isr") != F.col("old_isr")) & (F.col("leader") == F.col("old_leader")) & (F.col("leader") >= 0)
    )
    return (
        F.when(F.col("election_cause").isNotNull(), F.col("election_cause"))
        .when(F.col("is_first"), first)
        .when(_is_reassigned(), "reassignment")
        .when(of_isr.isNotNull(), of_isr)
        .when(isr_alone, BY_LEADER)
    )


def _is_reassigned() -> Column:
    names = ("replicas", "adding_replicas", "removing_replicas")
    changed = F.lit(False)
    for name in names:
        changed = changed | ~F.col(name).eqNullSafe(F.col(f"old_{name}"))
    return changed


def _cause_broker() -> Column:
    cause = F.col("election_cause")
    return (
        F.when(cause.isin(*OF_OLD_LEADER), F.col("old_leader"))
        .when(cause.isin(*OF_NEW_LEADER), F.col("leader"))
        .when(cause.isNotNull(), F.lit(None).cast("int"))
        .when(F.col("isr_event").isNotNull() & ~_is_reassigned(), F.col("isr_event.broker_id"))
        .when(_is_reassigned(), F.lit(None).cast("int"))
        .when((F.col("isr") != F.col("old_isr")) & (F.col("leader") == F.col("old_leader")), F.col("leader"))
    )
