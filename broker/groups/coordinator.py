"""The groups of this broker: what all shards of `__consumer_offsets` share, the topics and the figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Never
from uuid import UUID

from kquorum.broker.coordinators.coordinator import Coordinator
from kquorum.broker.coordinators.loading import ShardState
from kquorum.broker.coordinators.partitioning import OFFSETS_TOPIC
from kquorum.broker.data_plane import HostedPartitions, NoPartitions
from kquorum.broker.group_figures import GroupCounters, GroupFigures
from kquorum.broker.groups.settings import ConsumerTimings, GroupSettings
from kquorum.broker.groups.shard import GroupShard
from kquorum.broker.groups.topic_metadata import TopicMetadata
from kquorum.broker.replica.partition import Partition
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.messages.error_codes import ErrorCode


class GroupCoordinator(Coordinator[GroupShard]):
    TOPIC = OFFSETS_TOPIC

    def __init__(
        self,
        partitions: HostedPartitions,
        settings: Callable[[], GroupSettings],
        new_id: Callable[[], UUID],
        default_partitions: Callable[[], int],
        timings: Callable[[MetadataImage, str], ConsumerTimings],
    ) -> None:
        """`default_partitions` of the topic, as long as it does not exist; `timings` of a consumer group by its id."""
        super().__init__(partitions, default_partitions)
        self._settings = settings
        self._new_id = new_id
        self._timings = timings
        self.topics = TopicMetadata()
        self.counters = GroupCounters()

    @property
    def settings(self) -> GroupSettings:
        return self._settings()

    def by_shard(
        self, group_ids: Iterable[str]
    ) -> tuple[Mapping[GroupShard, Sequence[str]], Mapping[str, ErrorCode]]:
        """The groups of each shard, each once; and those that none here serves, with the reason."""
        served: dict[GroupShard, list[str]] = {}
        refused: dict[str, ErrorCode] = {}
        for group_id in dict.fromkeys(group_ids):
            shard = self.shard_of(group_id)
            if isinstance(shard, ErrorCode):
                refused[group_id] = shard
            else:
                served.setdefault(shard, []).append(group_id)
        return served, refused

    # What happens to the partitions and topics

    def new_shard(self, partition: Partition) -> GroupShard:
        return GroupShard(
            partition,
            self._settings,
            self._new_id,
            self.topics,
            self._timings_of,
            self.counters,
            self.earliest,
        )

    def _timings_of(self, group_id: str) -> ConsumerTimings:
        return self._timings(self.topics.image, group_id)

    def begin(self, image: MetadataImage) -> None:
        """Before the first partition is led."""
        self.topics.begin(image)
        self.learn_count(image)

    def handle_image(self, now_ms: int, delta: MetadataDelta, image: MetadataImage) -> None:
        self._forget_deleted(now_ms, delta)
        changed = self.topics.change(delta, image)
        if changed:
            for shard in self.shards.values():
                shard.topics_changed(changed)
        self.learn_count(image, delta)

    def _forget_deleted(self, now_ms: int, delta: MetadataDelta) -> None:
        deleted = delta.deleted_topic_ids
        if not deleted:
            return
        before: MetadataImage = delta.image
        names = {
            before.topics.by_id[topic_id].name for topic_id in deleted if topic_id in before.topics.by_id
        }
        self.forget_topics(now_ms, names)

    def forget_topics(self, now_ms: int, names: Collection[str]) -> None:
        for shard in self.active():
            shard.forget_topics(now_ms, names)

    def marker_written(
        self, now_ms: int, partition: Partition, producer_id: int, record_offset: int, *, is_commit: bool
    ) -> None:
        """A transaction ended in a partition: its offsets count, or are gone."""
        topic_partition = partition.topic_partition
        shard = self.shards.get(topic_partition.partition)
        if topic_partition.topic != OFFSETS_TOPIC or shard is None or shard.partition is not partition:
            return
        if shard.state is ShardState.ACTIVE:
            shard.end_transaction(producer_id, record_offset, is_commit=is_commit)
            shard.advance(now_ms)

    def figures(self) -> GroupFigures:
        shards = self.active()
        return GroupFigures(
            counters=self.counters,
            classic=Counter(group.state.value for shard in shards for group in shard.groups.values()),
            consumer=Counter(group.state.value for shard in shards for group in shard.committed.all.values()),
            offsets=sum(shard.offsets.count for shard in shards),
            partitions=Counter(shard.state.name.lower() for shard in self.shards.values()),
        )


def groups_without_logs() -> GroupCoordinator:
    """Of a broker that is made without data logs: each group is another broker's."""
    return GroupCoordinator(NoPartitions(), _no_shard, _no_shard, lambda: 1, _no_timings)


def _no_timings(_image: MetadataImage, _group_id: str) -> Never:
    raise AssertionError("there is no shard without partitions")


def _no_shard() -> Never:
    raise AssertionError("there is no shard without partitions")
