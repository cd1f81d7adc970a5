"""What a module of `spark_replay.tables` declares as TABLE, and what its builder reads."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInputs:
    """What the builders read. Records of the log and of the snapshot that it begins with; no plain NoOps.

    `stateful_records` has no records of partitions; it includes aborted transactions, which `aborted_transactions`
    lists. `counted_records` are those of them from where the state of their source begins. `state` are the counted
    records without aborted transactions and without records of the quorum; `partition_state` has the records of
    partitions too, their payload parsed. `epoch_spans` has a row for each epoch of each piece of the files.

    `record_types` are the types found in `stateful_records`, None if they were not counted. `table` returns a table
    that is already written, by its name.
    """

    stateful_records: DataFrame
    aborted_transactions: DataFrame
    counted_records: DataFrame
    state: DataFrame
    partition_state: DataFrame
    partition_records: int
    epoch_spans: DataFrame
    record_types: Collection[str] | None
    table: Callable[[str], DataFrame]
    staging: Path

    def may_have(self, record_types: Collection[str]) -> bool:
        """Whether `stateful_records` may have records of one of these types."""
        return self.record_types is None or not set(record_types).isdisjoint(self.record_types)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTable:
    """A table of an audit. The name of its module is the name of the table.

    One of three makes it: `build` returns its rows; `write` writes them itself into a folder and returns how many
    they are; the pass over the files writes rows of the kind `row_kind`.

    Tables are made in the order of `place`, those that read records of partitions (`reads_partitions`) after the
    others: a builder may ask `TableInputs.table` for what is made before it. Each column of `schema` has a comment.
    Without a record of a type in `made_from` the table is empty, and Spark is not asked.
    """

    place: int
    schema: StructType
    description: str
    build: Callable[[TableInputs], DataFrame] | None = None
    write: Callable[[TableInputs, Path], int] | None = None
    row_kind: str | None = None
    reads_partitions: bool = False
    made_from: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        makers = [each for each in (self.build, self.write, self.row_kind) if each is not None]
        assert len(makers) == 1, f"a table has one of build, write, row_kind; this one has {len(makers)}"
