"""The keys that this broker coordinates: a shard for each partition of a coordinator's topic that it leads (rules G1.17
to G1.30).

Sans-IO. The adapter passes on what happened to the partitions, has shards loaded part by part, and calls `expire` at
`next_deadline_ms`. A request finds its shard by its key: a group's id, a transactional id.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, Final, Generic, TypeVar

from kquorum.broker.coordinators.loading import ShardState
from kquorum.broker.coordinators.partitioning import partition_of
from kquorum.broker.coordinators.shard import CoordinatorShard
from kquorum.broker.coordinators.timers import Earliest
from kquorum.broker.data_plane import HostedPartitions
from kquorum.broker.replica.partition import Partition, TopicPartition, Wake
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.messages.error_codes import ErrorCode

Shard = TypeVar("Shard", bound=CoordinatorShard)
_UNKNOWN: Final = 0


class Coordinator(ABC, Generic[Shard]):
    TOPIC: ClassVar[str]

    def __init__(self, partitions: HostedPartitions, default_partitions: Callable[[], int]) -> None:
        """`default_partitions` of the topic, as long as it does not exist."""
        self.shards: dict[int, Shard] = {}
        self.earliest = Earliest()
        self._partitions = partitions
        self._default_partitions = default_partitions
        self._count = _UNKNOWN
        self._is_closed = False

    # Which partition

    def partition_of(self, key: str) -> int:
        return partition_of(key, self._count or self._default_partitions())

    def shard_of(self, key: str) -> Shard | ErrorCode:
        """The shard that serves the key, or the error for the client."""
        return self.shard_at(self.partition_of(key))

    def shard_at(self, index: int) -> Shard | ErrorCode:
        """The shard of the partition, if it serves its keys; or the error for the client."""
        shard = self.shards.get(index)
        if shard is None:
            return ErrorCode.not_coordinator
        return shard if shard.state is ShardState.ACTIVE else shard.refusal

    def active(self) -> list[Shard]:
        return [shard for shard in self.shards.values() if shard.state is ShardState.ACTIVE]

    def learn_count(self, image: MetadataImage, delta: MetadataDelta | None = None) -> None:
        """The number of partitions counts as it was when it was first seen: another would move the keys. It is
        learned again after the topic was deleted."""
        if delta is not None:
            before = delta.image.topics.by_name.get(self.TOPIC)
            if before is not None and before.id in delta.deleted_topic_ids:
                self._count = _UNKNOWN
        if self._count == _UNKNOWN:
            topic = image.topics.by_name.get(self.TOPIC)
            if topic is not None:
                self._count = len(topic.partitions.ids)

    # What happens to the partitions

    def handle_woken(self, now_ms: int, woken: Mapping[TopicPartition, Wake]) -> None:
        for topic_partition, why in woken.items():
            if topic_partition.topic != self.TOPIC:
                continue
            if why & Wake.ROLE:
                self._take_role(topic_partition)
            shard = self.shards.get(topic_partition.partition)
            if shard is not None and why & Wake.HIGH_WATERMARK:
                shard.advance(now_ms)

    def _take_role(self, topic_partition: TopicPartition) -> None:
        """A leader that keeps its office in a new epoch keeps its state (rule G1.18)."""
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
        if partition is None or not leads or self._is_closed:
            return
        if shard is None:
            self.shards[index] = self.new_shard(partition)
        else:
            shard.leader_epoch = partition.leader_epoch

    @abstractmethod
    def new_shard(self, partition: Partition) -> Shard:
        """One that is to be loaded."""
        ...

    # Work that takes long

    @property
    def is_loading(self) -> bool:
        """Whether a shard has work that takes long: to load, for one."""
        return any(shard.has_work for shard in self.shards.values())

    def load_some(self, now_ms: int) -> bool:
        """A part of such work, of the first shard that has some; whether there is more."""
        for shard in self.shards.values():
            if shard.has_work:
                shard.work_some(now_ms)
                break
        return self.is_loading

    # Time

    def expire(self, now_ms: int) -> None:
        for shard in self.active():
            shard.expire(now_ms)
        deadlines = (shard.next_deadline_ms() for shard in self.shards.values())
        self.earliest.ms = min((each for each in deadlines if each is not None), default=None)

    def next_deadline_ms(self) -> int | None:
        """It may be too early: the adapter asks after each turn, and the shards are many."""
        return self.earliest.ms

    def close(self) -> None:
        """The broker stops: each request that waits gets an answer."""
        self._is_closed = True
        shards, self.shards = self.shards, {}
        for shard in shards.values():
            shard.close()
