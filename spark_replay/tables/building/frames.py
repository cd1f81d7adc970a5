"""What the tables share: the order of records, payload fields as columns, the shape a schema promises."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom
from pyspark.sql.types import StructType

# Records of a snapshot share one state_offset and are in order among themselves by their place in the file.
STATE_ORDER = ("state_offset", "offset")

# A column of records whose payload has been parsed already (`tables.partition_payload`).
PARSED = "parsed"

# The first millisecond of the year 1 and the last of the year 9999, UTC.
CALENDAR_MS = (-62_135_596_800_000, 253_402_300_799_999)


def state_order() -> Column:
    """One comparable value that sorts the records of a source as they were applied."""
    return F.struct(*STATE_ORDER)


def of_types(records: DataFrame, *record_types: str) -> DataFrame:
    """The records of these types which could be read."""
    return records.where(F.col("record_type").isin(*record_types) & F.col("payload").isNotNull())


def with_payload(records: DataFrame, schema: StructType) -> DataFrame:
    """`records` with the payload's fields in a struct column `p`; fields that a type lacks are null."""
    return records.withColumn("p", F.from_json("payload", schema))


def latest(value: Column, order: Column) -> Column:
    """Aggregate: the last value that is not null, by `order`."""
    return F.max_by(value, F.when(value.isNotNull(), order))


def in_log(value: Column) -> Column:
    """`value` for a record of the log, null for one of a snapshot, whose offsets and batches are of the file only."""
    return F.when(F.col("file_kind") == "log", value)


def ordered_by_state(*keys: str) -> WindowSpec:
    """The records of each key as they were applied."""
    return Window.partitionBy(*keys).orderBy(*STATE_ORDER)


def up_to_here(order: WindowSpec) -> WindowSpec:
    return order.rowsBetween(Window.unboundedPreceding, Window.currentRow)


def event_columns() -> list[Column]:
    """Place and time at which a record takes effect, and its writer; the first columns of the tables of intervals."""
    return [
        *map(F.col, ("source", "state_offset", "offset", "state_timestamp_ms", "record_type")),
        F.col("leader_epoch").alias("quorum_epoch"),
        in_log(F.col("batch_base_offset")).alias("batch_base_offset"),
    ]


def with_validity(events: DataFrame, order: WindowSpec, *ending: str) -> DataFrame:
    """Each event holds until the next one of its key; `ending` names columns that are kept of the next one.

    They are called `next_<name>`.
    """
    held = events.withColumns(
        {
            "valid_to_offset": F.lead("state_offset").over(order),
            "valid_to_ms": F.lead("state_timestamp_ms").over(order),
            **{f"next_{name}": F.lead(name).over(order) for name in ending},
        }
    )
    return with_validity_times(
        held.withColumns(
            {"valid_from_offset": F.col("state_offset"), "valid_from_ms": F.col("state_timestamp_ms")}
        )
    )


def with_controller(changes: DataFrame, epochs: DataFrame) -> DataFrame:
    """Adds `controller_id`, the leader of `quorum_epoch` by `epochs` (`quorum_epochs`)."""
    controllers = epochs.select(
        "source", F.col("epoch").alias("quorum_epoch"), F.col("leader_id").alias("controller_id")
    )
    return changes.join(F.broadcast(controllers), ["source", "quorum_epoch"], "left")


def named(code: Column, names: Mapping[int, str], unknown: Column) -> Column:
    """The word for a number of Kafka's, or `unknown`."""
    word = F.lit(None).cast("string")
    for number, name in names.items():
        word = F.when(code == number, F.lit(name)).otherwise(word)
    return F.coalesce(word, unknown)


def shaped(frame: DataFrame, schema: StructType) -> DataFrame:
    """The columns of `schema` in its order, with its types and comments; null for what does not fit its type."""
    return frame.select(
        *(
            F.col(field.name).try_cast(field.dataType).alias(field.name, metadata=field.metadata)
            for field in schema.fields
        )
    )


def with_validity_times(frame: DataFrame) -> DataFrame:
    """Adds `valid_from` and `valid_to` as timestamps beside their milliseconds."""
    return frame.withColumns(
        {
            "valid_from": time_of("valid_from_ms"),
            "valid_to": time_of("valid_to_ms"),
        }
    )


def time_of(milliseconds: str) -> Column:
    """The column as a timestamp; null for what no calendar has, as one damaged record must not end an audit."""
    value = F.col(milliseconds)
    return F.when(value.between(*CALENDAR_MS), F.timestamp_millis(value))
