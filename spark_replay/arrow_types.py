"""Spark's types as Arrow's."""

from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

_ARROW_TYPES: Final[dict[type[DataType], pa.DataType]] = {
    StringType: pa.string(),
    LongType: pa.int64(),
    IntegerType: pa.int32(),
    BooleanType: pa.bool_(),
    BinaryType: pa.binary(),
    TimestampType: pa.timestamp("us", "UTC"),
}


def arrow_type(data_type: DataType) -> Any:
    """The `pyarrow.DataType` that Spark reads as `data_type`; KeyError for one that no table has."""
    if isinstance(data_type, ArrayType):
        return pa.list_(arrow_type(data_type.elementType))
    if isinstance(data_type, StructType):
        return pa.struct(list(arrow_schema(data_type)))
    return _ARROW_TYPES[type(data_type)]


def arrow_schema(schema: StructType) -> Any:
    """The Arrow schema that Spark expects for rows of `schema`."""
    return pa.schema([(field.name, arrow_type(field.dataType)) for field in schema.fields])
