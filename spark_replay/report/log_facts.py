"""Facts about the log itself: its extent, what is in it, its idle gaps, its damage."""

from collections import Counter
from typing import Any

from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.frame import Frame, Tables
from kquorum.spark_replay.questions import idle_gaps as question
from kquorum.spark_replay.questions.log_gaps import limits
from kquorum.spark_replay.report.asked import Asked
from kquorum.spark_replay.report.facts import DamagedPlace, IdleGap, IdleGaps, LogFacts

DAMAGE_SHOWN = 20
IDLE_GAPS_SHOWN = 200
IDLE_RECORD = "NoOpRecord"
# Kafka's controller writes an idle record every half second (metadata.max.idle.interval.ms).
LEAST_IDLE_GAP_MS = 5_000
USUAL_GAPS_IN_AN_IDLE_GAP = 10


def log_facts(tables: Tables, source: str, asked: Asked | None) -> LogFacts:
    """`asked` is None for a log without a single batch."""
    audited = tables.source(source)
    size = _size(asked) if asked else {}
    types, unread = _types(asked) if asked else ({}, 0)
    by_type: Counter[str] = Counter()
    for (_, record_type), count in types.items():
        by_type[record_type] += count
    damage, damage_total = _damage(tables, source)
    return LogFacts(
        source=source,
        cluster_id=audited.member.cluster_id,
        node_id=audited.member.node_id,
        inputs=tables.manifest.inputs,
        other_sources=tuple(each.source for each in tables.manifest.sources if each.source != source),
        state_from=audited.base.snapshot or f"offset {audited.base.from_offset}",
        start_offset=size.get("first"),
        end_offset=size.get("end"),
        records=sum(by_type.values()),
        batches=size.get("batches", 0),
        size_in_bytes=size.get("bytes") or 0,
        unread_records=unread,
        types=dict(sorted(by_type.items(), key=lambda item: (-item[1], item[0]))),
        types_by_bucket=types,
        damage=damage,
        damage_total=damage_total,
        limits=limits(tables, source),
        **_settings(tables, source, asked),
    )


def _size(asked: Asked) -> dict[str, Any]:
    batches = asked.during("batches").where(F.col("file_kind") == "log")
    (row,) = batches.agg(
        F.count("*").alias("batches"),
        F.sum("size_in_bytes").alias("bytes"),
        F.min("base_offset").alias("first"),
        (F.max("last_offset") + 1).alias("end"),
    ).collect()
    return dict(row.asDict())


def _types(asked: Asked) -> tuple[dict[tuple[int, str], int], int]:
    """How many records of each type are in each bucket, and how many of all could not be read."""
    records = asked.during("records").where(F.col("file_kind") == "log")
    rows = (
        records.groupBy("bucket", "record_type")
        .agg(F.count("*").alias("records"), F.count_if(F.col("payload").isNull()).alias("unread"))
        .collect()
    )
    by_bucket = {(row["bucket"], row["record_type"]): row["records"] for row in rows}
    return by_bucket, sum(row["unread"] for row in rows)


def _damage(tables: Tables, source: str) -> tuple[tuple[DamagedPlace, ...], int]:
    """The first places, and how many there are."""
    if tables.manifest.rows.get("damage") == 0:
        return (), 0
    damage = tables.frame("damage").where(F.col("source") == source)
    columns = ("file", "position", "offset", "kind", "reason")
    first = damage.orderBy("file", "position").limit(DAMAGE_SHOWN).select(*columns).collect()
    found = tuple(DamagedPlace(**row.asDict()) for row in first)
    return found, len(found) if len(found) < DAMAGE_SHOWN else damage.count()


def _settings(tables: Tables, source: str, asked: Asked | None) -> dict[str, Any]:
    """Features and voters at the end, and how often they changed; whether anyone is named in the log."""

    def table(name: str) -> Frame:
        return tables.frame(name).where(F.col("source") == source)

    def held(name: str) -> Frame:
        return asked.at_end(name) if asked else table(name).where(F.col("valid_to_offset").isNull())

    features = held("features_history").orderBy("feature", "valid_from_offset").collect()
    voters = held("voters_history").orderBy("valid_from_offset").select("voter_ids").collect()
    changes = _changes_of_settings(asked) if asked else {}
    return {
        "features": tuple((row["feature"], row["level"]) for row in features),
        "feature_changes": changes.get("features", 0),
        "voters": tuple(voters[-1]["voter_ids"]) if voters else (),
        "voter_changes": changes.get("voters", 0),
        "has_notes": bool(tables.manifest.rows.get("audit_notes")) and not table("audit_notes").isEmpty(),
    }


def _changes_of_settings(asked: Asked) -> dict[str, int]:
    """How often features and voters changed; what is first known of them is no change."""
    features = asked.during("features_history", "valid_from_ms").where(F.col("previous_level").isNotNull())
    voters = asked.during("voters_history", "valid_from_ms").where(F.col("joined").isNotNull())
    both = features.select(F.lit("features").alias("what")).unionAll(voters.select(F.lit("voters")))
    return {row["what"]: row["count"] for row in both.groupBy("what").count().collect()}


def idle_gaps(asked: Asked, log: LogFacts) -> IdleGaps:
    """The gaps between batches that are longer than an idle log has, as far as the log has idle records at all."""
    if log.types.get(IDLE_RECORD, 0) * 4 < log.records:
        return IdleGaps()
    gaps = question.idle_gaps(asked.tables, asked.source, min_ms=0)
    (row,) = gaps.agg(F.median("duration_ms").alias("usual")).collect()
    limit = max(LEAST_IDLE_GAP_MS, USUAL_GAPS_IN_AN_IDLE_GAP * (row["usual"] or 0))
    long = gaps.where(
        (F.col("duration_ms") > limit)
        & (F.col("from_ms") < asked.window.end_ms)
        & (F.col("to_ms") > asked.window.start_ms)
    )
    longest = long.orderBy(F.desc("duration_ms"), "to_offset").limit(IDLE_GAPS_SHOWN).collect()
    total, total_ms = len(longest), sum(row["duration_ms"] for row in longest)
    if total == IDLE_GAPS_SHOWN:
        (all_of_them,) = long.agg(F.count("*").alias("count"), F.sum("duration_ms").alias("ms")).collect()
        total, total_ms = all_of_them["count"], all_of_them["ms"]
    found = (
        IdleGap(
            start_ms=row["from_ms"],
            end_ms=row["to_ms"],
            offset_after=row["to_offset"],
            epoch_before=row["from_epoch"],
            epoch_after=row["to_epoch"],
        )
        for row in longest
    )
    return IdleGaps(
        longer_than_ms=limit,
        longest=tuple(sorted(found, key=lambda each: each.offset_after)),
        total=total,
        total_ms=total_ms,
    )
