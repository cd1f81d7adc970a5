"""Other brokers, as transactions see them: who leads a partition, and what waits to be sent to each."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, Protocol

from kquorum.broker.replica.partition import TopicPartition
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.message_schema import Request

NOWHERE: Final = -1
"""The partition has no leader that is alive."""
RETRY_BACKOFF_MS: Final = 50


class PeerQueue(Protocol):
    """What is to be sent to other brokers: at most one request is under way to each. Sans-IO: an adapter asks for the
    request that is due, and passes in its outcome."""

    def destinations(self, now_ms: int) -> Collection[int]:
        """The brokers that have a request due."""
        ...

    def next_request(self, now_ms: int, broker_id: int) -> Request[Any] | None: ...

    def handle_reply(self, now_ms: int, broker_id: int, response: Any) -> None: ...

    def handle_failure(self, now_ms: int, broker_id: int, *, is_unknown_there: bool) -> None:
        """No answer came; or the broker does not know the request, and no other attempt would change that."""
        ...

    def next_deadline_ms(self) -> int | None: ...


def leader_of(image: MetadataImage, partition: TopicPartition) -> int | None:
    """The broker that leads it, NOWHERE, or None where there is no such partition."""
    topic = image.topics.by_name.get(partition.topic)
    state = None if topic is None else topic.partitions.get(partition.partition)
    if state is None:
        return None
    broker = image.cluster.brokers.get(state.leader)
    return NOWHERE if broker is None or broker.fenced else state.leader
