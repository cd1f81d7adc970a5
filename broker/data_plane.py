"""What the handlers of the data APIs work with: the partitions of this broker, fetch sessions, and the requests that
wait.

Sans-IO. A handler appends or reads, and calls `settle_soon`: what the partitions noted in their outbox is done once for
all requests of a turn of the loop, after their handlers, never inside an append.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol
from uuid import UUID

from kquorum.broker.data_figures import TopicTraffic
from kquorum.broker.fetch.sessions import FetchSessions
from kquorum.broker.fetch.slices import Slices
from kquorum.broker.fetch.waits import Wait, Waits
from kquorum.broker.log.errors import KafkaStorageError, LogError, NotLeaderOrFollower
from kquorum.broker.log.partition_log import PartitionLog
from kquorum.broker.producer_ids import ProducerIds
from kquorum.broker.quota.replication import ReplicationThrottle
from kquorum.broker.replica.log_moves import LogMoves
from kquorum.broker.replica.partition import Partition, TopicPartition
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.messages.error_codes import ErrorCode


class UnknownTopicOrPartition(LogError):
    """The image has no such partition."""

    error_code = ErrorCode.unknown_topic_or_partition


class UnknownTopicId(LogError):
    """The image has no topic with this id, or the partition here belongs to another topic of its name."""

    error_code = ErrorCode.unknown_topic_id


@dataclass(frozen=True, slots=True)
class FutureLog:
    """A log that is copied into the directory, and how many offsets it lacks."""

    log: PartitionLog
    lag: int


@dataclass(frozen=True, slots=True)
class DirectoryUsage:
    """A log directory with the logs in it; -1 where the file system does not say how large it is."""

    path: str
    is_offline: bool = False
    total_bytes: int = -1
    usable_bytes: int = -1
    logs: tuple[PartitionLog, ...] = ()
    futures: tuple[FutureLog, ...] = ()


class HostedPartitions(Protocol):
    """The partitions with a replica on this broker."""

    def online(self, topic_partition: TopicPartition) -> Partition | None: ...

    def is_offline(self, topic_partition: TopicPartition) -> bool:
        """Whether its log directory has failed."""
        ...

    def all_online(self) -> Iterable[Partition]: ...

    def directories(self) -> Mapping[UUID, DirectoryUsage]:
        """By directory id."""
        ...


class NoPartitions:
    """Of a broker that is made without data logs: each partition is another broker's."""

    def online(self, topic_partition: TopicPartition) -> Partition | None:  # noqa: ARG002 - the protocol's
        return None

    def is_offline(self, topic_partition: TopicPartition) -> bool:  # noqa: ARG002 - the protocol's
        return False

    def all_online(self) -> Iterable[Partition]:
        return ()

    def directories(self) -> Mapping[UUID, DirectoryUsage]:
        return {}


@dataclass(slots=True, kw_only=True)
class DataPlane:
    """One for all listeners of a broker. `now_ms` is the node's clock; `settle_soon` has what the partitions noted done
    when the handlers of this turn are through; `later` calls back in another turn."""

    partitions: HostedPartitions
    sessions: FetchSessions
    producer_ids: ProducerIds
    now_ms: Callable[[], int]
    settle_soon: Callable[[], None]
    fetch_max_bytes: int
    waits: Waits = field(default_factory=Waits)
    traffic: TopicTraffic = field(default_factory=TopicTraffic)
    leader_throttle: ReplicationThrottle | None = None
    moves: LogMoves | None = None
    # Whether consumers are sent to the replica in their rack (`replica.selector.class`).
    chooses_replicas: bool = False
    later: Callable[[Callable[[], None]], object] = lambda work: work()
    slices: Slices = field(init=False)

    def __post_init__(self) -> None:
        self.slices = Slices(self.now_ms, self.later)
        self.waits.of_sessions = self.sessions.note

    def find(
        self, image: MetadataImage, topic: str, partition: int, topic_id: UUID | None = None
    ) -> Partition:
        """Raises UnknownTopicOrPartition, UnknownTopicId, KafkaStorageError, or NotLeaderOrFollower where the partition
        is another broker's, or this broker has not opened its log yet."""
        found = self.partitions.online(TopicPartition(topic, partition))
        if found is not None:
            if topic_id is not None and found.topic_id != topic_id:
                raise UnknownTopicId(f"{topic}-{partition} has the topic id {found.topic_id}, not {topic_id}")
            return found
        if self.partitions.is_offline(TopicPartition(topic, partition)):
            raise KafkaStorageError(f"the log directory of {topic}-{partition} is offline")
        known = image.topics.by_name.get(topic)
        if known is None or known.partitions.get(partition) is None:
            raise UnknownTopicOrPartition(f"there is no partition {topic}-{partition}")
        raise NotLeaderOrFollower(f"this broker has no replica of {topic}-{partition}")

    def is_known(self, image: MetadataImage, topic: str, partition: int) -> bool:
        """Whether the image has this partition. One that is here, of the image's topic of this name, is in the image:
        so its row need not be looked up."""
        known = image.topics.by_name.get(topic)
        if known is None:
            return False
        found = self.partitions.online(TopicPartition(topic, partition))
        return (found is not None and found.topic_id == known.id) or known.partitions.get(
            partition
        ) is not None

    def wait(
        self,
        wait: Wait,
        owner: int,
        park: Callable[[], None],
        is_watched: Callable[[], None] = lambda: None,
    ) -> None:
        """A request of the connection `owner` that its first look did not answer. Its timer is set when the outbox is
        settled. `park` is called if it waits within the bounds of `Waits.have_room`; beyond them it counts as a request
        under way. `is_watched` is called when all of its partitions are, which may be in a later turn."""
        if wait.deadline_ms <= self.now_ms():
            wait.expire(self.now_ms())
            return
        wait.owner = owner
        if self.waits.have_room(owner, len(wait.partitions)):
            park()
        steps = self.waits.add(wait, self.now_ms)
        self.slices.run(steps, is_watched, lambda: self.waits.abandon(wait))
        self.settle_soon()


def data_plane_without_logs() -> DataPlane:
    return DataPlane(
        partitions=NoPartitions(),
        sessions=FetchSessions(0, _NO_ENTROPY),
        producer_ids=ProducerIds(-1),
        now_ms=lambda: 0,
        settle_soon=lambda: None,
        fetch_max_bytes=0,
    )


class _NoEntropy:
    def randint(self, low: int, high: int) -> int:  # noqa: ARG002 - the protocol's
        raise AssertionError("no session is made without slots")


_NO_ENTROPY: Final = _NoEntropy()
