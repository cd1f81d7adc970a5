"""The partitions that this broker has a replica of: which it leads, which it follows from where, which are gone.

Sans-IO: each metadata image, `tick` and the answers of the controller come in; what is to be done comes out as the
`outbox` (requests to wake, ISRs to ask for) and as `fetchers`, which an adapter compares with the connections it has.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple, Protocol
from uuid import UUID
from zlib import crc32

import numpy as np

from kquorum.broker.internal_topics import INTERNAL_TOPICS
from kquorum.broker.log.errors import KafkaStorageError, LogError, NoSpaceLeft
from kquorum.broker.log.partition_log import PartitionLog
from kquorum.broker.replica.alter_partitions import AlterPartitions
from kquorum.broker.replica.fetcher import Fetcher, FetcherSettings, ReplicationQuota
from kquorum.broker.replica.full_disk import FullDisk
from kquorum.broker.replica.isr import IsrChange
from kquorum.broker.replica.partition import (
    DEFAULT_LAG_TIME_MAX_MS,
    Outbox,
    Partition,
    PartitionSettings,
    TopicPartition,
)
from kquorum.metadata.image.cluster import ClusterImage, Endpoint
from kquorum.metadata.image.configs import TOPIC
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.directories import is_online
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.partition_state import PartitionState
from kquorum.metadata.image.topics import TopicImage

log = logging.getLogger("broker.replica")

HIGH_WATERMARK_CHECKPOINT_MS: Final = 5_000
OPENED_AT_ONCE: Final = 8
"""How many logs that are not open yet one call opens. Making the files of a log takes some milliseconds, so a topic of
thousands of partitions would keep the broker from its heartbeats."""
DELETED_AT_ONCE: Final = 8
"""How many logs one call sets aside: each waits for the disk."""


class PartitionLogs(Protocol):
    """The logs in this broker's log directories."""

    def begin_opening(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID,
        *,
        directory_id: UUID,
        is_new: bool,
        leader_epoch: int | None,
    ) -> bool:
        """Whether `open` may be called now. If not, the log's files are being made, so that `open` need not wait for
        the disk: `ReplicaManager.log_made` is called when they are, or could not be. A new log begins with
        `leader_epoch`."""
        ...

    def open(
        self, topic_partition: TopicPartition, topic_id: UUID, *, directory_id: UUID, is_new: bool
    ) -> PartitionLog:
        """The log, made where there is none. Its high watermark is that of the checkpoint, within the log. Raises
        KafkaStorageError where the directory is offline, or where the log of a partition that is not new may lie in
        one; NoSpaceLeft; InconsistentTopicId."""
        ...

    def delete(self, topic_partition: TopicPartition, topic_id: UUID) -> None:
        """Set the log aside; its files go later."""
        ...

    def write_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Into the checkpoint file of each log directory, all at once."""
        ...


@dataclass(frozen=True, slots=True)
class ReplicaSettings:
    """Kafka's configs of a broker."""

    broker_id: int
    inter_broker_listener: str
    incarnation_id: UUID | None = None
    """That of this process's registration. Images from before it may name this broker as leader of an epoch whose
    records it lost when it died; the manager leaves them alone. None: it begins with the first image."""
    num_replica_fetchers: int = 1
    replica_lag_time_max_ms: int = DEFAULT_LAG_TIME_MAX_MS
    checkpoint_interval_ms: int = HIGH_WATERMARK_CHECKPOINT_MS


class LogPlaces(Protocol):
    """Follows in which log directories the logs of partitions lie. `assigned` is the directory that the controller has
    for the replica."""

    def opened(self, partition: Partition, assigned: UUID) -> None: ...
    def stopped(self, topic_partition: TopicPartition) -> None: ...
    def went_offline(self, topic_partition: TopicPartition) -> None: ...


class FetcherKey(NamedTuple):
    source_id: int
    number: int


@dataclass(frozen=True, slots=True)
class RunningFetcher:
    """A fetcher and where its leader listens. Another endpoint makes another fetcher."""

    endpoint: Endpoint
    fetcher: Fetcher


@dataclass(slots=True)
class _Hosted:
    """A partition with a replica here; `partition` is None where its log directory failed."""

    topic_id: UUID
    partition: Partition | None


class ReplicaManager:
    """Implements `broker.replica.partition.ClusterView` with the newest image."""

    def __init__(
        self,
        settings: ReplicaSettings,
        logs: PartitionLogs,
        *,
        fetcher_settings: FetcherSettings | None = None,
        min_insync_replicas: Callable[[MetadataImage, str], int] = lambda _image, _topic: 1,
        quota: ReplicationQuota | None = None,
        places: LogPlaces | None = None,
        full_disk: FullDisk | None = None,
    ) -> None:
        """`min_insync_replicas` is the effective config of a topic."""
        self.outbox = Outbox()
        self.fetchers: dict[FetcherKey, RunningFetcher] = {}
        self._settings = settings
        self._fetcher_settings = fetcher_settings or FetcherSettings(settings.broker_id)
        self._logs = logs
        self._min_insync_replicas = min_insync_replicas
        self._quota = quota
        self._places = places
        self._full_disk = full_disk or FullDisk(
            settings.broker_id, lambda _topic, _partition, _directory: None
        )
        self._image = MetadataImage.empty()
        self._hosted: dict[TopicPartition, _Hosted] = {}
        self._indexes: dict[UUID, dict[int, TopicPartition]] = {}
        self._unopened: dict[TopicPartition, None] = {}
        self._unopened_for_space: dict[TopicPartition, None] = {}
        """Partitions for whose files there was no space."""
        # With the topic id of the log.
        self._undeleted: dict[TopicPartition, UUID] = {}
        # Of new partitions whose files are being made, or were made and are not opened yet, the topic's id then.
        self._in_making: dict[TopicPartition, UUID] = {}
        self._made: dict[TopicPartition, UUID] = {}
        self._is_shutting_down = False
        self._has_begun = False
        self._next_shrink_ms: int | None = None
        self._next_checkpoint_ms: int | None = None
        self._checkpointed: dict[TopicPartition, int] = {}
        self.alter_partitions = AlterPartitions(settings.broker_id, self._partition_of)
        self._received_before = 0

    # What is here

    def online(self, topic_partition: TopicPartition) -> Partition | None:
        hosted = self._hosted.get(topic_partition)
        return None if hosted is None else hosted.partition

    def is_offline(self, topic_partition: TopicPartition) -> bool:
        """Whether there is a replica here whose log directory has failed."""
        hosted = self._hosted.get(topic_partition)
        return hosted is not None and hosted.partition is None

    def all_online(self) -> Iterator[Partition]:
        return (hosted.partition for hosted in self._hosted.values() if hosted.partition is not None)

    # What is counted

    @property
    def received_bytes(self) -> int:
        """Records that were fetched from leaders since the start."""
        return self._received_before + sum(each.fetcher.received_bytes for each in self.fetchers.values())

    @property
    def max_lag(self) -> int:
        """Records that the replica lacks which lags most behind its leader's high watermark."""
        return max((each.fetcher.max_lag for each in self.fetchers.values()), default=0)

    @property
    def failed_partitions(self) -> int:
        """Followed, and not fetched until their leader epoch changes."""
        return sum(len(each.fetcher.failed) for each in self.fetchers.values())

    @property
    def offline_replicas(self) -> int:
        return sum(hosted.partition is None for hosted in self._hosted.values())

    def _partition_of(self, change: IsrChange) -> Partition | None:
        partition = self.online(TopicPartition(change.topic, change.partition))
        return partition if partition is not None and partition.topic_id == change.topic_id else None

    # The cluster, for the partitions

    @property
    def _cluster(self) -> ClusterImage:
        return self._image.cluster

    def is_alive(self, broker_id: int) -> bool:
        broker = self._cluster.brokers.get(broker_id)
        return broker is not None and not broker.fenced

    def may_join_isr(self, broker_id: int, directory_id: UUID) -> bool:
        broker = self._cluster.brokers.get(broker_id)
        return broker is not None and broker.is_active and is_online(directory_id, broker.log_dirs)

    def broker_epoch(self, broker_id: int) -> int | None:
        broker = self._cluster.brokers.get(broker_id)
        return None if broker is None else broker.epoch

    # Metadata

    def begin(self, now_ms: int, image: MetadataImage) -> None:
        """Begin with this image, which has the registration of this process: for a broker that first loads its logs,
        and passes in the images after it. What images before it say is history, by which nothing is led or deleted."""
        self._image = image
        self._has_begun = True
        self._take_over(now_ms, self._everything())
        self._submit()

    def handle_image(self, now_ms: int, delta: MetadataDelta, image: MetadataImage) -> None:
        """Deletions first, then leaders, then followers, then fetchers that have nothing left to fetch. The logs of new
        partitions are made first (`PartitionLogs.begin_opening`), so that the image need not wait for the disk; of many
        that are there only some are opened here, and of many old ones only some logs are set aside. `tick` does the
        others."""
        before, self._image = self._image, image
        changed = self._changed(delta)
        if not self._has_begun:
            if not self._is_registered:
                return
            self._has_begun = True
            changed = self._everything()
        self._settle_configs(now_ms, delta)
        for topic_id in delta.deleted_topic_ids:
            for topic_partition in list(self._indexes.get(topic_id, {}).values()):
                self._stop_and_delete(topic_partition)
        if self._made:
            for topic_partition, topic_id in list(self._made.items()):
                if topic_id in delta.deleted_topic_ids:
                    self._delete_made(topic_partition)
        self._take_over(now_ms, changed, opened_at_once=OPENED_AT_ONCE)
        self.delete_some()
        if image.cluster.brokers is not before.cluster.brokers:
            self._follow_moved_leaders(before, image)
            for partition in self.all_online():
                partition.brokers_changed(now_ms)
        self._drop_idle_fetchers()
        self._submit()

    def _take_over(
        self,
        now_ms: int,
        changed: Iterable[tuple[TopicImage, Collection[int]]],
        opened_at_once: int | None = None,
    ) -> None:
        """None opens all, as at the start, when the logs have been loaded. Partitions of internal topics are opened at
        once: their coordinators look for them in the same image."""
        followed: list[tuple[TopicPartition, TopicImage, PartitionState]] = []
        led: list[tuple[TopicPartition, TopicImage, PartitionState]] = []
        for topic, ids in changed:
            mine = self._local_states(topic, ids)
            for index in list(self._indexes.get(topic.id, {})):
                if index in ids and index not in mine:
                    self._stop_and_delete(TopicPartition(topic.name, index))
            for index, state in mine.items():
                topic_partition = TopicPartition(topic.name, index)
                if (
                    opened_at_once is not None
                    and topic_partition not in self._hosted
                    and topic.name not in INTERNAL_TOPICS
                ):
                    if not opened_at_once:
                        self._unopened[topic_partition] = None
                        continue
                    if not self._may_open(topic_partition, topic, state):
                        continue
                    opened_at_once -= 1
                into = led if state.leader == self._settings.broker_id else followed
                into.append((topic_partition, topic, state))
        for topic_partition, topic, state in led:
            self._lead(now_ms, topic_partition, topic, state)
        for topic_partition, topic, state in followed:
            self._follow(topic_partition, topic, state)

    def _open_some(self, now_ms: int) -> None:
        """As the newest image has them: what was to be opened may have been deleted or moved meanwhile."""
        chosen = list(islice(self._unopened, OPENED_AT_ONCE))
        for topic_partition in chosen:
            del self._unopened[topic_partition]
        by_topic: dict[str, list[int]] = {}
        topics = self._image.topics.by_name
        for topic_partition in chosen:
            name, index = topic_partition
            topic = topics.get(name)
            # The topic may have been deleted, and created again with fewer partitions.
            state = None if topic is None else topic.partitions.get(index)
            if topic is None or state is None or self._settings.broker_id not in state.replicas:
                self._delete_made(topic_partition)
            elif topic_partition in self._hosted or self._may_open(topic_partition, topic, state):
                by_topic.setdefault(name, []).append(index)
        self._take_over(now_ms, [(topics[name], ids) for name, ids in by_topic.items()])

    def _may_open(self, topic_partition: TopicPartition, topic: TopicImage, state: PartitionState) -> bool:
        """If not, the files of its log are being made."""
        if self._made.get(topic_partition) == topic.id:
            return True
        self._delete_made(topic_partition)
        if topic_partition in self._in_making:
            return False
        # The new log gets the folder of that name.
        self._delete_log(topic_partition)
        may_open = self._logs.begin_opening(
            topic_partition,
            topic.id,
            directory_id=state.directory_of(self._settings.broker_id),
            is_new=state.partition_epoch == 0,
            leader_epoch=state.leader_epoch if state.leader == self._settings.broker_id else None,
        )
        if not may_open:
            self._in_making[topic_partition] = topic.id
        return may_open

    def log_made(self, topic_partition: TopicPartition) -> None:
        """The files of a new log are made, or could not be; `tick` opens it then."""
        self._made[topic_partition] = self._in_making.pop(topic_partition)
        self._unopened[topic_partition] = None

    def _delete_made(self, topic_partition: TopicPartition) -> None:
        """The partition was deleted, created again or moved away before its log was opened."""
        topic_id = self._made.pop(topic_partition, None)
        if topic_id is not None:
            self._undeleted[topic_partition] = topic_id

    @property
    def _is_registered(self) -> bool:
        """Whether the image has the registration of this process: the controller took away then what the broker led."""
        broker = self._cluster.brokers.get(self._settings.broker_id)
        wanted = self._settings.incarnation_id
        return wanted is None or (broker is not None and broker.incarnation_id == wanted)

    def _everything(self) -> Iterator[tuple[TopicImage, Collection[int]]]:
        for topic in self._image.topics.by_id.values():
            yield topic, frozenset(topic.partitions.ids.tolist())

    def _changed(self, delta: MetadataDelta) -> Iterator[tuple[TopicImage, Collection[int]]]:
        for topic_id, ids in delta.changed_topics.items():
            topic = self._image.topics.by_id.get(topic_id)
            if topic is not None:
                yield topic, frozenset(ids)

    def _local_states(self, topic: TopicImage, ids: Collection[int]) -> dict[int, PartitionState]:
        """Of the partitions that changed, those with a replica here: by the columns, for most are another broker's."""
        table = topic.partitions
        wanted = np.fromiter(ids, dtype=np.int32, count=len(ids))
        wanted.sort()
        rows = table.ids.searchsorted(wanted)
        is_here = (table.replicas[rows] == self._settings.broker_id).any(axis=1)
        return table.found(wanted[is_here].tolist())

    def _lead(
        self, now_ms: int, topic_partition: TopicPartition, topic: TopicImage, state: PartitionState
    ) -> None:
        partition = self._get_or_open(topic_partition, topic, state)
        if partition is None:
            return
        self._stop_fetching(topic_partition)
        with self._offline_where_it_fails(topic_partition):
            partition.become_leader(now_ms, state)

    def _follow(self, topic_partition: TopicPartition, topic: TopicImage, state: PartitionState) -> None:
        """Only a new leader epoch starts another fetch; the fetcher lets the partition go before its log's end is
        read (KAFKA-13266)."""
        partition = self._get_or_open(topic_partition, topic, state)
        if partition is None:
            return
        with self._offline_where_it_fails(topic_partition):
            is_new_epoch = partition.become_follower(state)
            is_leaving = self._is_shutting_down and (
                state.leader < 0 or self._settings.broker_id not in state.isr
            )
            if is_leaving:
                # What is not in sync any more need not catch up while its broker shuts down.
                self._stop_fetching(topic_partition)
            elif is_new_epoch:
                self._stop_fetching(topic_partition)
                self._fetch(partition)

    def _get_or_open(
        self, topic_partition: TopicPartition, topic: TopicImage, state: PartitionState
    ) -> Partition | None:
        hosted = self._hosted.get(topic_partition)
        if hosted is not None and hosted.topic_id == topic.id:
            return hosted.partition
        if hosted is not None:
            # A topic of the same name was deleted; its removal comes with the same or an earlier delta.
            self._stop_and_delete(topic_partition)
        self._made.pop(topic_partition, None)
        # The new log gets the folder of that name.
        self._delete_log(topic_partition)
        hosted = self._hosted[topic_partition] = _Hosted(topic.id, None)
        self._indexes.setdefault(topic.id, {})[topic_partition.partition] = topic_partition
        try:
            opened = self._logs.open(
                topic_partition,
                topic.id,
                directory_id=state.directory_of(self._settings.broker_id),
                is_new=state.partition_epoch == 0,
            )
        except LogError as error:
            log.error("%s-%d is offline: %s", *topic_partition, error)
            if isinstance(error, NoSpaceLeft):
                self._unopened_for_space[topic_partition] = None
            return None
        hosted.partition = Partition(
            broker_id=self._settings.broker_id,
            topic_id=topic.id,
            topic=topic.name,
            partition=topic_partition.partition,
            log=opened,
            cluster=self,
            outbox=self.outbox,
            settings=PartitionSettings(
                self._min_insync_replicas(self._image, topic.name), self._settings.replica_lag_time_max_ms
            ),
        )
        if self._places is not None:
            self._places.opened(hosted.partition, state.directory_of(self._settings.broker_id))
        return hosted.partition

    def _stop_and_delete(self, topic_partition: TopicPartition) -> None:
        hosted = self._hosted.pop(topic_partition)
        indexes = self._indexes[hosted.topic_id]
        del indexes[topic_partition.partition]
        if not indexes:
            del self._indexes[hosted.topic_id]
        self._stop_fetching(topic_partition)
        self._unopened_for_space.pop(topic_partition, None)
        self._full_disk.stopped(hosted.topic_id, topic_partition.partition)
        if self._places is not None:
            self._places.stopped(topic_partition)
        if hosted.partition is None:
            return
        hosted.partition.stop()
        self._undeleted[topic_partition] = hosted.topic_id

    def delete_some(self) -> bool:
        """Set some of the logs aside that this broker has no more; whether there are others. After a crash the next
        start finds the others, and keeps them aside as stray."""
        for topic_partition in list(islice(self._undeleted, DELETED_AT_ONCE)):
            self._delete_log(topic_partition)
        return bool(self._undeleted)

    def _delete_log(self, topic_partition: TopicPartition) -> None:
        topic_id = self._undeleted.pop(topic_partition, None)
        if topic_id is None:
            return
        try:
            self._logs.delete(topic_partition, topic_id)
        except LogError as error:
            log.error("the log of %s-%d stays until the next start: %s", *topic_partition, error)

    def _settle_configs(self, now_ms: int, delta: MetadataDelta) -> None:
        """min.insync.replicas may be any resource's: the topic's, this broker's, the cluster's."""
        changed = delta.changed_configs
        if not changed:
            return
        topics = {each.name for each in changed} if all(each.type == TOPIC for each in changed) else None
        known: dict[str, int] = {}
        for partition in self.all_online():
            topic = partition.topic_partition.topic
            if topics is not None and topic not in topics:
                continue
            if topic not in known:
                known[topic] = self._min_insync_replicas(self._image, topic)
            partition.change_min_insync_replicas(now_ms, known[topic])

    # Fetchers

    def _fetch(self, partition: Partition) -> None:
        """Where the leader's broker does not live, the next leader epoch or its registration starts the fetch."""
        if partition.leader_id < 0 or partition.is_leader:
            return
        endpoint = self._endpoint_of(partition.leader_id)
        if endpoint is None:
            return
        key = FetcherKey(partition.leader_id, self._number_of(partition.topic_partition))
        running = self.fetchers.get(key)
        if running is None or running.endpoint != endpoint:
            moved = [] if running is None else list(running.fetcher.keys)
            self._received_before += 0 if running is None else running.fetcher.received_bytes
            running = self.fetchers[key] = RunningFetcher(
                endpoint, Fetcher(partition.leader_id, self._fetcher_settings, self._quota)
            )
            for each in moved:
                other = self.online(TopicPartition(*each))
                if other is not None:
                    running.fetcher.add(other, other.leader_epoch)
        running.fetcher.add(partition, partition.leader_epoch)

    def _endpoint_of(self, broker_id: int) -> Endpoint | None:
        broker = self._cluster.brokers.get(broker_id)
        if broker is None or broker.fenced:
            return None
        return broker.end_point(self._settings.inter_broker_listener)

    def _number_of(self, topic_partition: TopicPartition) -> int:
        hashed = 31 * crc32(topic_partition.topic.encode()) + topic_partition.partition
        return hashed % self._settings.num_replica_fetchers

    def _stop_fetching(self, topic_partition: TopicPartition) -> None:
        for running in self.fetchers.values():
            running.fetcher.remove(topic_partition)

    def _follow_moved_leaders(self, before: MetadataImage, image: MetadataImage) -> None:
        """A leader that came back, or listens elsewhere, without a new leader epoch."""
        moved = {
            broker_id
            for broker_id, broker in image.cluster.brokers.items()
            if broker != before.cluster.brokers.get(broker_id)
        }
        for partition in self.all_online():
            if partition.is_leader or partition.leader_id not in moved:
                continue
            key = FetcherKey(partition.leader_id, self._number_of(partition.topic_partition))
            running = self.fetchers.get(key)
            is_fetched = running is not None and (
                partition.topic_partition in running.fetcher
                or partition.topic_partition in running.fetcher.failed
            )
            endpoint = self._endpoint_of(partition.leader_id)
            if endpoint is not None and (not is_fetched or (running and running.endpoint != endpoint)):
                self._fetch(partition)

    def _drop_idle_fetchers(self) -> None:
        for key in [key for key, running in self.fetchers.items() if running.fetcher.is_idle]:
            if not self.fetchers[key].fetcher.failed:
                self._received_before += self.fetchers.pop(key).fetcher.received_bytes

    def fetcher_answered(self) -> None:
        """Call this after a fetcher has taken an answer: partitions whose disk failed under it go offline."""
        for running in list(self.fetchers.values()):
            for key, why in list(running.fetcher.failed.items()):
                if isinstance(why, KafkaStorageError):
                    self.mark_offline(TopicPartition(*key))
        self._submit()

    # Directories

    def mark_offline(self, topic_partition: TopicPartition) -> None:
        """The log cannot be read or written any more. It stays so until the broker starts again, or the topic is
        created again."""
        hosted = self._hosted.get(topic_partition)
        if hosted is None or hosted.partition is None:
            return
        partition, hosted.partition = hosted.partition, None
        self._stop_fetching(topic_partition)
        self._full_disk.stopped(hosted.topic_id, topic_partition.partition)
        if self._places is not None:
            self._places.went_offline(topic_partition)
        partition.stop()

    @contextmanager
    def _offline_where_it_fails(self, topic_partition: TopicPartition) -> Iterator[None]:
        """A partition that fails does not hold up the others."""
        try:
            yield
        except LogError as error:
            log.error("%s-%d is offline: %s", *topic_partition, error)
            self.mark_offline(topic_partition)

    def directory_failed(self, directory_id: UUID) -> None:
        for partition in list(self.all_online()):
            if partition.log.directory_id == directory_id:
                self.mark_offline(partition.topic_partition)
        self._drop_idle_fetchers()

    def has_space(self, directory_id: UUID) -> None:
        """There is space again in a log directory that was full."""
        self._full_disk.has_space(directory_id)
        for topic_partition in self._unopened_for_space:
            # As if it had not been looked at yet.
            hosted = self._hosted.pop(topic_partition)
            del self._indexes[hosted.topic_id][topic_partition.partition]
            self._unopened[topic_partition] = None
        self._unopened_for_space.clear()

    def begin_controlled_shutdown(self) -> None:
        self._is_shutting_down = True

    # Time

    def next_deadline_ms(self) -> int | None:
        if self._unopened or self._undeleted:
            return 0
        deadlines = [each for each in (self._next_shrink_ms, self._next_checkpoint_ms) if each is not None]
        return min(deadlines, default=None)

    def tick(self, now_ms: int) -> None:
        """New partitions are opened, and old logs set aside, some with each call. ISRs are looked at each half of
        replica.lag.time.max.ms; high watermarks are written every 5 s."""
        if self._unopened:
            self._open_some(now_ms)
        if self._undeleted:
            self.delete_some()
        if self._next_shrink_ms is None or now_ms >= self._next_shrink_ms:
            if self._next_shrink_ms is not None:
                for partition in self.all_online():
                    partition.maybe_shrink_isr(now_ms)
            self._next_shrink_ms = now_ms + self._settings.replica_lag_time_max_ms // 2
        if self._next_checkpoint_ms is None or now_ms >= self._next_checkpoint_ms:
            if self._next_checkpoint_ms is not None:
                self.checkpoint_high_watermarks()
            self._next_checkpoint_ms = now_ms + self._settings.checkpoint_interval_ms
        self._submit()

    def checkpoint_high_watermarks(self) -> None:
        """Also at shutdown. Lazy on purpose: where logs diverge is found by epochs, not by this."""
        found = {each.topic_partition: each.log.high_watermark for each in self.all_online()}
        if found != self._checkpointed:
            self._logs.write_high_watermarks(found)
            self._checkpointed = found

    def submit_isr_changes(self) -> None:
        """Call this after produces, fetches and answers of the controller."""
        self._submit()

    def _submit(self) -> None:
        for change in self.outbox.take_isr_changes():
            self.alter_partitions.submit(change)
        for topic_partition in self.outbox.take_without_space():
            partition = self.online(topic_partition)
            if partition is None:
                continue
            state = self._image.topics.partition(partition.topic_id, topic_partition.partition)
            if state is not None:
                self._full_disk.refused(partition, state, self._cluster.brokers)


def is_stray(
    image: MetadataImage, broker_id: int, topic_partition: TopicPartition, topic_id: UUID | None
) -> bool:
    """Whether a log that is found at the start is none of this broker's: the topic is gone or was created again, or
    the replica moved. A stray log is set aside and kept."""
    if topic_id is None:
        return True
    state = image.topics.partition(topic_id, topic_partition.partition)
    return state is None or broker_id not in state.replicas


def strays(
    image: MetadataImage, broker_id: int, found: Iterable[tuple[TopicPartition, UUID | None]]
) -> list[TopicPartition]:
    return [each for each, topic_id in found if is_stray(image, broker_id, each, topic_id)]
