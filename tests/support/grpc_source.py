"""A node reduced to what the gRPC services read: a committed log in memory and the image it makes."""

from collections.abc import Callable, Sequence
from uuid import UUID

from kquorum.metadata.grpc.source import ImageCallback, NoSuchSnapshot, NotTheLeader
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.wire.control_records import ControlRecord, encode_control_record
from kquorum.wire.log_batch import LogBatch, build_batch
from kquorum.wire.metadata_records.cluster import BrokerEndpoint, RegisterBrokerRecord
from kquorum.wire.metadata_records.topics import PartitionRecord, TopicRecord
from kquorum.wire.record_frame import encode_record
from kquorum.wire.schema import MetadataRecord

TIMESTAMP_MS = 1_700_000_000_000
EPOCH = 3


class FakeSource:
    """`commit` appends, commits and tells the subscribers, in one turn; `append` only appends."""

    node_id = 7
    cluster_id = "kquorum-test-cluster-00"

    def __init__(self) -> None:
        self.batches: list[LogBatch] = []
        self.image = MetadataImage.empty()
        self.committed = 0
        self.start = 0
        self.ready = True
        self.silent_ms: int | None = 20
        self.callbacks: list[ImageCallback] = []
        self.reads: list[int] = []
        self.snapshot_files: dict[str, bytes] = {}
        self.is_leader = True
        self.confirmations = 0
        self.proposed_image: MetadataImage | None = None

    def committed_image(self) -> MetadataImage:
        return self.image

    def high_watermark(self) -> int:
        return self.committed

    def leader(self) -> tuple[int, int] | None:
        return (2, EPOCH) if self.ready else None

    def log_start_offset(self) -> int:
        return self.start

    def is_ready(self) -> bool:
        return self.ready

    def ms_since_commit(self) -> int | None:
        return self.silent_ms

    def is_cut_off(self) -> bool:
        return self.silent_ms is not None and self.silent_ms >= 5_000

    min_insync_replicas = 2

    def local_image(self) -> MetadataImage:
        return self.proposed_image or self.image

    def log_end_offset(self) -> int:
        return self.end

    async def read_linearizable(self) -> int:
        if not self.is_leader:
            raise NotTheLeader("node 7 does not lead; the leader is node 2 at 127.0.0.1:9292")
        self.confirmations += 1
        return self.committed

    def read_log(self, start_offset: int, max_bytes: int, end_offset: int | None = None) -> bytes:
        assert start_offset >= self.start
        self.reads.append(start_offset)
        data = b""
        for batch in self.batches:
            is_wanted = batch.last_offset >= start_offset and (
                end_offset is None or batch.base_offset < end_offset
            )
            if is_wanted and (not data or len(data) + len(batch.data) <= max_bytes):
                data += batch.data
        return data

    async def snapshots(self) -> tuple[str, ...]:
        return tuple(self.snapshot_files)

    async def read_snapshot(self, name: str, position: int, max_bytes: int) -> tuple[bytes, int]:
        if name not in self.snapshot_files:
            raise NoSuchSnapshot(f"node {self.node_id} has no snapshot {name}, any more at least")
        data = self.snapshot_files[name]
        return data[position : position + max_bytes], len(data)

    def subscribe(self, callback: ImageCallback) -> Callable[[], None]:
        self.callbacks.append(callback)
        return lambda: self.callbacks.remove(callback)

    @property
    def end(self) -> int:
        return self.batches[-1].next_offset if self.batches else 0

    def append(self, *records: MetadataRecord | bytes) -> LogBatch:
        values = [record if isinstance(record, bytes) else encode_record(record) for record in records]
        return self._append([(None, value) for value in values])

    def append_control(self, record: ControlRecord) -> LogBatch:
        return self._append([encode_control_record(record)], control=True)

    def commit(self, *records: MetadataRecord | bytes) -> None:
        self.append(*records)
        self.commit_all()
        delta = MetadataDelta(self.image)
        for record in records:
            if not isinstance(record, bytes):
                delta.replay(record, self.end - 1)
        provenance = Provenance(
            last_contained_offset=self.end - 1, last_contained_epoch=EPOCH, timestamp_ms=TIMESTAMP_MS
        )
        self.image = delta.apply(provenance)
        for callback in tuple(self.callbacks):
            callback(delta, self.image)

    def commit_all(self) -> None:
        """Move the high watermark without telling anyone, as for records that change no image."""
        self.committed = self.end

    def _append(
        self, pairs: Sequence[tuple[bytes | None, bytes | None]], *, control: bool = False
    ) -> LogBatch:
        batch = build_batch(self.end, EPOCH, TIMESTAMP_MS + self.end, pairs, control=control)
        self.batches.append(batch)
        return batch


def topic_id(number: int) -> UUID:
    return UUID(int=1000 + number)


def register_broker(broker_id: int, *, epoch: int = 0, fenced: bool = False) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=UUID(int=broker_id + 1),
        broker_epoch=epoch,
        end_points=(BrokerEndpoint(name="PLAINTEXT", host="localhost", port=9092, security_protocol=0),),
        fenced=fenced,
        log_dirs=(UUID(int=50 + broker_id),),
    )


def topic(name: str, number: int) -> TopicRecord:
    return TopicRecord(name=name, topic_id=topic_id(number))


def partition(
    number: int, partition_id: int = 0, *, leader: int = 1, replicas: tuple[int, ...] = (1, 2)
) -> PartitionRecord:
    return PartitionRecord(
        partition_id=partition_id,
        topic_id=topic_id(number),
        replicas=replicas,
        isr=replicas,
        leader=leader,
        leader_epoch=0,
        partition_epoch=0,
    )
