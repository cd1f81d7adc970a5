"""What the transaction coordinators wrote: the states of each transactional id, from `__transaction_state`."""

from collections.abc import Iterator

from pyspark.sql.types import StructType

from kquorum.spark_replay.data.data_table import LOG_DIR, Collector, DataTable, Row
from kquorum.spark_replay.data.reading import DataBatch
from kquorum.spark_replay.data.tables.data_batches import known
from kquorum.spark_replay.tables.building.columns import BOOLEAN, INT, LONG, STRING, STRINGS, column
from kquorum.wire.errors import DecodeError
from kquorum.wire.transaction_records import decode_transaction_key, decode_transaction_value

TRANSACTIONS_TOPIC = "__transaction_state"
# Kafka's TransactionState, by number (KIP-98, KIP-360).
STATES = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead"),
    "PrepareEpochFence",
)
SCHEMA = StructType(
    [
        LOG_DIR,
        column("state_partition", INT, "partition of __transaction_state, which is the transactional id's"),
        column("offset", LONG, "offset of the record in it"),
        column("timestamp_ms", LONG, "time of the record"),
        column("coordinator_epoch", INT, "epoch of that partition's leader, which was the coordinator"),
        column("transactional_id", STRING, "the transactional id"),
        column("state", STRING, "Empty, Ongoing, PrepareCommit, CompleteCommit, ...; null in a tombstone"),
        column("producer_id", LONG, "its producer id"),
        column("producer_epoch", INT, "its epoch"),
        column("timeout_ms", INT, "after so long the coordinator aborts a transaction"),
        column("partitions", STRINGS, "the partitions in the transaction, as topic-number"),
        column("start_ms", LONG, "when the transaction began; null without one"),
        column("update_ms", LONG, "when the state changed"),
        column("previous_producer_id", LONG, "the id before the epochs of this one began; null without one"),
        column("is_removed", BOOLEAN, "whether the record is a tombstone: the id expired"),
    ]
)


class _States(Collector):
    def batch(self, batch: DataBatch) -> Iterator[Row]:
        if batch.header.is_control:
            return
        for record in batch.records:
            try:
                name = None if record.key is None else decode_transaction_key(bytes(record.key))
                value = None if record.value is None else decode_transaction_value(bytes(record.value))
            except DecodeError:
                continue
            if name is None:
                continue
            row: Row = dict.fromkeys(SCHEMA.fieldNames()) | {
                "source": self.folder.source,
                "state_partition": self.folder.partition,
                "offset": record.offset,
                "timestamp_ms": known(record.timestamp_ms),
                "coordinator_epoch": known(batch.header.partition_leader_epoch),
                "transactional_id": name,
                "is_removed": value is None,
            }
            if value is not None:
                row |= {
                    "state": STATES[value.status] if 0 <= value.status < len(STATES) else str(value.status),
                    "producer_id": known(value.producer_id),
                    "producer_epoch": known(value.producer_epoch),
                    "timeout_ms": value.timeout_ms,
                    "partitions": [
                        f"{each.topic}-{number}"
                        for each in value.partitions or ()
                        for number in each.partition_ids
                    ],
                    "start_ms": known(value.start_timestamp_ms),
                    "update_ms": known(value.last_update_timestamp_ms),
                    "previous_producer_id": known(value.previous_producer_id),
                }
            yield row


TABLE = DataTable(
    place=70,
    schema=SCHEMA,
    description="Each state of each transactional id, as its coordinator wrote it.",
    collector=_States,
    of_topic=TRANSACTIONS_TOPIC,
)
