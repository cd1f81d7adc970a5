"""The logs of one quorum side by side: which batches each holds, and where they are not the same.

Replication copies batches byte for byte, so logs are compared by their batches' offsets, epochs and checksums. Records
are looked at only to show them: secrets in them are redacted, so that what reads the same need not be the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from kquorum.spark_replay.audit_manifest import AuditedSource
from kquorum.spark_replay.checks.inputs import CheckInputs

_BATCH: Final = ("base_offset", "last_offset", "leader_epoch", "crc", "size_in_bytes")
_PAYLOAD_SHOWN: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What the logs `sources` hold at the offset where not all hold the same: the batch there, and the record."""

    sources: tuple[str, ...]
    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    record_type: str | None
    payload: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """`offset` is the first at which two logs hold different batches, `last_offset` the last. `rejoined_offset` is the
    first behind `offset` at which logs of different sides hold the same batch again; None if they never do."""

    offset: int
    last_offset: int
    count: int
    sides: tuple[Side, ...]
    rejoined_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingRecords:
    """Records which `source` should hold, by where it begins and ends, but does not, and another log does."""

    source: str
    first_offset: int
    last_offset: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Beyond:
    """Records of one log from `first_offset` on, where not all the logs reach, by quorum epoch and type."""

    source: str
    leader_epoch: int
    record_type: str
    count: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaFacts:
    """What the tables tell of the logs of one quorum; `last_epochs` are of the last batch of each."""

    sources: tuple[AuditedSource, ...]
    voter_ids: tuple[int, ...]
    last_epochs: dict[str, int]
    difference: Difference | None
    missing_records: tuple[MissingRecords, ...]
    beyond: tuple[Beyond, ...]
    batches: int

    @property
    def agreed_below(self) -> int:
        """Below this offset no two of the logs hold different records, and it is in all that are not damaged."""
        ends = min(each.end_offset or 0 for each in self.sources)
        return ends if self.difference is None else min(ends, self.difference.offset)


def replica_facts(inputs: CheckInputs, sources: Sequence[AuditedSource]) -> ReplicaFacts:
    """Of two or more sources that have batches."""
    names = [each.source for each in sources]
    log = inputs.table("batches").where((F.col("file_kind") == "log") & F.col("source").isin(names))
    keys = log.groupBy(*_BATCH).agg(F.collect_set("source").alias("holders"))
    disputed = keys.where(F.size("holders") < F.size(_covering(sources, "base_offset", "last_offset")))
    offsets = _by_offset(inputs, log, disputed, sources).persist()
    extents = log.groupBy("source").agg(
        F.max_by("leader_epoch", "base_offset").alias("epoch"), F.count("*").alias("batches")
    )
    rows = extents.collect()
    try:
        is_disputed = not offsets.isEmpty()
        facts = ReplicaFacts(
            sources=tuple(sources),
            voter_ids=_voters(inputs, sources),
            last_epochs={row["source"]: row["epoch"] for row in rows},
            difference=_difference(offsets, keys) if is_disputed else None,
            missing_records=_missing_records(offsets) if is_disputed else (),
            beyond=(),
            batches=sum(row["batches"] for row in rows),
        )
    finally:
        offsets.unpersist()
    return _with_beyond(inputs, facts)


def _covering(sources: Sequence[AuditedSource], first: str, last: str) -> Column:
    """The sources that reach over any of these offsets."""
    reached = (
        F.when(
            (F.col(last) >= F.lit(each.start_offset)) & (F.col(first) < F.lit(each.end_offset)),
            F.lit(each.source),
        )
        for each in sources
    )
    return F.array_compact(F.array(*reached))


def _by_offset(
    inputs: CheckInputs, log: DataFrame, disputed: DataFrame, sources: Sequence[AuditedSource]
) -> DataFrame:
    """For the batches that not all logs hold: which log holds each offset. A batch that cannot be decoded counts as one
    record."""
    place = ("source", "file", "position")
    batches = log.join(disputed.select(*_BATCH), list(_BATCH), "left_semi")
    held = batches.select(*place, F.struct(*_BATCH).alias("batch"))
    records = inputs.table("records").where(F.col("file_kind") == "log")
    named = records.select(*place, "offset", "record_type", "payload")
    joined = held.join(named, list(place), "left").select(
        "source",
        F.coalesce("offset", "batch.base_offset").alias("offset"),
        "batch",
        "record_type",
        F.substring("payload", 1, _PAYLOAD_SHOWN).alias("payload"),
    )
    by_offset = joined.groupBy("offset").agg(
        F.collect_list(F.struct("source", "batch", "record_type", "payload")).alias("held"),
        F.count_distinct("batch").alias("batches"),
    )
    missing = F.array_except(_covering(sources, "offset", "offset"), F.col("held.source"))
    return by_offset.withColumn("missing", missing)


def _difference(offsets: DataFrame, keys: DataFrame) -> Difference | None:
    differing = offsets.where(F.col("batches") > 1)
    row = differing.agg(
        F.min_by("held", "offset").alias("held"),
        F.min("offset").alias("first"),
        F.max("offset").alias("last"),
        F.count("*").alias("count"),
    ).first()
    assert row is not None
    if row["first"] is None:
        return None
    sides = _sides(row["held"])
    return Difference(
        offset=row["first"],
        last_offset=row["last"],
        count=row["count"],
        sides=sides,
        rejoined_offset=_rejoined(keys, row["first"], sides),
    )


def _sides(held: Sequence[Any]) -> tuple[Side, ...]:
    by_batch: dict[tuple[Any, ...], list[Any]] = {}
    for each in sorted(held, key=lambda each: each["source"]):
        by_batch.setdefault(tuple(each["batch"]), []).append(each)
    return tuple(
        Side(
            sources=tuple(each["source"] for each in same),
            base_offset=same[0]["batch"]["base_offset"],
            last_offset=same[0]["batch"]["last_offset"],
            leader_epoch=same[0]["batch"]["leader_epoch"],
            crc=same[0]["batch"]["crc"],
            record_type=same[0]["record_type"],
            payload=same[0]["payload"],
        )
        for same in by_batch.values()
    )


def _rejoined(keys: DataFrame, offset: int, sides: Sequence[Side]) -> int | None:
    """One batch cannot be in two logs that differ before it: Raft's log matching."""
    in_sides = [F.arrays_overlap("holders", F.array(*map(F.lit, side.sources))) for side in sides]
    shared = sum((F.when(each, 1).otherwise(0) for each in in_sides), F.lit(0)) > 1
    row = (
        keys.where((F.col("base_offset") > offset) & shared).agg(F.min("base_offset").alias("first")).first()
    )
    assert row is not None
    first: int | None = row["first"]
    return first


def _missing_records(offsets: DataFrame) -> tuple[MissingRecords, ...]:
    missing = offsets.select("offset", F.explode("missing").alias("source"))
    rows = missing.groupBy("source").agg(
        F.min("offset").alias("first_offset"),
        F.max("offset").alias("last_offset"),
        F.count("*").alias("count"),
    )
    return tuple(
        MissingRecords(**row.asDict()) for row in sorted(rows.collect(), key=lambda row: str(row["source"]))
    )


def _voters(inputs: CheckInputs, sources: Sequence[AuditedSource]) -> tuple[int, ...]:
    """The last set of voters in the log that reaches farthest."""
    farthest = max(sources, key=lambda each: (each.end_offset or 0, each.source)).source
    sets = inputs.table("voters_history").where(F.col("source") == farthest)
    row = sets.agg(F.max_by("voter_ids", "valid_from_offset").alias("voter_ids")).first()
    assert row is not None
    return tuple(row["voter_ids"] or ())


def _with_beyond(inputs: CheckInputs, facts: ReplicaFacts) -> ReplicaFacts:
    names = [each.source for each in facts.sources]
    records = inputs.table("records").where(
        (F.col("file_kind") == "log") & F.col("source").isin(names) & (F.col("offset") >= facts.agreed_below)
    )
    rows = (
        records.groupBy("source", "leader_epoch", "record_type")
        .agg(
            F.count("*").alias("count"),
            F.min("offset").alias("first_offset"),
            F.max("offset").alias("last_offset"),
        )
        .orderBy("source", "leader_epoch", "first_offset", "record_type")
    )
    beyond = tuple(Beyond(**row.asDict()) for row in rows.collect())
    return replace(facts, beyond=beyond)
