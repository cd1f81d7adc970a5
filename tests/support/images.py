"""Images for tests, made of records as a log would make them."""

from uuid import UUID

from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage, Provenance
from kquorum.wire.metadata_records.cluster import (
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
)
from kquorum.wire.metadata_records.topics import PartitionChangeRecord, PartitionRecord, TopicRecord
from kquorum.wire.schema import MetadataRecord

LISTENER = "PLAINTEXT"


def topic_id(number: int) -> UUID:
    return UUID(int=(1 << 80) + number)


def log_dir(broker_id: int) -> UUID:
    return UUID(int=(1 << 90) + broker_id)


def broker_record(
    broker_id: int,
    *,
    epoch: int | None = None,
    fenced: bool = False,
    listener: str = LISTENER,
    rack: str | None = None,
) -> RegisterBrokerRecord:
    """A broker at host `b<id>`, port 9000 + id, with one online directory."""
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=UUID(int=(1 << 100) + broker_id),
        broker_epoch=broker_id * 10 if epoch is None else epoch,
        end_points=(
            BrokerEndpoint(name=listener, host=f"b{broker_id}", port=9000 + broker_id, security_protocol=0),
        ),
        rack=rack or f"rack-{broker_id}",
        fenced=fenced,
        log_dirs=(log_dir(broker_id),),
    )


def topic_records(number: int, name: str, *partitions: PartitionRecord) -> tuple[MetadataRecord, ...]:
    return (TopicRecord(name=name, topic_id=topic_id(number)), *partitions)


def partition_record(
    number: int,
    index: int,
    replicas: tuple[int, ...],
    *,
    isr: tuple[int, ...] | None = None,
    leader: int = -2,
) -> PartitionRecord:
    """The leader is the first replica unless another is named; directories are those of the brokers."""
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id(number),
        replicas=replicas,
        isr=replicas if isr is None else isr,
        leader=replicas[0] if leader == -2 else leader,
        leader_epoch=3,
        partition_epoch=5,
        directories=tuple(log_dir(replica) for replica in replicas),
    )


def isr_change(number: int, index: int, isr: tuple[int, ...]) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=index, topic_id=topic_id(number), isr=isr)


def fencing(broker_id: int, *, fenced: bool, epoch: int | None = None) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=broker_id,
        broker_epoch=broker_id * 10 if epoch is None else epoch,
        fenced=1 if fenced else -1,
    )


def after(image: MetadataImage, *records: MetadataRecord) -> tuple[MetadataDelta, MetadataImage]:
    """The delta of these records on `image`, and what it leads to."""
    delta = MetadataDelta(image)
    first = image.end_offset
    for offset, record in enumerate(records, first):
        delta.replay(record, offset)
    last = Provenance(
        last_contained_offset=first + len(records) - 1, last_contained_epoch=1, timestamp_ms=1000
    )
    return delta, delta.apply(last)


def image_of(*records: MetadataRecord) -> MetadataImage:
    return after(MetadataImage.empty(), *records)[1]
