"""What the checks read: the tables of an audit, and what is known of each log from its files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from kquorum.spark_replay.audit_folder import AuditTables
from kquorum.spark_replay.audit_manifest import AuditedSource
from kquorum.spark_replay.decode.rows import MARKERS
from kquorum.spark_replay.decode.sources import FileKind
from kquorum.spark_replay.tables.building.state import state_records


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckInputs:
    """`missing_since` is, for each damaged log, the offset from which records are missing: results derived from later
    records may be wrong because of that."""

    tables: AuditTables
    sources: tuple[AuditedSource, ...]
    missing_since: Mapping[str, int]
    _kept: dict[str, DataFrame] = field(default_factory=dict)

    def kept(self, name: str, make: Callable[[], DataFrame]) -> DataFrame:
        """A frame that several checks read, cached until `release`."""
        if name not in self._kept:
            self._kept[name] = make().persist()
        return self._kept[name]

    def release(self) -> None:
        for frame in self._kept.values():
            frame.unpersist()
        self._kept.clear()

    def table(self, name: str) -> DataFrame:
        """The rows of the chosen sources."""
        return self.tables.table(name).where(F.col("source").isin([each.source for each in self.sources]))

    def state(self, *record_types: str) -> DataFrame:
        """The records of these types that make the state."""
        wanted = self.table("records").where(F.col("record_type").isin(*record_types, *MARKERS))
        return state_records(wanted, [each.base for each in self.sources])

    @property
    def beheaded(self) -> tuple[str, ...]:
        """The sources whose beginning neither the log nor a snapshot shows."""
        return tuple(
            each.source for each in self.sources if each.base.snapshot is None and each.base.from_offset > 0
        )


def check_inputs(tables: AuditTables, names: Sequence[str] = ()) -> CheckInputs:
    """Of the sources named, or all. KeyError for one that the audit does not have."""
    known = {each.source: each for each in tables.manifest.sources}
    chosen = tuple(known[name] for name in names) if names else tables.manifest.sources
    inputs = CheckInputs(tables=tables, sources=chosen, missing_since={})
    return CheckInputs(tables=tables, sources=chosen, missing_since=_missing_since(inputs))


def _missing_since(inputs: CheckInputs) -> dict[str, int]:
    """The first damage of each log; where no offset is known there, the end of the last sound batch before it."""
    damage = inputs.table("damage").where(F.col("file_kind") == FileKind.LOG.value)
    place = F.struct("segment_base_offset", "position")
    first = damage.groupBy("source").agg(
        F.min(place).alias("place"),
        F.min_by("offset", place).alias("offset"),
        F.min_by("file", place).alias("file"),
    )
    batches = inputs.table("batches").where(F.col("file_kind") == FileKind.LOG.value).alias("batch")
    before = (
        (F.col("batch.source") == F.col("first.source"))
        & (F.col("batch.file") == F.col("first.file"))
        & (F.col("batch.position") < F.col("first.place.position"))
    )
    joined = batches.join(first.alias("first"), before, "right")
    rows = joined.groupBy("first.source").agg(
        F.first("first.offset").alias("offset"),
        (F.max("batch.last_offset") + 1).alias("end"),
        F.first("first.place.segment_base_offset").alias("start"),
    )
    return {
        row["source"]: next((row[name] for name in ("offset", "end", "start") if row[name] is not None), 0)
        for row in rows.collect()
    }
