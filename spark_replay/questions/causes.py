"""The cause of a change, as far as the log shows it: the leader's election, the brokers of the ISR, the principal."""

from typing import Final

from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.column import Column, Window
from kquorum.spark_replay.engine.frame import Frame, Tables

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


def partition_steps(history: Frame) -> Frame:
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


def with_cause(steps: Frame, tables: Tables, source: str) -> Frame:
    """Adds `cause` and `cause_broker` to `partition_steps`; null where the log tells of none.

    A change of leader has the cause that `leader_changes` gives. A change of the ISR alone is of the brokers' records
    in its batch, or, where there are none, asked for by the partition's leader (AlterPartition): Kafka knows no other
    way. What is in the first row of a partition is its creation,
    or unknown where that is not in the log.
    """
    elections = tables.frame("leader_changes").where(F.col("source") == source)
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


def _broker_events(tables: Tables, source: str) -> Frame:
    """What happened to brokers in each batch."""
    happened = tables.frame("brokers_history").where(
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


# Who did it: the audit note that covers an offset, and the controller that led there.
#
# A note stands right before the records that it is about, so the last note before an offset is the only one that can
# cover it: one sorted run of notes, epochs and events finds them all, where a join by ranges would be quadratic.

NOTE_FIELDS: Final = (
    *("principal", "client_id", "client_address", "api", "reason", "operator_reason", "note_offset"),
)
AUTHOR_FIELDS: Final = (*NOTE_FIELDS, "controller_id")
_NOTE_COLUMNS: Final = ",".join(
    f"{name}:{'long' if name == 'note_offset' else 'string'}" for name in NOTE_FIELDS
)
_NOTE_TYPE: Final = f"struct<{_NOTE_COLUMNS},covered_to_offset:long>"


def with_author(events: Frame, tables: Tables) -> Frame:
    """`events` (`source`, `offset` and any others) with `AUTHOR_FIELDS`: all null where nothing is known.

    The note is null of what the controller did by itself, and in logs that hold no notes. `offset` may be null.
    """
    order = Window.partitionBy("source").orderBy("offset", F.col("is_event"))
    so_far = order.up_to_here()
    marked = events.withColumn("is_event", F.lit(True))
    for marks in ([_notes(tables)] if has_notes(tables) else []) + [_epochs(tables)]:
        marked = marked.unionByName(marks)
    if not has_notes(tables):
        marked = marked.withColumn("note", F.lit(None).cast(_NOTE_TYPE))
    found = marked.withColumns(
        {
            "note": F.last_known("note").over(so_far),
            "epoch": F.last_known("epoch").over(so_far),
        }
    ).where("is_event")
    covers = F.col("note.covered_to_offset") >= F.col("offset")
    fields = {name: F.when(covers, F.col(f"note.{name}")) for name in NOTE_FIELDS}
    leader = {"controller_id": F.col("epoch.leader_id")}
    return found.withColumns({**fields, **leader}).drop("note", "epoch", "is_event")


def _notes(tables: Tables) -> Frame:
    notes = tables.frame("audit_notes").where(F.col("committed") & (F.col("covered_records") > 0))
    fields = [F.col("offset").alias(name) if name == "note_offset" else F.col(name) for name in NOTE_FIELDS]
    note = F.struct(*fields, "covered_to_offset").alias("note")
    return notes.select("source", "offset", note, F.lit(False).alias("is_event"))


def _epochs(tables: Tables) -> Frame:
    epochs = tables.frame("quorum_epochs")
    epoch = F.struct("leader_id").alias("epoch")
    return epochs.select(
        "source", F.col("start_offset").alias("offset"), epoch, F.lit(False).alias("is_event")
    )


def has_notes(tables: Tables) -> bool:
    """Whether any of the logs holds notes; Kafka's own hold none."""
    return bool(tables.manifest.rows.get("audit_notes"))
