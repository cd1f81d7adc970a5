"""How many in-sync replicas a partition needed, by the configs as they held at the time.

The topic's min.insync.replicas counts over that of the leading broker, that over the default of all brokers, and that
over 1. What a broker has in its server.properties is in no log. No partition needs more than it has replicas (Kafka's
`Partition.effectiveMinIsr`).
"""

from typing import Final

from kquorum.spark_replay.engine import functions as F  # noqa: N812
from kquorum.spark_replay.engine.column import Column
from kquorum.spark_replay.engine.frame import Frame

MIN_ISR: Final = "min.insync.replicas"
DEFAULT: Final = 1
_LEVELS: Final = ("topic", "leader", "cluster")


def with_min_isr(states: Frame, configs: Frame) -> Frame:
    """`states` (rows of `partition_history`), cut where the setting changed within them, with `min_isr` added.

    `configs` is `configs_history`. The bounds of the rows are changed to those of the pieces. Only a state with fewer
    in-sync replicas than replicas can be short of any, so only those should be given: each is joined with its settings.
    """
    settings = _settings(configs)
    keyed = states.withColumn("state", F.struct("topic_id", "partition_id", "valid_from_offset"))
    wanted = keyed.select(
        "state",
        "source",
        F.col("valid_from_offset").alias("from_offset"),
        F.col("valid_to_offset").alias("to_offset"),
        F.explode(
            F.array(
                F.struct(F.lit("topic").alias("level"), F.col("topic_name").alias("of")),
                F.struct(F.lit("leader").alias("level"), F.col("leader").cast("string").alias("of")),
                F.struct(F.lit("cluster").alias("level"), F.lit("").alias("of")),
            )
        ).alias("key"),
    ).select("state", "source", "from_offset", "to_offset", "key.level", "key.of")
    overlaps = (F.col("set_offset") < F.coalesce("to_offset", F.lit(2**63 - 1))) & (
        F.coalesce("unset_offset", F.lit(2**63 - 1)) > F.col("from_offset")
    )
    found = (
        wanted.join(settings, ["source", "level", "of"])
        .where(overlaps)
        .groupBy("source", "state")
        .agg(
            F.collect_list(
                F.struct("level", "set_offset", "set_ms", "unset_offset", "unset_ms", "value")
            ).alias("set")
        )
    )
    pieces = keyed.join(found, ["source", "state"], "left").withColumn("cut", F.explode(_cuts()))
    return (
        pieces.withColumns(
            {
                "valid_from_offset": F.col("cut.from_offset"),
                "valid_from_ms": F.col("cut.from_ms"),
                "valid_to_offset": F.col("cut.to_offset"),
                "valid_to_ms": F.col("cut.to_ms"),
                "is_first_piece": F.col("cut.from_offset") == F.col("valid_from_offset"),
                "is_last_piece": F.col("cut.to_offset").eqNullSafe(F.col("valid_to_offset")),
            }
        )
        .withColumn("min_isr", F.least(_value_at(F.col("valid_from_offset")), F.size("replicas")))
        .drop("state", "set", "cut")
    )


def _settings(configs: Frame) -> Frame:
    """By level; what is no number cannot have been accepted, and does not count."""
    kind, name = F.col("resource_type"), F.col("resource_name")
    level = F.when(kind == "topic", "topic").when(name == "", "cluster").otherwise("leader")
    value = F.try_int("value")
    chosen = configs.where((F.col("name") == MIN_ISR) & kind.isin("topic", "broker") & value.isNotNull())
    return chosen.select(
        "source",
        level.alias("level"),
        name.alias("of"),
        value.alias("value"),
        F.col("valid_from_offset").alias("set_offset"),
        F.col("valid_from_ms").alias("set_ms"),
        F.col("valid_to_offset").alias("unset_offset"),
        F.col("valid_to_ms").alias("unset_ms"),
    )


def _cuts() -> Column:
    """The pieces of a state: from its own bounds and from each change of a setting within it."""
    begin = F.struct(F.col("valid_from_offset").alias("offset"), F.col("valid_from_ms").alias("ms"))
    none = F.array().cast("array<struct<offset:bigint,ms:bigint>>")
    changes = F.flatten(
        F.transform(
            "set",
            lambda each: F.array(
                F.struct(each["set_offset"].alias("offset"), each["set_ms"].alias("ms")),
                F.struct(each["unset_offset"].alias("offset"), each["unset_ms"].alias("ms")),
            ),
        )
    )
    inside = F.filter(
        F.coalesce(changes, none),
        lambda each: (
            (each["offset"] > F.col("valid_from_offset"))
            & (each["offset"] < F.coalesce("valid_to_offset", F.lit(2**63 - 1)))
        ),
    )
    begins = F.sort_array(F.array_distinct(F.concat(F.array(begin), inside)))
    return F.transform(
        begins,
        lambda each, index: F.struct(
            each["offset"].alias("from_offset"),
            each["ms"].alias("from_ms"),
            F.coalesce(F.get(begins, index + 1)["offset"], F.col("valid_to_offset")).alias("to_offset"),
            F.coalesce(F.get(begins, index + 1)["ms"], F.col("valid_to_ms")).alias("to_ms"),
        ),
    )


def _value_at(offset: Column) -> Column:
    return F.coalesce(*(_set_at(level, offset) for level in _LEVELS), F.lit(DEFAULT))


def _set_at(level: str, offset: Column) -> Column:
    """A function of its own: PySpark gives a lambda with a second parameter the place of the element in the array."""

    def holds(each: Column) -> Column:
        lasts_to = F.coalesce(each["unset_offset"], F.lit(2**63 - 1))
        return (each["level"] == level) & (each["set_offset"] <= offset) & (lasts_to > offset)

    return F.get(F.filter("set", holds), F.lit(0))["value"]
