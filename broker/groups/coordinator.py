"""The groups of this broker: a shard for each partition of `__consumer_offsets` that it leads (rules G1.17 to G1.30).

Sans-IO. The adapter passes on what happened to the partitions, has shards loaded part by part, and calls `expire` at
`next_deadline_ms`. A request for a group finds its shard by the group's id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, Never
from uuid import UUID

from kquorum.broker.coordinators.loading import ShardState
from kquorum.broker.coordinators.partitioning import OFFSETS_TOPIC, partition_of
from kquorum.broker.data_plane import HostedPartitions, NoPartitions
from kquorum.broker.group_figures import GroupCounters, GroupFigures
from kquorum.broker.groups.settings import ConsumerTimings, GroupSettings
from kquorum.broker.groups.shard import GroupShard
from kquorum.broker.groups.topic_metadata import TopicMetadata
from kquorum.broker.replica.partition import Partition, TopicPartition, Wake
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.messages.error_codes import ErrorCode

_UNKNOWN: Final = 0


class GroupCoordinator:
    def __init__(
        self,
        partitions: HostedPartitions,
        settings: Callable[[], GroupSettings],
        new_id: Callable[[], UUID],
        default_partitions: Callable[[], int],
        timings: Callable[[MetadataImage, str], ConsumerTimings],
    ) -> None:
        """`default_partitions` of the topic, as long as it does not exist; `timings` of a consumer group by its id."""
        self._partitions = partitions
        self._settings = settings
        self._new_id = new_id
        self._default_partitions = default_partitions
        self._count = _UNKNOWN
        self._is_closed = False
        self._timings = timings
        self.topics = TopicMetadata()
        self.counters = GroupCounters()
        self.shards: dict[int, GroupShard] = {}

    @property
    def settings(self) -> GroupSettings:
        return self._settings()

    # Which partition

    def partition_of(self, group_id: str) -> int:
        return partition_of(group_id, self._count or self._default_partitions())

    def shard_of(self, group_id: str) -> GroupShard | ErrorCode:
        """The shard that serves the group, or the error for the client."""
        shard = self.shards.get(self.partition_of(group_id))
        if shard is None:
            return ErrorCode.not_coordinator
        return shard if shard.state is ShardState.ACTIVE else shard.refusal

    def by_shard(
        self, group_ids: Iterable[str]
    ) -> tuple[Mapping[int, Sequence[str]], Mapping[str, ErrorCode]]:
        """The groups of each shard, each once; and those that none here serves, with the reason."""
        served: dict[int, list[str]] = {}
        refused: dict[str, ErrorCode] = {}
        for group_id in dict.fromkeys(group_ids):
            shard = self.shard_of(group_id)
            if isinstance(shard, ErrorCode):
                refused[group_id] = shard
            else:
                served.setdefault(self.partition_of(group_id), []).append(group_id)
        return served, refused

    # What happens to the partitions

    def handle_woken(self, now_ms: int, woken: Mapping[TopicPartition, Wake]) -> None:  # noqa: ARG002 - the port's
        for topic_partition, why in woken.items():
            if topic_partition.topic != OFFSETS_TOPIC:
                continue
            if why & Wake.ROLE:
                self._take_role(topic_partition)
            shard = self.shards.get(topic_partition.partition)
            if shard is not None and why & Wake.HIGH_WATERMARK:
                shard.advance()

    def _take_role(self, topic_partition: TopicPartition) -> None:
        """A leader that keeps its office in a new epoch keeps its groups (rule G1.18)."""
        index = topic_partition.partition
        partition = self._partitions.online(topic_partition)
        shard = self.shards.get(index)
        leads = partition is not None and partition.is_leader
        if shard is not None and (
            not leads or shard.partition is not partition or shard.state is ShardState.FAILED
        ):
            del self.shards[index]
            shard.close()
            shard = None
        if not leads or self._is_closed:
            return
        assert partition is not None
        if shard is None:
            self.shards[index] = GroupShard(
                partition, self._settings, self._new_id, self.topics, self._timings_of, self.counters
            )
        else:
            shard.leader_epoch = partition.leader_epoch

    def _timings_of(self, group_id: str) -> ConsumerTimings:
        return self._timings(self.topics.image, group_id)

    def begin(self, image: MetadataImage) -> None:
        """Before the first partition is led."""
        self.topics.begin(image)
        self._learn_count(image)

    def _learn_count(self, image: MetadataImage) -> None:
        """The number of partitions counts as it was when it was first seen: another would move the groups."""
        if self._count == _UNKNOWN:
            topic = image.topics.by_name.get(OFFSETS_TOPIC)
            if topic is not None:
                self._count = len(topic.partitions.ids)

    def handle_image(self, now_ms: int, delta: MetadataDelta, image: MetadataImage) -> None:
        self._forget_deleted(now_ms, delta)
        changed = self.topics.change(delta, image)
        if changed:
            for shard in self.shards.values():
                shard.topics_changed(changed)
        self._learn_count(image)

    def _forget_deleted(self, now_ms: int, delta: MetadataDelta) -> None:
        deleted = delta.deleted_topic_ids
        if not deleted:
            return
        before: MetadataImage = delta.image
        names = {
            before.topics.by_id[topic_id].name for topic_id in deleted if topic_id in before.topics.by_id
        }
        if OFFSETS_TOPIC in names:
            self._count = _UNKNOWN
        self.forget_topics(now_ms, names)

    def forget_topics(self, now_ms: int, names: Collection[str]) -> None:
        for shard in self.active():
            shard.forget_topics(now_ms, names)

    def active(self) -> list[GroupShard]:
        return [shard for shard in self.shards.values() if shard.state is ShardState.ACTIVE]

    @property
    def is_loading(self) -> bool:
        """Whether a shard loads, or resolves regular expressions."""
        return any(shard.has_work for shard in self.shards.values())

    def load_some(self, now_ms: int) -> bool:
        """A part of what takes long, of the first shard that has such work; whether there is more."""
        for shard in self.shards.values():
            if shard.has_work:
                shard.work_some(now_ms)
                break
        return self.is_loading

    def marker_written(
        self, partition: Partition, producer_id: int, record_offset: int, *, is_commit: bool
    ) -> None:
        """A transaction ended in a partition: its offsets count, or are gone."""
        topic_partition = partition.topic_partition
        shard = self.shards.get(topic_partition.partition)
        if topic_partition.topic != OFFSETS_TOPIC or shard is None or shard.partition is not partition:
            return
        if shard.state is ShardState.ACTIVE:
            shard.end_transaction(producer_id, record_offset, is_commit=is_commit)
            shard.advance()

    def figures(self) -> GroupFigures:
        shards = self.active()
        return GroupFigures(
            counters=self.counters,
            classic=Counter(group.state.value for shard in shards for group in shard.groups.values()),
            consumer=Counter(group.state.value for shard in shards for group in shard.committed.all.values()),
            offsets=sum(shard.offsets.count for shard in shards),
            partitions=Counter(shard.state.name.lower() for shard in self.shards.values()),
        )

    # Time

    def expire(self, now_ms: int) -> None:
        for shard in self.active():
            shard.expire(now_ms)

    def next_deadline_ms(self) -> int | None:
        deadlines = (shard.next_deadline_ms() for shard in self.shards.values())
        return min((each for each in deadlines if each is not None), default=None)

    def close(self) -> None:
        """The broker stops: each request that waits gets an answer."""
        self._is_closed = True
        shards, self.shards = self.shards, {}
        for shard in shards.values():
            shard.close()


def groups_without_logs() -> GroupCoordinator:
    """Of a broker that is made without data logs: each group is another broker's."""
    return GroupCoordinator(NoPartitions(), _no_shard, _no_shard, lambda: 1, _no_timings)


def _no_timings(_image: MetadataImage, _group_id: str) -> Never:
    raise AssertionError("there is no shard without partitions")


def _no_shard() -> Never:
    raise AssertionError("there is no shard without partitions")
