"""What the tables share: the order of records, payload fields as columns, the shape a schema promises."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom
from pyspark.sql.types import StructType

# Records of a snapshot share one state_offset and are in order among themselves by their place in the file.
STATE_ORDER = ("state_offset", "offset")


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


def shaped(frame: DataFrame, schema: StructType) -> DataFrame:
    """The columns of `schema` in its order, with its types and comments."""
    return frame.select(
        *(
            F.col(field.name).cast(field.dataType).alias(field.name, metadata=field.metadata)
            for field in schema.fields
        )
    )


def with_validity_times(frame: DataFrame) -> DataFrame:
    """Adds `valid_from` and `valid_to` as timestamps beside their milliseconds."""
    return frame.withColumns(
        {
            "valid_from": F.timestamp_millis("valid_from_ms"),
            "valid_to": F.timestamp_millis("valid_to_ms"),
        }
    )
