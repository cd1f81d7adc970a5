"""The state of the whole cluster right after one record of the log, or after many."""

from collections.abc import Mapping

from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.column import Column
from kquorum.spark_replay.engine.frame import Frame, Tables
from kquorum.spark_replay.questions.entities import (
    BY_NAME,
    ENTITIES,
    QUORUM_FEATURE,
    Entity,
    Narrowing,
    history,
)
from kquorum.spark_replay.questions.moments import Moment, holds_at

EVERYTHING = Narrowing()
PARTITIONS = BY_NAME["partitions"]


def as_of(tables: Tables, moment: Moment, narrowing: Narrowing = EVERYTHING) -> Mapping[str, Frame]:
    """The state at `moment`, a frame for each kind of thing in it, by the names of `ENTITIES`, and `quorum`.

    Columns are the key and the fields of the entity, and `since_offset` and `since_ms`: when it came to be so. Topics
    have sums of their partitions besides. What `narrowing` leaves out is not in the mapping.
    """
    frames = held(tables, moment, narrowing)
    if "topics" in frames:
        partitions = tables.frame(PARTITIONS.table).where(F.col("source") == moment.source)
        there = partitions.where(holds_at(F.lit(moment.state_offset)))
        frames["topics"] = _with_sizes(frames["topics"], _shown(PARTITIONS, there))
    return frames


def held(tables: Tables, moment: Moment, narrowing: Narrowing = EVERYTHING) -> dict[str, Frame]:
    """As `as_of`, without the sums of topics: nothing but rows of the tables."""
    frames = {}
    for entity in ENTITIES:
        rows = history(tables, entity, narrowing)
        if rows is not None:
            of_source = rows.where(F.col("source") == moment.source)
            at = counting(entity, F.lit(moment.offset), F.lit(moment.state_offset))
            frames[entity.name] = _shown(entity, of_source.where(holds_at(at)))
    if not narrowing.is_narrow:
        epochs = tables.frame("quorum_epochs").where(F.col("source") == moment.source)
        frames["quorum"] = _leader(epochs.where(_leads_at(F.lit(moment.offset))))
    return frames


def states_at(tables: Tables, moments: Frame) -> Mapping[str, Frame]:
    """As `as_of` for every row of `moments`: `source`, `offset`, `state_offset` (see `moments.with_state_offsets`).

    Each frame has the `offset` of the moment as its column `as_of_offset`.
    """
    asked = moments.select(
        F.col("source").alias("asked_source"),
        F.col("offset").alias("as_of_offset"),
        F.col("state_offset").alias("as_of_state_offset"),
    )
    same = F.col("source") == F.col("asked_source")
    frames = {}
    for entity in ENTITIES:
        at = counting(entity, F.col("as_of_offset"), F.col("as_of_state_offset"))
        joined = tables.frame(entity.table).join(asked.broadcast(), same & holds_at(at))
        frames[entity.name] = _shown(entity, joined, "as_of_offset")
    frames["topics"] = _with_sizes(frames["topics"], frames["partitions"], "as_of_offset")
    leads = same & _leads_at(F.col("as_of_offset"))
    epochs = tables.frame("quorum_epochs").join(asked.broadcast(), leads)
    frames["quorum"] = _leader(epochs, "as_of_offset")
    return frames


def counting(entity: Entity, offset: Column, state_offset: Column) -> Column:
    """Up to where records of this kind count."""
    if entity.is_of_quorum:
        return offset
    if entity.name == "features":
        return F.when(F.col("feature") == QUORUM_FEATURE, offset).otherwise(state_offset)
    return state_offset


def _shown(entity: Entity, rows: Frame, *more: str) -> Frame:
    return rows.select(
        *more,
        *entity.keys,
        *entity.fields,
        F.col("valid_from_offset").alias("since_offset"),
        F.col("valid_from_ms").alias("since_ms"),
    )


def _with_sizes(topics: Frame, partitions: Frame, *more: str) -> Frame:
    """Each topic with what its partitions amount to. Inside the batch that makes it, it has not all of them yet."""
    keys = [*more, "source", "topic_id"]
    under = F.size("isr") < F.size("replicas")
    sizes = partitions.groupBy(*keys).agg(
        F.count("*").alias("partitions"),
        F.max(F.size("replicas")).alias("replication_factor"),
        F.count_if(F.col("leader") < 0).alias("without_leader"),
        F.count_if(under).alias("under_replicated"),
    )
    counted = topics.join(sizes, keys, "left")
    sums = ("partitions", "without_leader", "under_replicated")
    return counted.withColumns({name: F.coalesce(F.col(name), F.lit(0)) for name in sums})


def _leads_at(offset: Column) -> Column:
    ends = F.col("end_offset")
    return (F.col("start_offset") <= offset) & (ends.isNull() | (ends > offset))


def _leader(epochs: Frame, *more: str) -> Frame:
    return epochs.select(
        *more,
        *("source", "epoch", "leader_id", "voters"),
        F.col("start_offset").alias("since_offset"),
        F.col("start_ms").alias("since_ms"),
    )
