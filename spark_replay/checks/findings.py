"""What the checks of an audit find: one row each, with the offsets that prove it."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, StructType

from kquorum.spark_replay.tables.building.columns import LONG, SOURCE, STRING, column
from kquorum.spark_replay.tables.building.frames import shaped

VIOLATION: Final = "violation"
NOTE: Final = "note"


class CheckName(StrEnum):
    """In the order in which they are shown; the value is the name that a user sees."""

    CHECKSUMS = "checksums"
    OFFSETS = "offsets"
    RECORDS = "records"
    EPOCHS = "quorum epochs"
    ELECTIONS = "elections"
    TIMESTAMPS = "timestamps"
    TRANSACTIONS = "transactions"
    LEADERS = "leader in ISR"
    ISR = "ISR in replicas"
    PARTITION_EPOCHS = "partition epochs"
    REMOVALS = "after removal"
    AUDIT_CHAIN = "audit chain"
    BATCH_RULES = "batch rules"
    REPLAY = "replay"
    SNAPSHOT_FILES = "snapshot files"
    SNAPSHOT_NAMES = "snapshot names"
    SNAPSHOT_STATE = "snapshot = replay"
    STATE_HASH = "state hash"
    REPLICAS = "replicas"


FINDINGS: Final = StructType(
    [
        column("check", STRING, "the check that found it"),
        column("severity", STRING, "violation (a rule is broken), or note (lawful, but worth knowing)"),
        SOURCE,
        column("file", STRING, "name of the segment or snapshot file"),
        column("position", LONG, "byte position in the file of the batch; null where only the offset counts"),
        column("offset", LONG, "log offset of what is wrong; of what is wrong in a snapshot its end offset"),
        column("proof_offsets", ArrayType(LONG), "log offsets which, read together, prove it; ascending"),
        column("subject", STRING, "what it is about: a partition, a broker, a snapshot, ..."),
        column("reason", STRING, "what was found, in words"),
    ]
)


def found(
    frame: DataFrame,
    check: CheckName,
    *,
    reason: Column,
    severity: Column | str = VIOLATION,
    offset: Column | str = "offset",
    proof: Sequence[Column | str] = (),
    subject: Column | None = None,
) -> DataFrame:
    """Each row of `frame` as a finding. `source` is taken from it, `file` and `position` where it has them; `proof` are
    columns of offsets; null offsets are left out."""
    place = F.col(offset) if isinstance(offset, str) else offset
    offsets = [F.col(each) if isinstance(each, str) else each for each in (*proof, place)]
    proofs = F.array_sort(
        F.array_distinct(F.array_compact(F.array(*(each.cast("long") for each in offsets))))
    )
    null = F.lit(None)
    return shaped(
        frame.select(
            F.lit(str(check)).alias("check"),
            (F.lit(severity) if isinstance(severity, str) else severity).alias("severity"),
            "source",
            (F.col("file") if "file" in frame.columns else null).alias("file"),
            (F.col("position") if "position" in frame.columns else null).alias("position"),
            place.alias("offset"),
            proofs.alias("proof_offsets"),
            (null if subject is None else subject).alias("subject"),
            reason.alias("reason"),
        ),
        FINDINGS,
    )
