"""`damage`: what could not be read. The pass over the files writes it, and the gaps between its pieces after it."""

from pyspark.sql.types import StructType

from kquorum.spark_replay.tables.building.audit_table import AuditTable
from kquorum.spark_replay.tables.building.columns import (
    FILE,
    FILE_KIND,
    LONG,
    POSITION,
    SEGMENT_BASE_OFFSET,
    SOURCE,
    STRING,
    column,
)

DAMAGE = StructType(
    [
        SOURCE,
        FILE,
        FILE_KIND,
        SEGMENT_BASE_OFFSET,
        POSITION,
        column("offset", LONG, "offset at which records are missing, where it can be told"),
        column("kind", STRING, "torn, corrupt, undecodable, or gap (offsets missing between whole batches)"),
        column("reason", STRING, "what was found there"),
    ]
)


TABLE = AuditTable(
    place=30,
    schema=DAMAGE,
    description="Every place that could not be read, and every gap between batches.",
    row_kind="damage",
)
