"""What two moments of one log differ in, and what happened in between that they do not differ in."""

from collections.abc import Mapping
from typing import Final

from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.column import Column
from kquorum.spark_replay.engine.frame import Frame, Tables, union_of
from kquorum.spark_replay.questions.as_of import EVERYTHING, counting
from kquorum.spark_replay.questions.causes import with_author
from kquorum.spark_replay.questions.entities import ENTITIES, Entity, Narrowing, history
from kquorum.spark_replay.questions.moments import Moment, holds_at

ADDED, REMOVED, CHANGED, PASSING, RESTORED = "added", "removed", "changed", "passing", "restored"
CHANGES: Final = (ADDED, REMOVED, CHANGED, PASSING, RESTORED)


def diff(
    tables: Tables, before: Moment, after: Moment, narrowing: Narrowing = EVERYTHING
) -> Mapping[str, Frame]:
    """By the names of `ENTITIES`: a row for each thing that something happened to behind `before`, up to `after`.

    `change` is added, removed or changed; or passing (came and went in between) or restored (changed and changed
    back), which the two states do not show. `before` and `after` are structs of the fields, null where it was not
    there; `fields` names those that differ. `steps` counts the records that did it, `offset` and `timestamp_ms` are
    the last one's, with the author of that one (`authors.AUTHOR_FIELDS`).
    """
    frames = compared(tables, before, after, narrowing)
    return {name: with_author(frame, tables) for name, frame in frames.items()}


def compared(
    tables: Tables, before: Moment, after: Moment, narrowing: Narrowing = EVERYTHING
) -> Mapping[str, Frame]:
    """As `diff`, without the authors."""
    frames = {}
    for entity in ENTITIES:
        rows = history(tables, entity, narrowing)
        if rows is not None:
            of_source = rows.where(F.col("source") == before.source)
            frames[entity.name] = _compared(entity, of_source, before, after)
    return frames


def _compared(entity: Entity, rows: Frame, before: Moment, after: Moment) -> Frame:
    first, last = (counting(entity, F.lit(each.offset), F.lit(each.state_offset)) for each in (before, after))
    was, is_there = holds_at(first), holds_at(last)
    begun = _is_between(F.col("valid_from_offset"), first, last)
    ended = _is_between(F.col("valid_to_offset"), first, last)
    state = F.struct(*entity.fields) if entity.fields else F.struct(*entity.keys)
    place = F.when(ended, _place("valid_to"))
    start = F.when(begun, _place("valid_from"))
    marked = rows.where((was != is_there) | begun).withColumns({"is_before": was, "is_after": is_there})
    grouped = marked.groupBy(*entity.keys).agg(
        F.first_known(F.when(F.col("is_before"), state)).alias("before"),
        F.first_known(F.when(F.col("is_after"), state)).alias("after"),
        F.greatest(F.max(place), F.max(start)).alias("place"),
        F.count_if(begun).alias("begun"),
    )
    fields = _differing(entity)
    return grouped.select(
        *entity.keys,
        _change(fields).alias("change"),
        fields.alias("fields"),
        "before",
        "after",
        (F.col("begun") + F.when(F.col("after").isNull(), 1).otherwise(0)).alias("steps"),
        F.col("place.offset").alias("offset"),
        F.col("place.timestamp_ms").alias("timestamp_ms"),
    )


def _place(edge: str) -> Column:
    offset, timestamp_ms = (F.col(f"{edge}_{unit}").cast("long") for unit in ("offset", "ms"))
    return F.struct(offset.alias("offset"), timestamp_ms.alias("timestamp_ms"))


def _is_between(offset: Column, first: Column, last: Column) -> Column:
    return F.coalesce((offset > first) & (offset <= last), F.lit(False))


def _differing(entity: Entity) -> Column:
    """The names of the fields that differ; a secret that was set again counts, though its value is not shown."""
    names = [
        F.when(~F.col(f"before.{name}").eqNullSafe(F.col(f"after.{name}")), F.lit(name))
        for name in entity.fields
    ]
    if "is_redacted" in entity.fields:
        is_secret = F.col("before.is_redacted") & F.col("after.is_redacted") & (F.col("begun") > 0)
        names.append(F.when(is_secret, F.lit("value")))
    found = F.array_compact(F.array(*names)) if names else F.array().cast("array<string>")
    is_both = F.col("before").isNotNull() & F.col("after").isNotNull()
    return F.when(is_both, F.array_distinct(found)).otherwise(F.array().cast("array<string>"))


def _change(fields: Column) -> Column:
    was, is_there = F.col("before").isNotNull(), F.col("after").isNotNull()
    return (
        F.when(was & ~is_there, REMOVED)
        .when(~was & is_there, ADDED)
        .when(~was & ~is_there, PASSING)
        .when(F.size(fields) == 0, RESTORED)
        .otherwise(CHANGED)
    )


def sums_of_diff(frames: Mapping[str, Frame]) -> Frame:
    """(entity, change, rows) of a diff."""
    narrow = [frame.select(F.lit(name).alias("entity"), "change") for name, frame in frames.items()]
    return union_of(narrow).groupBy("entity", "change").agg(F.count("*").alias("rows"))
