"""Brings replicas back into the ISR of the partitions that this broker leads (AlterPartition, KIP-497).

In Kafka a leader adds a follower when its log has caught up. These brokers hold no data: there is nothing to catch up
with but the metadata, and the controller unfences a broker only when it has applied that. So every replica whose
broker is registered, unfenced and not leaving belongs into the ISR, and this manager asks for what is missing.
It never asks to shrink an ISR: that, too, follows from a broker's state alone, and the controller does it by itself.

Sans-IO: told of images, asked for the request that is due, told of its outcome. One request is under way at a time; a
partition which was asked for is not asked for again until an image with a newer partition epoch, or a pause, has come.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode

from metadata.image.delta import MetadataDelta
from metadata.image.image import MetadataImage
from metadata.image.partition_state import PartitionState

RETRY_BACKOFF_MS = 100
RETRY_BACKOFF_MAX_MS = 5_000
MAX_PARTITIONS_PER_REQUEST = 1_000


class PartitionKey(NamedTuple):
    topic_id: UUID
    partition_index: int


@dataclass(slots=True)
class _Wish:
    """A partition whose ISR may lack a replica.

    Invariant: `asked_epoch` is the partition epoch of the last request, -1 before any.
    """

    due_ms: int
    asked_epoch: int = -1
    failures: int = 0


class IsrManager:
    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self._image = MetadataImage.empty()
        self._wishes: dict[PartitionKey, _Wish] = {}
        self._in_flight: tuple[PartitionKey, ...] = ()

    @property
    def wish_count(self) -> int:
        return len(self._wishes)

    def handle_image(self, now_ms: int, delta: MetadataDelta, image: MetadataImage) -> None:
        """Look at what changed; at everything we lead when a broker became active, for it may be a replica anywhere."""
        before = self._image
        self._image = image
        if self._has_new_active_broker(before, delta):
            keys = _led_by(image, self._broker_id)
        else:
            keys = (
                PartitionKey(topic_id, index)
                for topic_id, indexes in delta.changed_topics.items()
                for index in indexes
            )
        for key in keys:
            self._review(now_ms, key)
        for topic_id in delta.deleted_topic_ids:
            self._forget_topic(topic_id)

    def next_deadline_ms(self) -> int | None:
        if self._in_flight:
            return None
        return min((wish.due_ms for wish in self._wishes.values()), default=None)

    def maybe_next_request(self, now_ms: int, broker_epoch: int) -> Mapping[str, object] | None:
        """Values of an AlterPartitionRequest, which then counts as under way; None when nothing is due."""
        if self._in_flight or broker_epoch < 0:
            return None
        due = [key for key, wish in self._wishes.items() if wish.due_ms <= now_ms][
            :MAX_PARTITIONS_PER_REQUEST
        ]
        topics: dict[UUID, list[Mapping[str, object]]] = {}
        asked = []
        for key in due:
            state = self._state(key)
            missing = () if state is None else self._missing(state)
            if state is None or not missing:
                del self._wishes[key]
                continue
            self._wishes[key].asked_epoch = state.partition_epoch
            topics.setdefault(key.topic_id, []).append(self._change(key, state, missing))
            asked.append(key)
        self._in_flight = tuple(asked)
        return None if not asked else _request(self._broker_id, broker_epoch, topics)

    def handle_reply(self, now_ms: int, response: Any) -> None:
        """`response` is an AlterPartitionResponse of version 2 or 3."""
        asked, self._in_flight = self._in_flight, ()
        if response.error_code is not ErrorCode.none:
            self._back_off(now_ms, asked)
            return
        errors = {
            PartitionKey(topic.topic_id, partition.partition_index): partition.error_code
            for topic in response.topics
            for partition in topic.partitions
        }
        # A change that was made shows in an image soon, which ends the wish; until then it is as good as refused.
        self._back_off(now_ms, asked, succeeded={key for key in asked if errors.get(key) is ErrorCode.none})

    def handle_failure(self, now_ms: int) -> None:
        asked, self._in_flight = self._in_flight, ()
        self._back_off(now_ms, asked)

    def _has_new_active_broker(self, before: MetadataImage, delta: MetadataDelta) -> bool:
        return any(
            broker is not None and broker.is_active and not before.cluster.is_active(broker_id)
            for broker_id, broker in delta.changed_brokers.items()
        )

    def _review(self, now_ms: int, key: PartitionKey) -> None:
        state = self._state(key)
        if state is None or not self._missing(state):
            self._wishes.pop(key, None)
            return
        wish = self._wishes.get(key)
        if wish is None or state.partition_epoch > wish.asked_epoch:
            self._wishes[key] = _Wish(now_ms)

    def _state(self, key: PartitionKey) -> PartitionState | None:
        """The partition as the image has it, if this broker leads it."""
        topic = self._image.topics.by_id.get(key.topic_id)
        state = None if topic is None else topic.partitions.get(key.partition_index)
        return state if state is not None and state.leader == self._broker_id else None

    def _missing(self, state: PartitionState) -> tuple[int, ...]:
        cluster = self._image.cluster
        return tuple(
            replica for replica in state.replicas if replica not in state.isr and cluster.is_active(replica)
        )

    def _change(
        self, key: PartitionKey, state: PartitionState, missing: tuple[int, ...]
    ) -> Mapping[str, object]:
        """In version 3 with broker epochs, so that the controller can refuse a replica that has restarted since."""
        brokers = self._image.cluster.brokers
        members = (*state.isr, *missing)
        return {
            "partition_index": key.partition_index,
            "leader_epoch": state.leader_epoch,
            "new_isr": members,
            "new_isr_with_epochs": [
                {"broker_id": member, "broker_epoch": brokers[member].epoch if member in brokers else -1}
                for member in members
            ],
            "leader_recovery_state": state.leader_recovery_state,
            "partition_epoch": state.partition_epoch,
        }

    def _forget_topic(self, topic_id: UUID) -> None:
        for key in [key for key in self._wishes if key.topic_id == topic_id]:
            del self._wishes[key]

    def _back_off(
        self, now_ms: int, asked: Iterable[PartitionKey], succeeded: set[PartitionKey] | None = None
    ) -> None:
        for key in asked:
            wish = self._wishes.get(key)
            if wish is None:
                continue
            if succeeded and key in succeeded:
                wish.due_ms = now_ms + RETRY_BACKOFF_MAX_MS
                continue
            wish.due_ms = now_ms + min(RETRY_BACKOFF_MS << min(wish.failures, 10), RETRY_BACKOFF_MAX_MS)
            wish.failures += 1


def _led_by(image: MetadataImage, broker_id: int) -> Iterable[PartitionKey]:
    for topic in image.topics.by_id.values():
        for index in topic.partitions.led_by(broker_id).tolist():
            yield PartitionKey(topic.id, index)


def _request(
    broker_id: int, broker_epoch: int, topics: Mapping[UUID, list[Mapping[str, object]]]
) -> Mapping[str, object]:
    return {
        "broker_id": broker_id,
        "broker_epoch": broker_epoch,
        "topics": [{"topic_id": topic_id, "partitions": changes} for topic_id, changes in topics.items()],
    }
