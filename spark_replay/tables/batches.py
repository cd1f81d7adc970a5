"""`batches`: every whole batch with a good checksum. The pass over the files writes it."""

from pyspark.sql.types import StructType

from kquorum.spark_replay.tables.building.audit_table import AuditTable
from kquorum.spark_replay.tables.building.columns import (
    BATCH_EPOCH,
    FILE,
    FILE_KIND,
    INT,
    IS_CONTROL,
    LONG,
    POSITION,
    SEGMENT_BASE_OFFSET,
    SOURCE,
    STRING,
    TIMESTAMP_COLUMN,
    TIMESTAMP_MS,
    column,
)

BATCH_COLUMNS = [
    SOURCE,
    FILE,
    FILE_KIND,
    SEGMENT_BASE_OFFSET,
    POSITION,
    column("base_offset", LONG, "offset of the first record"),
    column("last_offset", LONG, "offset of the last record"),
    BATCH_EPOCH,
    TIMESTAMP_MS,
    column("record_count", INT, "records in the batch"),
    column("size_in_bytes", LONG, "size in the file, header included"),
    IS_CONTROL,
    column("codec", STRING, "none, gzip, snappy, lz4 or zstd; unknown for an id that means nothing"),
    column("crc", LONG, "the batch's CRC-32C, which was found right"),
]

BATCHES = StructType([*BATCH_COLUMNS, TIMESTAMP_COLUMN])


TABLE = AuditTable(
    place=20, schema=BATCHES, description="Every whole batch with a good checksum.", row_kind="batch"
)
