"""A source with brokers and a topic, and a change to it."""

from typing import Any

from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from tests.support.grpc_source import FakeSource, partition, register_broker, topic, topic_id


def filled_source() -> FakeSource:
    """Brokers 1 and 2 are replicas of orders-0, 2 and 3 of others-0."""
    source = FakeSource()
    source.commit(register_broker(1), register_broker(2), register_broker(3))
    source.commit(
        topic("orders", 1), partition(1), topic("others", 2), partition(2, leader=2, replicas=(2, 3))
    )
    return source


def change(number: int, **changes: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=topic_id(number), **changes)
