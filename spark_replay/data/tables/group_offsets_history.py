"""What consumer groups committed, in order: the offset records of `__consumer_offsets`."""

from collections.abc import Iterator

from pyspark.sql.types import StructType

from kquorum.spark_replay.data.data_table import LOG_DIR, Collector, DataTable, Row
from kquorum.spark_replay.data.log_dirs import PartitionFolder
from kquorum.spark_replay.data.reading import DataBatch
from kquorum.spark_replay.data.tables.data_batches import known
from kquorum.spark_replay.data.words import ABORTED, COMMITTED, OPEN
from kquorum.spark_replay.tables.building.columns import BOOLEAN, INT, LONG, STRING, column
from kquorum.wire.data_batch import Record
from kquorum.wire.errors import DecodeError
from kquorum.wire.offsets_records import OffsetKey, decode_key, decode_offset_value
from kquorum.wire.uuids import ZERO_UUID, uuid_to_text

OFFSETS_TOPIC = "__consumer_offsets"
SCHEMA = StructType(
    [
        LOG_DIR,
        column("offsets_partition", INT, "partition of __consumer_offsets, which is the group's"),
        column("offset", LONG, "offset of the record in it"),
        column("timestamp_ms", LONG, "time of the record"),
        column("leader_epoch_of_log", INT, "epoch of that partition's leader, which was the coordinator"),
        column("group_id", STRING, "the group"),
        column("topic_name", STRING, "topic whose offset it is"),
        column("topic_id", STRING, "its id, where the record has it"),
        column("partition_id", INT, "partition whose offset it is"),
        column("committed_offset", LONG, "the next offset to be read; null where the offset was removed"),
        column("committed_leader_epoch", INT, "epoch of the last record that was read; null where not known"),
        column("commit_ms", LONG, "when the coordinator got it"),
        column("is_removed", BOOLEAN, "whether the record is a tombstone: it expired or was deleted"),
        column("producer_id", LONG, "of an offset committed in a transaction; else null"),
        column(
            "outcome",
            STRING,
            "committed, aborted or open, of an offset committed in a transaction; else null",
        ),
    ]
)


class _Offsets(Collector):
    """An offset of a transaction counts from its commit marker on; until then its row waits."""

    def __init__(self, folder: PartitionFolder) -> None:
        super().__init__(folder)
        self._waiting: dict[int, list[Row]] = {}

    def batch(self, batch: DataBatch) -> Iterator[Row]:
        header = batch.header
        if header.is_control:
            if batch.marker is not None:
                outcome = COMMITTED if batch.marker.is_commit else ABORTED
                for row in self._waiting.pop(header.producer_id, ()):
                    yield row | {"outcome": outcome}
            return
        made = (self._row(batch, record) for record in batch.records)
        rows = (each for each in made if each is not None)
        if header.is_transactional:
            self._waiting.setdefault(header.producer_id, []).extend(rows)
        else:
            yield from rows

    def end(self) -> Iterator[Row]:
        for rows in self._waiting.values():
            for row in rows:
                yield row | {"outcome": OPEN}

    def _row(self, batch: DataBatch, record: Record) -> Row | None:
        """None for a record that is no offset, or cannot be decoded (`segments` counts batches that cannot be)."""
        try:
            key = None if record.key is None else decode_key(bytes(record.key))
            if not isinstance(key, OffsetKey):
                return None
            value = None if record.value is None else decode_offset_value(bytes(record.value))
        except DecodeError:
            return None
        is_known = value is not None and value.topic_id != ZERO_UUID
        return {
            "source": self.folder.source,
            "offsets_partition": self.folder.partition,
            "offset": record.offset,
            "timestamp_ms": known(record.timestamp_ms),
            "leader_epoch_of_log": known(batch.header.partition_leader_epoch),
            "group_id": key.group_id,
            "topic_name": key.topic,
            "topic_id": uuid_to_text(value.topic_id) if value is not None and is_known else None,
            "partition_id": key.partition,
            "committed_offset": None if value is None else value.offset,
            "committed_leader_epoch": None if value is None else known(value.leader_epoch),
            "commit_ms": None if value is None else known(value.commit_timestamp),
            "is_removed": value is None,
            "producer_id": batch.header.producer_id if batch.header.is_transactional else None,
            "outcome": None,
        }


TABLE = DataTable(
    place=50,
    schema=SCHEMA,
    description="Each offset that a consumer group committed or lost. Its metadata, which clients choose, is left out.",
    collector=_Offsets,
    of_topic=OFFSETS_TOPIC,
)
