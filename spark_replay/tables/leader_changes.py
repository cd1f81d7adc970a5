"""`leader_changes`: every change of a partition's leader, with the node that decided it and the cause.

No record holds the cause. But the controller writes what it decides at once as one batch. So if the old leader's fence
stands in the batch that changes its partitions, the fence is the cause (Kafka's
`ReplicationControlManager.handleBroker...`). Otherwise the cause follows from the old leader's state at the time, or
from the change itself.

To add a column, add it to `LEADER_CHANGES` and compute it in `leader_changes`; `shaped` selects the columns of the
schema.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from kquorum.spark_replay.tables.brokers_history import broker_events
from kquorum.spark_replay.tables.building.audit_table import AuditTable
from kquorum.spark_replay.tables.building.columns import (
    BOOLEAN,
    DECISION,
    INT,
    INTS,
    LONG,
    PARTITION_EVENT,
    STRING,
    column,
)
from kquorum.spark_replay.tables.building.frames import shaped, with_controller
from kquorum.spark_replay.tables.partition_history import partition_changes

LEADER_CHANGES = StructType(
    [
        *PARTITION_EVENT,
        column("old_leader", INT, "leader before; -1 for none"),
        column("new_leader", INT, "leader after; -1 for none"),
        column("leader_epoch", INT, "partition's leader epoch after"),
        column("old_isr", INTS, "in-sync replicas before"),
        column("new_isr", INTS, "in-sync replicas after"),
        column(
            "unclean", BOOLEAN, "the new leader was neither in sync nor eligible before: records may be lost"
        ),
        column(
            "cause",
            STRING,
            "why, as far as the log tells: unclean (out of ISR and ELR); of the old leader fencing, shutdown, "
            "unregistration, restart, directory_failure; reassignment; preferred (back to the first replica); "
            "of a partition without a leader unfencing (of its new leader) or recovery; other",
        ),
        column(
            "cause_offset",
            LONG,
            "offset of the broker's record that explains it; null where none does, or none is needed",
        ),
        *DECISION,
    ]
)

RECOVERING = 1
# A fence of thousands of partitions fills several batches. The last holds the fence itself.
SAME_DECISION_MS = 1000

# The value of `change` in `broker_events` by which a broker departs, and the cause that it gives a change of leader.
_DEPARTURES = {
    "fenced": "fencing",
    "unregistered": "unregistration",
    "controlled_shutdown": "shutdown",
    "registered": "restart",
    "directories": "directory_failure",
}
# Departures that last until the broker returns. "directories" is not among them: a broker goes on without a directory,
# so that departure explains changes of the same batch only.
_LASTING = ("fenced", "unregistered", "controlled_shutdown", "registered")
_FENCES = ("fenced", "unregistered")
_EVENT = ("change", "fenced", "state_offset", "batch_base_offset", "state_timestamp_ms", "quorum_epoch")


def leader_changes(changes: DataFrame, epochs: DataFrame, events: DataFrame) -> DataFrame:
    """One row for each of `changes` (`changes_of` of partition_replay/kernel.py) whose leader differs from the row
    before.

    The first row of a partition is its creation and no change. `epochs` (the table `quorum_epochs`) gives the
    controller, and `events` (`broker_events` of brokers_history.py) what happened to the leaders.
    """
    changes = changes.where(F.col("leader") != F.col("old_leader"))
    changes = changes.withColumns({"new_leader": F.col("leader"), "new_isr": F.col("isr")})
    known = _with_events(_with_events(changes, events, "old_leader"), events, "new_leader")
    explained = known.withColumn("unclean", _is_unclean()).withColumns(
        {"cause": _cause(), "cause_offset": _cause_offset()}
    )
    return shaped(with_controller(explained, epochs), LEADER_CHANGES)


def _with_events(changes: DataFrame, events: DataFrame, leader: str) -> DataFrame:
    """Adds `<leader>_before` and `<leader>_after`: the last event of that broker up to the change, and the next one.

    Both are found in one sorted run of the broker's events and changes, as a join by ranges would be quadratic.
    """
    known = events.select(
        "source",
        F.col("broker_id").alias(leader),
        F.col("state_offset").alias("place"),
        F.struct(*(F.col(name) for name in _EVENT)).alias("event"),
    )
    placed = changes.withColumn("place", F.col("offset"))
    run = placed.unionByName(known, allowMissingColumns=True)
    key = Window.partitionBy("source", leader)
    before, after = (
        F.last("event", ignorenulls=True).over(
            key.orderBy(order).rowsBetween(Window.unboundedPreceding, Window.currentRow)
        )
        for order in (F.col("place").asc(), F.col("place").desc())
    )
    found = run.withColumns({f"{leader}_before": before, f"{leader}_after": after})
    return found.where(F.col("topic_id").isNotNull()).drop("event", "place")


def _is_unclean() -> Column:
    """The new leader was outside the ISR and the ELR that the partition had (KIP-966).

    The end of a reassignment may let in a replica and make it the leader by one record; that loses nothing.
    """
    eligible = F.array_union(F.col("old_isr"), F.coalesce(F.col("old_elr"), F.array().cast("array<int>")))
    outside = (F.col("leader") >= 0) & ~F.array_contains(eligible, F.col("leader"))
    return outside & (
        (F.col("leader_recovery_state") == RECOVERING) | (F.col("replicas") == F.col("old_replicas"))
    )


def _cause() -> Column:
    """The first condition that holds gives the cause. After `unclean`, a record in the same batch comes first, then the
    change itself, then the state of the old leader. `_cause_offset` follows the same order."""
    old, new = F.col("old_leader_before"), F.col("new_leader_before")
    old_next = F.col("old_leader_after")
    had_none = F.col("old_leader") < 0
    return (
        F.when(F.col("unclean"), "unclean")
        .when(_departed_together(old), _departure(old))
        .when(_departed_together(old_next), _departure(old_next))
        .when(had_none & _returned_together(new), "unfencing")
        .when(_is_reassigned(), "reassignment")
        .when(had_none, "recovery")
        .when(_is_preferred(), "preferred")
        .when(_is_lasting(old), _departure(old))
        .when(_is_fenced_soon(old_next), _departure(old_next))
        .otherwise("other")
    )


def _cause_offset() -> Column:
    old, new = F.col("old_leader_before"), F.col("new_leader_before")
    old_next = F.col("old_leader_after")
    by_old = F.col("cause").isin(*_DEPARTURES.values())
    return (
        F.when((by_old | F.col("unclean")) & _departed_together(old), old["state_offset"])
        .when((by_old | F.col("unclean")) & _departed_together(old_next), old_next["state_offset"])
        .when(
            (F.col("cause") == "unfencing") | (F.col("unclean") & _returned_together(new)),
            new["state_offset"],
        )
        .when(by_old & _is_lasting(old), old["state_offset"])
        .when(by_old, old_next["state_offset"])
    )


def _departed_together(event: Column) -> Column:
    """The event is a departure of the broker, in the batch of the change."""
    return _in_batch(event) & event["change"].isin(*_DEPARTURES)


def _returned_together(event: Column) -> Column:
    return _in_batch(event) & (event["change"] == "unfenced")


def _in_batch(event: Column) -> Column:
    return F.coalesce(event["batch_base_offset"] == F.col("batch_base_offset"), F.lit(False))


def _is_lasting(event: Column) -> Column:
    """The event is a departure that still lasts. A registration counts only if it left the broker fenced: a snapshot
    has registrations of brokers that are not fenced."""
    stays = event["change"].isin(*_LASTING) & ((event["change"] != "registered") | event["fenced"])
    return F.coalesce(stays, F.lit(False))


def _is_fenced_soon(event: Column) -> Column:
    """This change removed the old leader from the ISR, and the same controller fenced that broker right after it."""
    return (
        ~F.array_contains("isr", F.col("old_leader"))
        & event["change"].isin(*_FENCES)
        & (event["quorum_epoch"] == F.col("quorum_epoch"))
        & (F.try_subtract(event["state_timestamp_ms"], F.col("timestamp_ms")) <= SAME_DECISION_MS)
    )


def _departure(event: Column) -> Column:
    cause = F.lit(None).cast("string")
    for change, name in _DEPARTURES.items():
        cause = F.when(event["change"] == change, name).otherwise(cause)
    return cause


def _is_reassigned() -> Column:
    """The change is a step of a reassignment, or the old leader is to go by one."""
    return (
        (F.col("replicas") != F.col("old_replicas"))
        | (F.col("removing_replicas") != F.col("old_removing"))
        | (F.col("adding_replicas") != F.col("old_adding"))
        | F.array_contains("removing_replicas", F.col("old_leader"))
    )


def _is_preferred() -> Column:
    """The leadership goes back to the first replica, although the old leader is still in the ISR."""
    return (F.col("leader") == F.get("replicas", F.lit(0))) & F.array_contains("isr", F.col("old_leader"))


TABLE = AuditTable(
    place=110,
    schema=LEADER_CHANGES,
    description=(
        "Each moment at which a partition's leader became another, and why. A partition's creation is no change: it "
        "is its first row in `partition_history`."
    ),
    reads_partitions=True,
    build=lambda inputs: leader_changes(
        partition_changes(inputs), inputs.table("quorum_epochs"), broker_events(inputs.state)
    ),
)
