"""Brings replicas back into the ISR of the partitions that this broker leads (AlterPartition, KIP-497).

In Kafka a leader adds a follower when its log has caught up. These brokers hold no data: there is nothing to catch up
with but the metadata, and the controller unfences a broker only when it has applied that. So every replica whose
broker is registered, unfenced and not leaving belongs into the ISR, and this manager asks for what is missing.
It never asks to shrink an ISR: that, too, follows from a broker's state alone, and the controller does it by itself.
Where it has just done so it is not asked for the contrary at once: of a broker with many partitions it cleans up first
and tells only then that the broker is fenced.

Sans-IO: its runner passes in each image, asks for the request that is due, and passes in the outcome. One request is
under way at a time. It asks for a partition again only after an image with a newer partition epoch, or a pause.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from kquorum.broker.isr_columns import active_brokers, incomplete, shrunk
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.partition_state import PartitionState
from kquorum.metadata.image.partitions import EMPTY_PARTITIONS, Column
from kquorum.metadata.image.topics import TopicImage
from kquorum.metadata.isr_changes import changes_of_isr
from kquorum.wire.message_schema import ByVersion
from kquorum.wire.messages.alter_partition import (
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
)
from kquorum.wire.messages.error_codes import ErrorCode

RETRY_BACKOFF_MS = 100
RETRY_BACKOFF_MAX_MS = 5_000
MAX_PARTITIONS_PER_REQUEST = 500
SHRINK_PAUSE_MS = 15_000


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
        self._wishes: dict[UUID, dict[int, _Wish]] = {}
        self._in_flight: tuple[PartitionKey, ...] = ()

    def handle_image(self, now_ms: int, delta: MetadataDelta, image: MetadataImage) -> None:
        """Look at what changed; at everything we lead when a broker became active, for it may be a replica anywhere."""
        before, self._image = self._image, image
        for topic_id in delta.deleted_topic_ids:
            self._wishes.pop(topic_id, None)
        former = active_brokers(before.cluster)
        active = former if before.cluster.brokers is image.cluster.brokers else active_brokers(image.cluster)
        is_everywhere = not active <= former
        topics = list(_all_topics(image) if is_everywhere else _changed_topics(image, delta))
        lacking = incomplete(topics, self._broker_id, active)
        for (topic, ids), found in zip(topics, lacking, strict=True):
            if topic.id in self._wishes:
                self._forget_others(topic, ids, found)
            if len(found):
                known = None if is_everywhere else before.topics.by_id.get(topic.id)
                table = EMPTY_PARTITIONS if known is None else known.partitions
                self._wish_for(now_ms, topic, found, shrunk(table, topic.partitions, found))
        if former - active:
            self._review_wishes(active)

    def next_deadline_ms(self) -> int | None:
        if self._in_flight:
            return None
        return min((wish.due_ms for _, wish in self._all_wishes()), default=None)

    def maybe_next_request(self, now_ms: int, broker_epoch: int) -> ByVersion[AlterPartitionResponse] | None:
        """An AlterPartitionRequest, which then counts as under way; None when nothing is due."""
        if self._in_flight or broker_epoch < 0:
            return None
        due = ((key, wish) for key, wish in self._all_wishes() if wish.due_ms <= now_ms)
        topics: dict[UUID, list[RequestPartitionData]] = {}
        asked = []
        for key, wish in list(islice(due, MAX_PARTITIONS_PER_REQUEST)):
            state = self._state(key)
            missing = () if state is None else self._missing(state)
            if state is None or not missing:
                self._forget(key)
                continue
            wish.asked_epoch = state.partition_epoch
            topics.setdefault(key.topic_id, []).append(self._change(key, state, missing))
            asked.append(key)
        self._in_flight = tuple(asked)
        return None if not asked else changes_of_isr(self._broker_id, broker_epoch, topics)

    def handle_reply(self, now_ms: int, response: AlterPartitionResponse) -> None:
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

    def _all_wishes(self) -> Iterator[tuple[PartitionKey, _Wish]]:
        for topic_id, wishes in self._wishes.items():
            for index, wish in wishes.items():
                yield PartitionKey(topic_id, index), wish

    def _wish_for(self, now_ms: int, topic: TopicImage, ids: Column, just_shrunk: frozenset[int]) -> None:
        wishes = self._wishes.setdefault(topic.id, {})
        epochs = topic.partitions.partition_epochs[topic.partitions.ids.searchsorted(ids)]
        for index, partition_epoch in zip(ids.tolist(), epochs.tolist(), strict=True):
            wish = wishes.get(index)
            if wish is None or partition_epoch > wish.asked_epoch:
                wishes[index] = _Wish(now_ms + (SHRINK_PAUSE_MS if index in just_shrunk else 0))

    def _review_wishes(self, active: Collection[int]) -> None:
        """Drops wishes whose replica may no longer join the ISR."""
        by_id = self._image.topics.by_id
        topics: list[tuple[TopicImage, Column | None]] = [(by_id[each], None) for each in self._wishes]
        for (topic, _), found in zip(topics, incomplete(topics, self._broker_id, active), strict=True):
            self._forget_others(topic, None, found)

    def _forget_others(self, topic: TopicImage, looked_at: Column | None, found: Column) -> None:
        """Of the partitions that were looked at, those that lack nothing (any more)."""
        wishes = self._wishes[topic.id]
        lacking = set(found.tolist())
        known = wishes.keys() if looked_at is None else wishes.keys() & set(looked_at.tolist())
        for index in known - lacking:
            self._forget(PartitionKey(topic.id, index))

    def _forget(self, key: PartitionKey) -> None:
        wishes = self._wishes[key.topic_id]
        del wishes[key.partition_index]
        if not wishes:
            del self._wishes[key.topic_id]

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
    ) -> RequestPartitionData:
        """With broker epochs, so that the controller can refuse a replica that has restarted since."""
        brokers = self._image.cluster.brokers
        members = (*state.isr, *missing)
        return RequestPartitionData(
            partition_index=key.partition_index,
            leader_epoch=state.leader_epoch,
            new_isr_with_epochs=tuple(
                BrokerState(broker_id=member, broker_epoch=brokers[member].epoch if member in brokers else -1)
                for member in members
            ),
            leader_recovery_state=state.leader_recovery_state,
            partition_epoch=state.partition_epoch,
        )

    def _back_off(
        self, now_ms: int, asked: Iterable[PartitionKey], succeeded: set[PartitionKey] | None = None
    ) -> None:
        for key in asked:
            wish = self._wishes.get(key.topic_id, {}).get(key.partition_index)
            if wish is None:
                continue
            if succeeded and key in succeeded:
                wish.due_ms = now_ms + RETRY_BACKOFF_MAX_MS
                continue
            wish.due_ms = now_ms + min(RETRY_BACKOFF_MS << min(wish.failures, 10), RETRY_BACKOFF_MAX_MS)
            wish.failures += 1


def _all_topics(image: MetadataImage) -> Iterator[tuple[TopicImage, Column | None]]:
    for topic in image.topics.by_id.values():
        yield topic, None


def _changed_topics(image: MetadataImage, delta: MetadataDelta) -> Iterator[tuple[TopicImage, Column | None]]:
    """With the ids of the partitions that changed, ascending."""
    for topic_id, ids in delta.topics.settled_ids():
        topic = image.topics.by_id.get(topic_id)
        if topic is not None:
            yield topic, ids
