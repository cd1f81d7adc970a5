"""What happened to a broker, in order: its registrations and fences, what it led and where it was in sync."""

from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.column import Window
from kquorum.spark_replay.engine.frame import Frame, Tables
from kquorum.spark_replay.questions.causes import OF_NEW_LEADER, OF_OLD_LEADER, with_author
from kquorum.spark_replay.questions.timeline import all_events, setting_events

_CHANGES = {
    "registered": "registered",
    "fenced": "fenced",
    "unfenced": "unfenced",
    "controlled_shutdown": "began to shut down",
    "directories": "directories changed",
    "other": "registration changed",
}


def broker_timeline(tables: Tables, source: str, broker: int) -> Frame:
    """As `timeline.topic_timeline`; `about` is broker, config, leader, isr or quorum.

    What one batch does to many partitions is one event, which counts them.
    """
    of_source = F.col("source") == source
    states = tables.frame("brokers_history").where(of_source & (F.col("broker_id") == broker))
    configs = tables.frame("configs_history").where(
        of_source & (F.col("resource_type") == "broker") & (F.col("resource_name") == str(broker))
    )
    setting = F.concat(F.col("name"), F.lit(" = "), F.col("value"))
    elections = tables.frame("leader_changes").where(of_source)
    isr = tables.frame("isr_changes").where(of_source)
    events = [
        *_states(states),
        *setting_events(configs, "config", F.col("name"), setting),
        _by_batch(_caused(elections.where(F.col("old_leader") == broker)), "leader", "gave up the lead of"),
        _by_batch(_caused(elections.where(F.col("new_leader") == broker)), "leader", "leads", " more"),
        _by_batch(isr.where(F.array_contains("left_isr", F.lit(broker))), "isr", "out of sync in"),
        _by_batch(isr.where(F.array_contains("joined_isr", F.lit(broker))), "isr", "in sync again in"),
        _quorum(tables.frame("quorum_epochs").where(of_source & (F.col("leader_id") == broker))),
    ]
    return with_author(all_events(events), tables)


def _states(states: Frame) -> list[Frame]:
    what = F.lit(None).cast("string")
    for change, text in _CHANGES.items():
        what = F.when(F.col("change") == change, F.lit(text)).otherwise(what)
    epoch = F.concat(F.lit(", broker epoch "), F.col("broker_epoch").cast("string"))
    order = Window.partitionBy("source", "broker_id").orderBy("valid_from_offset")
    same = F.lag("fenced").over(order).eqNullSafe(F.col("fenced")) & F.col("change").isin(
        "fenced", "unfenced"
    )
    again = F.when(same, F.concat(what, F.lit(" again"))).otherwise(what)
    event = F.when(F.col("change") == "registered", F.concat(what, epoch)).otherwise(again)
    begun = states.select(
        "source",
        F.col("valid_from_offset").alias("offset"),
        F.col("valid_from_ms").alias("timestamp_ms"),
        F.lit("broker").alias("about"),
        event.alias("what"),
        "batch_base_offset",
    )
    removed = states.where(F.col("ended_by") == "unregistered").select(
        "source",
        F.col("valid_to_offset").alias("offset"),
        F.col("valid_to_ms").alias("timestamp_ms"),
        F.lit("broker").alias("about"),
        F.lit("unregistered").alias("what"),
    )
    return [begun, removed]


def _caused(elections: Frame) -> Frame:
    """With the broker that the cause is about."""
    cause = F.col("cause")
    of_old = F.when(cause.isin(*OF_OLD_LEADER), F.col("old_leader"))
    return elections.withColumn(
        "cause_broker", F.when(cause.isin(*OF_NEW_LEADER), F.col("new_leader")).otherwise(of_old)
    )


def _by_batch(changes: Frame, about: str, verb: str, more: str = "") -> Frame:
    causes = [name for name in ("cause", "cause_broker") if name in changes.columns]
    named = F.concat(F.coalesce("topic_name", "topic_id"), F.lit("-"), F.col("partition_id").cast("string"))
    grouped = changes.groupBy("source", "batch_base_offset", *causes).agg(
        F.min("offset").alias("offset"),
        F.min("timestamp_ms").alias("timestamp_ms"),
        F.count("*").alias("count"),
        F.min(named).alias("one"),
    )
    count = F.col("count").cast("string")
    what = F.when(F.col("count") == 1, F.concat(F.lit(f"{verb} "), F.col("one"))).otherwise(
        F.concat(F.lit(f"{verb} "), count, F.lit(f"{more} partitions" if not more else f" partitions{more}"))
    )
    return grouped.withColumns({"what": what, "about": F.lit(about)})


def _quorum(epochs: Frame) -> Frame:
    what = F.concat(F.lit("leads the quorum from epoch "), F.col("epoch").cast("string"), F.lit(" on"))
    return epochs.select(
        "source",
        F.col("start_offset").alias("offset"),
        F.col("start_ms").alias("timestamp_ms"),
        F.lit("quorum").alias("about"),
        what.alias("what"),
    )
