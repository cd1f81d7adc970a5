"""The largest changes in the window, each with the principal if the log has it."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.column import Column
from kquorum.spark_replay.report.asked import Asked
from kquorum.spark_replay.report.facts import LargeChange, LogFacts

CHANGES_LISTED = 12
BATCHES_CONSIDERED = 60
_TEXTS = ("principal", "client_id", "client_address", "api", "reason", "operator_reason")


def large_changes(asked: Asked, log: LogFacts) -> tuple[LargeChange, ...]:
    """The largest requests by the records that their notes cover, then the largest batches without such a note."""
    batches = _batches(asked)
    notes = _notes(asked, batches) if log.has_notes else []
    covered = [(note["offset"], note["covered_to_offset"]) for note in notes]
    alone = [
        batch
        for batch in batches
        if not any(first <= batch["base_offset"] <= last for first, last in covered)
        and not any(batch["base_offset"] <= first <= batch["last_offset"] for first, last in covered)
    ]
    return _described(asked, [*_largest(map(_of_note, notes)), *_largest(map(_of_batch, alone))])


def _largest(changes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(changes, key=lambda change: (-change["records"], change["first_offset"]))[:CHANGES_LISTED]


def _batches(asked: Asked) -> list[Any]:
    batches = asked.during("batches").where(
        (F.col("file_kind") == "log") & ~F.col("is_control") & (F.col("record_count") > 1)
    )
    return list(batches.orderBy(F.desc("record_count"), "base_offset").limit(BATCHES_CONSIDERED).collect())


def _notes(asked: Asked, batches: list[Any]) -> list[Any]:
    """The notes that cover the most, and those that cover a large batch."""
    notes = asked.during("audit_notes").where((F.col("covered_records") > 0) & F.col("committed"))
    columns = ("offset", "timestamp_ms", "covered_to_offset", "covered_records", "quorum_epoch", *_TEXTS)
    most = notes.orderBy(F.desc("covered_records"), "offset").limit(BATCHES_CONSIDERED)
    found = {row["offset"]: row for row in most.select(*columns).collect()}
    if batches and len(found) == BATCHES_CONSIDERED:
        touched = F.lit(False)
        for batch in batches:
            touched |= (F.col("offset") <= batch["last_offset"]) & (
                F.col("covered_to_offset") >= batch["base_offset"]
            )
        found |= {row["offset"]: row for row in notes.where(touched).select(*columns).limit(1000).collect()}
    return list(found.values())


def _of_note(row: Any) -> dict[str, Any]:
    client = " at ".join(filter(None, (row["client_id"], row["client_address"])))
    return {
        "timestamp_ms": row["timestamp_ms"],
        "first_offset": row["offset"] + 1,
        "last_offset": row["covered_to_offset"],
        "records": row["covered_records"],
        "quorum_epoch": row["quorum_epoch"],
        "client": client,
        **{name: row[name] or "" for name in ("principal", "api", "reason", "operator_reason")},
    }


def _of_batch(row: Any) -> dict[str, Any]:
    return {
        "timestamp_ms": row["timestamp_ms"],
        "first_offset": row["base_offset"],
        "last_offset": row["last_offset"],
        "records": row["record_count"],
        "quorum_epoch": row["leader_epoch"],
    }


def _described(asked: Asked, found: list[dict[str, Any]]) -> tuple[LargeChange, ...]:
    """With the types of the records, the topics that they are about, and the controller of their epoch."""
    if not found:
        return ()
    types, topics = _content(asked, found)
    names = _topic_names(asked, [example for count, example in topics.values() if count == 1])
    controllers = _controllers(asked, {change["quorum_epoch"] for change in found})
    described = []
    for index, change in enumerate(found):
        count, example = topics.get(index, (0, ""))
        described.append(
            LargeChange(
                **change,
                types=tuple(sorted(types[index].items(), key=lambda item: (-item[1], item[0]))),
                topics=count,
                topic=names.get(example),
                controller_id=controllers.get(change["quorum_epoch"]),
            )
        )
    return tuple(described)


def _content(
    asked: Asked, found: list[dict[str, Any]]
) -> tuple[dict[int, dict[str, int]], dict[int, tuple[int, str]]]:
    """For each change its records by type, and how many topics they are about with the id of one of them."""
    within: Column = F.lit(None).cast("int")
    for index, change in enumerate(found):
        inside = F.col("offset").between(change["first_offset"], change["last_offset"])
        within = F.when(inside, index).otherwise(within)
    records = asked.table("records").where(F.col("file_kind") == "log").withColumn("change", within)
    counted = (
        records.where(F.col("change").isNotNull())
        .rollup("change", "record_type")
        .agg(
            F.grouping("change").alias("is_all"),
            F.grouping("record_type").alias("is_whole"),
            F.count("*").alias("count"),
            F.count_distinct("topic_id").alias("topics"),
            F.min("topic_id").alias("topic_id"),
        )
        .where(F.col("is_all") == 0)
    )
    types: dict[int, dict[str, int]] = defaultdict(dict)
    topics: dict[int, tuple[int, str]] = {}
    for row in counted.collect():
        if row["is_whole"]:
            topics[row["change"]] = (row["topics"], row["topic_id"] or "")
        else:
            types[row["change"]][row["record_type"]] = row["count"]
    return types, topics


def _topic_names(asked: Asked, ids: list[str]) -> dict[str, str]:
    rows = asked.table("topics").where(F.col("topic_id").isin(ids)).select("topic_id", "topic_name")
    return {row["topic_id"]: row["topic_name"] for row in rows.collect()} if ids else {}


def _controllers(asked: Asked, epochs: set[int]) -> dict[int, int]:
    rows = asked.table("quorum_epochs").where(F.col("epoch").isin(sorted(epochs)))
    return {row["epoch"]: row["leader_id"] for row in rows.select("epoch", "leader_id").collect()}
