"""A small metadata log written by hand: every kind of trouble that a reader of logs must get through, once."""

from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from kquorum.snapshots.naming import SnapshotId
from kquorum.snapshots.writer import SnapshotWriter
from kquorum.wire.control_records import LeaderChangeMessage, LeaderChangeVoter, encode_control_record
from kquorum.wire.metadata_records.cluster import (
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.features import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
)
from kquorum.wire.metadata_records.security import UserScramCredentialRecord
from kquorum.wire.metadata_records.topics import (
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kquorum.wire.record_batch import CompressionCodec, write_batch
from kquorum.wire.record_frame import encode_record
from kquorum.wire.schema import MetadataRecord

ORDERS, ABORTED, COMMITTED, OLDER = (UUID(int=number) for number in (1001, 1002, 1003, 1004))
DIRECTORY = UUID(int=5000)

# An api key that no Kafka has, and versions of known records that no Kafka has: frame version, key, version, body.
UNKNOWN_KEY = bytes([1, 99, 0, 7, 7])
UNKNOWN_VERSION = bytes([1, 2, 9, 1, 2])
UNKNOWN_SCRAM_VERSION = bytes([1, 11, 9]) + b"salted secret"


@dataclass
class LogBuilder:
    """Writes batches one after the other; `data` is the segment so far."""

    next_offset: int = 0
    epoch: int = 1
    data: bytearray = field(default_factory=bytearray)

    def values(
        self, timestamp_ms: int, *values: bytes, codec: CompressionCodec = CompressionCodec.NONE
    ) -> "LogBuilder":
        return self._add(timestamp_ms, [(None, value) for value in values], control=False, codec=codec)

    def records(
        self,
        timestamp_ms: int,
        *records: MetadataRecord,
        codec: CompressionCodec = CompressionCodec.NONE,
    ) -> "LogBuilder":
        return self.values(timestamp_ms, *map(encode_record, records), codec=codec)

    def leader(self, timestamp_ms: int, leader_id: int, *granting: int, epoch: int) -> "LogBuilder":
        """Begin an epoch with voters 1, 2 and 3."""
        self.epoch = epoch
        message = LeaderChangeMessage(
            leader_id=leader_id,
            voters=tuple(LeaderChangeVoter(voter_id=voter) for voter in (1, 2, 3)),
            granting_voters=tuple(LeaderChangeVoter(voter_id=voter) for voter in granting),
        )
        return self._add(
            timestamp_ms, [encode_control_record(message)], control=True, codec=CompressionCodec.NONE
        )

    def _add(
        self,
        timestamp_ms: int,
        records: list[tuple[bytes | None, bytes | None]] | list[tuple[bytes, bytes]],
        *,
        control: bool,
        codec: CompressionCodec,
    ) -> "LogBuilder":
        self.data += write_batch(
            base_offset=self.next_offset,
            leader_epoch=self.epoch,
            timestamp_ms=timestamp_ms,
            records=records,  # type: ignore[arg-type]
            control=control,
            codec=codec,
        )
        self.next_offset += len(records)
        return self


def broker(broker_id: int, epoch: int) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=UUID(int=broker_id),
        broker_epoch=epoch,
        end_points=(BrokerEndpoint(name="PLAINTEXT", host=f"b{broker_id}", port=9092, security_protocol=0),),
        rack=None,
        log_dirs=(DIRECTORY,),
    )


def partition(topic_id: UUID, partition_id: int, leader: int, replicas: tuple[int, ...]) -> PartitionRecord:
    return PartitionRecord(
        partition_id=partition_id,
        topic_id=topic_id,
        replicas=replicas,
        isr=replicas,
        leader=leader,
        leader_epoch=0,
        partition_epoch=0,
        directories=tuple(DIRECTORY for _ in replicas),
    )


def first_segment() -> LogBuilder:
    """Offsets 0 to 22, epoch 1."""
    log = LogBuilder().leader(1000, 1, 1, 2, epoch=1)
    log.records(1100, broker(1, 1), broker(2, 2))
    log.records(
        1200,
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, fenced=-1),
        BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=2, fenced=-1),
    )
    log.records(
        2000,
        TopicRecord(name="orders", topic_id=ORDERS),
        partition(ORDERS, 0, 1, (1, 2)),
        partition(ORDERS, 1, 2, (2, 1)),
        codec=CompressionCodec.LZ4,
    )
    log.records(3000, PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=2, isr=(2,)))
    log.records(
        4000,
        BeginTransactionRecord(name="half"),
        TopicRecord(name="aborted", topic_id=ABORTED),
        partition(ABORTED, 0, 1, (1,)),
        PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=-1),
    )
    log.records(4100, AbortTransactionRecord(reason="Controller failover"))
    log.records(
        5000,
        ConfigRecord(resource_type=4, resource_name="1", name="ssl.key.password", value="hunter2"),
        UserScramCredentialRecord(
            name="alice",
            mechanism=1,
            salt=b"salt",
            stored_key=b"stored",
            server_key=b"server",
            iterations=4096,
        ),
    )
    log.records(
        6000,
        BeginTransactionRecord(name="whole"),
        TopicRecord(name="committed", topic_id=COMMITTED),
        partition(COMMITTED, 0, 1, (1,)),
        EndTransactionRecord(),
    )
    return log.values(7000, UNKNOWN_KEY, UNKNOWN_VERSION, UNKNOWN_SCRAM_VERSION)


def second_segment() -> LogBuilder:
    """Offsets 23 to 28, epoch 2: an unclean election, a removed topic, a lost broker."""
    log = LogBuilder(next_offset=23).leader(8000, 2, 2, 3, epoch=2)
    log.records(8100, PartitionChangeRecord(partition_id=0, topic_id=ORDERS, leader=1, isr=(1,)))
    log.records(9000, RemoveTopicRecord(topic_id=ORDERS))
    log.records(9100, FenceBrokerRecord(id=1, epoch=1), UnregisterBrokerRecord(broker_id=2, broker_epoch=2))
    return log.records(9200, NoOpRecord())


def write_sample(folder: Path, *, torn: bool = True) -> Path:
    """A metadata folder with both segments, and half a batch at their end if `torn`."""
    log_folder = folder / "__cluster_metadata-0"
    log_folder.mkdir(parents=True)
    second = second_segment()
    data = bytes(second.data)
    if torn:
        tail = LogBuilder(next_offset=second.next_offset, epoch=2).records(9300, NoOpRecord())
        data += bytes(tail.data[:40])
    (log_folder / "00000000000000000000.log").write_bytes(first_segment().data)
    (log_folder / "00000000000000000023.log").write_bytes(data)
    return folder


def write_trimmed_sample(folder: Path) -> Path:
    """A metadata folder whose log begins at offset 100, with the snapshot that stands in for what came before."""
    log_folder = folder / "__cluster_metadata-0"
    log_folder.mkdir(parents=True)
    snapshot_id = SnapshotId(100, 3)
    writer = SnapshotWriter(snapshot_id, timestamp_ms=99_999, last_contained_log_timestamp_ms=50_000)
    state = (broker(1, 1), TopicRecord(name="older", topic_id=OLDER), partition(OLDER, 0, 1, (1, 2)))
    (log_folder / snapshot_id.file_name).write_bytes(b"".join(writer.write(map(encode_record, state))))
    log = LogBuilder(next_offset=100, epoch=3).records(60_000, NoOpRecord())
    log.records(61_000, PartitionChangeRecord(partition_id=0, topic_id=OLDER, isr=(1,)))
    (log_folder / "00000000000000000100.log").write_bytes(log.data)
    return folder
