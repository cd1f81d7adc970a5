"""A log file's records, batches and damaged places, collected and handed over as Arrow batches of one schema."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kquorum.spark_replay.columns import BatchColumns, Columns, damage_columns, record_batch
from kquorum.spark_replay.decode import Origin
from kquorum.spark_replay.record_columns import RecordColumns, damage_in_run, records_of
from kquorum.spark_replay.rows import DamageRow
from kquorum.wire.batch_runs import BatchRun
from kquorum.wire.log_scan import ScannedBatch

ROWS_PER_ARROW_BATCH: Final = 8192
# Rows of large records are handed over sooner: a row may be as large as a batch can be.
BYTES_GATHERED: Final = 32 * 1024 * 1024


class LogColumns:
    """What a scan of one file finds, of the kinds that `schemas` has Arrow schemas for (record, batch, damage); `fixed`
    are the columns which are the same in every row.

    Arrow batches have rows of one kind each, and at most ROWS_PER_ARROW_BATCH of them.
    """

    def __init__(
        self,
        schemas: Mapping[str, Any],
        origin: Origin,
        *,
        fixed: Mapping[str, str],
        show_secrets: bool,
        snapshot_timestamp_ms: int | None = None,
    ) -> None:
        self._schemas = schemas
        self._origin = origin
        self._fixed = {**fixed, "file": origin.file, "segment_base_offset": origin.segment_base_offset}
        self._batches = BatchColumns()
        self._damage: list[DamageRow] = []
        self._records = RecordColumns(
            origin, show_secrets=show_secrets, snapshot_timestamp_ms=snapshot_timestamp_ms
        )

    @property
    def is_full(self) -> bool:
        sizes = (len(self._records), len(self._batches), len(self._damage))
        return max(sizes) >= ROWS_PER_ARROW_BATCH or self._records.value_bytes >= BYTES_GATHERED

    def add(self, item: BatchRun | ScannedBatch | DamageRow) -> None:
        if isinstance(item, DamageRow):
            self._add_damage(item)
        elif isinstance(item, BatchRun):
            self._add_run(item)
        else:
            self._add_batch(item)

    def _add_run(self, run: BatchRun) -> None:
        if "batch" in self._schemas:
            self._batches.add_run(run)
        if "record" in self._schemas:
            found = self._records.add_run(run)
        elif "damage" in self._schemas:
            found = damage_in_run(run, self._origin)
        else:
            return
        for damage in found:
            self._add_damage(damage)

    def _add_batch(self, item: ScannedBatch) -> None:
        if "batch" in self._schemas:
            self._batches.add(item)
        if "record" in self._schemas:
            self._add_damage(self._records.add(item))
        elif "damage" in self._schemas:
            records = records_of(item, self._origin)
            self._add_damage(records if isinstance(records, DamageRow) else None)

    def _add_damage(self, damage: DamageRow | None) -> None:
        if damage is not None and "damage" in self._schemas:
            self._damage.append(damage)

    def take(self) -> Iterator[tuple[str, Any]]:
        """Everything added so far as `pyarrow.RecordBatch`es, each with its kind; nothing is left afterwards."""
        if count := len(self._records):
            yield from self._arrow_batches("record", self._records.take(), count)
        self._records.clear()
        if count := len(self._batches):
            yield from self._arrow_batches("batch", self._batches.take(), count)
        if self._damage:
            damage, self._damage = self._damage, []
            yield from self._arrow_batches("damage", damage_columns(damage), len(damage))

    def _arrow_batches(self, kind: str, columns: Columns, count: int) -> Iterator[tuple[str, Any]]:
        whole = record_batch(self._schemas[kind], {**columns, **self._fixed, "row_kind": kind}, count)
        for start in range(0, count, ROWS_PER_ARROW_BATCH):
            yield kind, whole.slice(start, ROWS_PER_ARROW_BATCH)
