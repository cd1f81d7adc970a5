"""Kafka keeps listeners and features of a node in hash maps: its snapshots have them in another order than its log."""

from uuid import UUID

from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.state_hash.image_hash import hash_of_image
from kquorum.wire.metadata_records.cluster import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
)

DIRECTORIES = (UUID(int=1 << 99), UUID(int=1 << 98))
LISTENERS = tuple(
    BrokerEndpoint(name=name, host="h", port=port, security_protocol=0)
    for name, port in (("PLAINTEXT", 9092), ("EXTERNAL", 9093))
)
FEATURES = tuple(
    BrokerFeature(name=name, min_supported_version=0, max_supported_version=1)
    for name in ("group.version", "eligible.leader.replicas.version")
)


def image_of(*, order: int) -> MetadataImage:
    record = RegisterBrokerRecord(
        broker_id=1,
        incarnation_id=UUID(int=7),
        broker_epoch=5,
        end_points=LISTENERS[::order],
        features=FEATURES[::order],
        rack=None,
        fenced=True,
        log_dirs=DIRECTORIES[::order],
    )
    delta = MetadataDelta(MetadataImage.empty())
    delta.replay(record, 5)
    return delta.apply(MetadataImage.empty().provenance)


def test_the_same_registration_in_another_order_is_the_same_state() -> None:
    one, other = image_of(order=1), image_of(order=-1)
    assert one.cluster.brokers[1] == other.cluster.brokers[1]
    assert hash_of_image(one) == hash_of_image(other)
