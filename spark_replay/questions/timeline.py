"""What happened to a topic, or to one partition of it, in order: what, why and who."""

from collections.abc import Sequence
from typing import Final

from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.column import Column
from kquorum.spark_replay.engine.frame import Frame, Tables, union_of
from kquorum.spark_replay.questions.causes import AUTHOR_FIELDS, partition_steps, with_author, with_cause
from kquorum.spark_replay.questions.entities import acl_matches_topic, is_topic

EVENT_FIELDS: Final = (
    *("source", "offset", "timestamp_ms", "about", "partition_id", "what", "cause", "cause_broker"),
    "batch_base_offset",
)
ARROW = " → "


def topic_timeline(tables: Tables, source: str, topic: str, partition: int | None = None) -> Frame:
    """Everything that happened to topics of this name, with `EVENT_FIELDS` and `authors.AUTHOR_FIELDS`, not sorted.

    `about` is topic, partition, config or acl; `what` is said in words. With `partition` the others are left out.
    """
    named = (F.col("source") == source) & is_topic(topic)
    partitions = tables.frame("partition_history").where(named)
    if partition is not None:
        partitions = partitions.where(F.col("partition_id") == partition)
    events = [
        *topic_events(tables.frame("topics_history").where(named)),
        partition_events(
            with_cause(partition_steps(partitions), tables, source), with_creation=partition is not None
        ),
    ]
    configs = tables.frame("configs_history").where(
        (F.col("source") == source)
        & (F.col("resource_type") == "topic")
        & (F.col("resource_name") == F.lit(topic))
    )
    events += setting_events(
        configs, "config", F.col("name"), F.concat(F.col("name"), F.lit(" = "), F.col("value"))
    )
    acls = tables.frame("acls_history").where((F.col("source") == source) & acl_matches_topic(topic))
    entry = F.concat_ws(" ", "permission", "principal", "operation", "pattern_type", "resource_name")
    events += setting_events(acls, "acl", entry, entry)
    return with_author(all_events(events), tables)


def all_events(events: Sequence[Frame]) -> Frame:
    """One frame of `EVENT_FIELDS`."""
    types = {"offset": "long", "timestamp_ms": "long", "partition_id": "int", "cause_broker": "int"}
    types["batch_base_offset"] = "long"
    shaped = [
        frame.select(
            *(
                (F.col(name) if name in frame.columns else F.lit(None))
                .cast(types.get(name, "string"))
                .alias(name)
                for name in EVENT_FIELDS
            )
        )
        for frame in events
    ]
    return union_of(shaped)


def topic_events(topics: Frame) -> list[Frame]:
    """Of rows of `topics_history`."""
    count = _counted(F.col("partitions"), "partition")
    created = F.concat(
        F.when(F.col("from_snapshot"), F.lit("there when the log begins, with ")).otherwise(
            F.lit("created with ")
        ),
        count,
        F.lit(" of "),
        F.coalesce(_counted(F.col("replication_factor"), "replica"), F.lit("? replicas")),
    )
    added = F.concat(_counted(F.col("added_partitions"), "partition"), F.lit(" added, now "), count)
    what = F.when(F.col("change") == "created", created).otherwise(added)
    begun = topics.select(*_start("topic"), what.alias("what"), "batch_base_offset")
    removed = topics.where(F.col("ended_by") == "removed")
    return [begun, removed.select(*_end("topic"), F.lit("removed").alias("what"))]


def _counted(count: Column, one: str) -> Column:
    return F.concat(count.cast("string"), F.when(count == 1, f" {one}").otherwise(f" {one}s"))


def partition_events(steps: Frame, *, with_creation: bool) -> Frame:
    """Of `causes.with_cause`; without creations for a whole topic, because the topic's own creation stands for them."""
    events = (
        steps
        if with_creation
        else steps.where(~F.col("is_first") | (F.col("record_type") != "PartitionRecord"))
    )
    return events.select(
        *_start("partition"),
        "partition_id",
        step_text().alias("what"),
        "cause",
        "cause_broker",
        "batch_base_offset",
    )


def setting_events(rows: Frame, about: str, name: Column, setting: Column) -> list[Frame]:
    """Of rows of `configs_history` or `acls_history`: each set, and each taken away without another in its place."""
    ended = rows.where(F.col("ended_by").isin("deleted", "removed"))
    return [
        rows.select(*_start(about), setting.alias("what")),
        ended.select(*_end(about), F.concat(name, F.lit(" removed")).alias("what")),
    ]


def step_text() -> Column:
    """What a step of a partition changed, in words."""
    created = F.concat(
        # Kafka's own records of a creation are PartitionRecords.
        F.when(F.col("record_type") == "PartitionRecord", "created: leader ").otherwise(
            "first known: leader "
        ),
        _leader("leader"),
        F.lit(", in sync "),
        _list("isr"),
        F.lit(" of "),
        _list("replicas"),
    )
    parts = F.concat_ws(
        ", ",
        _changed("leader", F.lit("leader "), _leader),
        _changed("isr", F.lit("in sync "), _list),
        _changed("replicas", F.lit("replicas "), _list),
        _changed("adding_replicas", F.lit("adding "), _list),
        _changed("removing_replicas", F.lit("removing "), _list),
        _changed("eligible_leader_replicas", F.lit("eligible "), _list),
        F.when(
            ~F.col("leader_recovery_state").eqNullSafe(F.col("old_leader_recovery_state")),
            F.when(F.col("leader_recovery_state") == 1, "recovering from an unclean election").otherwise(
                "recovered"
            ),
        ),
    )
    same_leader = (F.col("leader") == F.col("old_leader")) & (
        F.col("leader_epoch") != F.col("old_leader_epoch")
    )
    other = (
        F.when(same_leader, F.concat(F.lit("leader epoch "), F.col("leader_epoch").cast("string")))
        .when(F.col("directories") != F.col("old_directories"), "moved to another directory")
        .otherwise("no change shown here")
    )
    return F.when(F.col("is_first"), created).when(parts != "", parts).otherwise(other)


def _changed(name: str, title: Column, text: object) -> Column:
    assert callable(text)
    return F.when(
        ~F.col(name).eqNullSafe(F.col(f"old_{name}")),
        F.concat(title, text(f"old_{name}"), F.lit(ARROW), text(name)),
    )


def _leader(name: str) -> Column:
    return F.when(F.col(name) < 0, "none").otherwise(F.coalesce(F.col(name).cast("string"), F.lit("?")))


def _list(name: str) -> Column:
    joined = F.array_join(F.col(name).cast("array<string>"), " ")
    return F.when(F.col(name).isNull() | (F.size(name) == 0), "none").otherwise(joined)


def _start(about: str) -> list[Column]:
    return [
        F.col("source"),
        F.col("valid_from_offset").alias("offset"),
        F.col("valid_from_ms").alias("timestamp_ms"),
        F.lit(about).alias("about"),
    ]


def _end(about: str) -> list[Column]:
    return [
        F.col("source"),
        F.col("valid_to_offset").alias("offset"),
        F.col("valid_to_ms").alias("timestamp_ms"),
        F.lit(about).alias("about"),
    ]


def requests(events: Frame) -> Frame:
    """A timeline by who asked: one row for each request (by its note), and for each batch of the controller's own.

    `what` holds up to three of the things done, `events` counts them all; `offset` and `last_offset` are the first and
    the last of them.
    """
    deed = F.struct("offset", "partition_id", "about", "what")
    first = [F.first_known(name).alias(name) for name in AUTHOR_FIELDS if name != "note_offset"]
    batch = F.when(F.col("note_offset").isNull(), F.coalesce("batch_base_offset", "offset"))
    keyed = events.withColumns({"own_batch": batch, "deed": deed})
    by_itself = F.col("note_offset").isNull()
    own = {f"own_{name}": F.when(by_itself, F.col(name)) for name in ("cause", "cause_broker")}
    return (
        keyed.withColumns(own)
        .groupBy("source", "note_offset", "own_batch", *own)
        .agg(
            F.min("offset").alias("offset"),
            F.max("offset").alias("last_offset"),
            F.min("timestamp_ms").alias("timestamp_ms"),
            F.count("*").alias("events"),
            F.slice(F.sort_array(F.collect_list("deed")), 1, 3).alias("deeds"),
            *first,
        )
        .withColumnsRenamed({name: name.removeprefix("own_") for name in own})
        .drop("own_batch")
    )
