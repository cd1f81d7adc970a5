"""The rows of the data source `kraft_log`: records, batches and damage in one schema."""

from pyspark.sql.types import StructField, StructType

from kquorum.spark_replay.tables.batches import BATCH_COLUMNS
from kquorum.spark_replay.tables.building.columns import STRING, column
from kquorum.spark_replay.tables.damage import DAMAGE
from kquorum.spark_replay.tables.records import RECORD_COLUMNS


def _union(*tables: list[StructField]) -> StructType:
    fields: dict[str, StructField] = {}
    for table in tables:
        for field in table:
            assert fields.setdefault(field.name, field).dataType == field.dataType, field.name
    return StructType(list(fields.values()))


ROW_KIND = column("row_kind", STRING, "record, batch or damage")
SOURCE_ROWS = _union([ROW_KIND], RECORD_COLUMNS, BATCH_COLUMNS, list(DAMAGE.fields))
