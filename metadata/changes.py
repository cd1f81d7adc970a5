"""What committed records change, one by one, as those who watch a cluster want to hear it.

An image's delta says what differs between two offsets. A watcher needs each change with its own offset, also when two
of them meet the same partition in one commit, so the tracker follows the records themselves from an image on.
"""

import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from uuid import UUID

from kquorum.metadata.image.cluster import BrokerRegistration, ClusterDelta
from kquorum.metadata.image.errors import CannotReplayError, ReplayError
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.partition_state import (
    PartitionState,
    partition_after_change,
    partition_from_record,
)
from kquorum.wire.control_records import LeaderChangeMessage, VotersRecord, decode_control_record_lenient
from kquorum.wire.log_batch import LogBatch
from kquorum.wire.metadata_records import cluster, features, topics
from kquorum.wire.record_frame import decode_record_lenient
from kquorum.wire.schema import MetadataRecord
from kquorum.wire.uuids import uuid_to_text


class ChangeKind(enum.Enum):
    """The names are those of the gRPC service."""

    BROKER_REGISTERED = enum.auto()
    BROKER_FENCED = enum.auto()
    BROKER_UNFENCED = enum.auto()
    BROKER_IN_CONTROLLED_SHUTDOWN = enum.auto()
    BROKER_REMOVED = enum.auto()
    TOPIC_CREATED = enum.auto()
    TOPIC_DELETED = enum.auto()
    PARTITION_CREATED = enum.auto()
    PARTITION_CHANGED = enum.auto()
    LEADER_ELECTED = enum.auto()
    VOTERS_CHANGED = enum.auto()


# Of the quorum itself, not of what it holds.
QUORUM_KINDS: Final = frozenset({ChangeKind.LEADER_ELECTED, ChangeKind.VOTERS_CHANGED})


@dataclass(frozen=True, slots=True)
class TopicIdentity:
    name: str
    id: UUID


@dataclass(frozen=True, slots=True)
class PartitionIdentity:
    topic: TopicIdentity
    partition_id: int


@dataclass(frozen=True, slots=True)
class PartitionTransition:
    """`before` is None for a new partition."""

    partition: PartitionIdentity
    before: PartitionState | None
    after: PartitionState


Subject = BrokerRegistration | TopicIdentity | PartitionTransition | LeaderChangeMessage | VotersRecord
Events = Iterator[tuple[ChangeKind, Subject]]


@dataclass(frozen=True, slots=True)
class Change:
    """`offset` is the record's; `epoch` is that of the quorum's leader that wrote it, `timestamp_ms` when."""

    kind: ChangeKind
    offset: int
    epoch: int
    timestamp_ms: int
    subject: Subject


@dataclass(frozen=True, slots=True)
class _Entry:
    record: MetadataRecord
    offset: int
    epoch: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class _Transaction:
    """`offset` is where it began."""

    offset: int
    entries: list[_Entry] = field(default_factory=list)


class ChangeTracker:
    """Follows the log from the end of `image`; `position` is the next offset wanted.

    The records of a metadata transaction (KIP-868) are held back until it ends, and forgotten when it is aborted.
    """

    def __init__(self, image: MetadataImage) -> None:
        self.position = image.end_offset
        self._rebase_on(image)
        self._transaction: _Transaction | None = None

    @property
    def resume_offset(self) -> int:
        """From where a follower that has seen all changes up to now goes on without missing one."""
        return self.position if self._transaction is None else self._transaction.offset

    def replay(self, batch: LogBatch) -> list[Change]:
        """The changes that this batch makes known. Raises ReplayError, and DecodeError for a malformed batch."""
        if batch.is_control:
            changes = [change for change in _quorum_changes(batch) if change.offset >= self.position]
            self.position = max(self.position, batch.next_offset)
            return changes
        changes = []
        for record in batch.records:
            if record.offset >= self.position:
                self.position = record.offset + 1
                decoded = decode_record_lenient(record.value or b"").record
                if decoded is not None:
                    entry = _Entry(decoded, record.offset, batch.leader_epoch, record.timestamp_ms)
                    changes += self._take(entry)
        return changes

    def maybe_rebase(self, image: MetadataImage, after_changes: int) -> None:
        """Stand on `image` instead of on an older one and the changes since, when these have become many."""
        if (
            self._overlay_size >= after_changes
            and image.end_offset == self.position
            and self._transaction is None
        ):
            self._rebase_on(image)

    def _rebase_on(self, image: MetadataImage) -> None:
        self._base = image.topics
        self._cluster = ClusterDelta(image.cluster)
        self._topic_names: dict[UUID, str | None] = {}
        self._partitions: dict[UUID, dict[int, PartitionState]] = {}
        self._overlay_size = 0

    def _take(self, entry: _Entry) -> list[Change]:
        match entry.record:
            case features.BeginTransactionRecord():
                self._transaction = _Transaction(entry.offset)
                return []
            case features.AbortTransactionRecord():
                self._transaction = None
                return []
            case features.EndTransactionRecord():
                held = self._transaction.entries if self._transaction else []
                self._transaction = None
                return [change for entry in held for change in self._changes_by(entry)]
        if self._transaction is not None:
            self._transaction.entries.append(entry)
            return []
        return self._changes_by(entry)

    def _changes_by(self, entry: _Entry) -> list[Change]:
        read = _READERS.get(type(entry.record))
        if read is None:
            return []
        try:
            return [
                Change(kind, entry.offset, entry.epoch, entry.timestamp_ms, subject)
                for kind, subject in read(self, entry.record)
            ]
        except CannotReplayError as error:
            raise ReplayError(entry.offset, entry.record, str(error)) from None

    # Brokers.

    def _register(self, record: cluster.RegisterBrokerRecord) -> Events:
        self._cluster.replay_register_broker(record)
        yield ChangeKind.BROKER_REGISTERED, self._cluster.image.brokers[record.broker_id]

    def _unregister(self, record: cluster.UnregisterBrokerRecord) -> Events:
        known = self._cluster.image.brokers.get(record.broker_id)
        self._cluster.replay_unregister_broker(record)
        assert known is not None, "the replay refuses a broker that is not registered"
        yield ChangeKind.BROKER_REMOVED, known

    def _fence(self, record: cluster.FenceBrokerRecord) -> Events:
        self._cluster.replay_fence_broker(record)
        yield ChangeKind.BROKER_FENCED, self._cluster.image.brokers[record.id]

    def _unfence(self, record: cluster.UnfenceBrokerRecord) -> Events:
        self._cluster.replay_unfence_broker(record)
        yield ChangeKind.BROKER_UNFENCED, self._cluster.image.brokers[record.id]

    def _change_registration(self, record: cluster.BrokerRegistrationChangeRecord) -> Events:
        before = self._cluster.image.brokers.get(record.broker_id)
        self._cluster.replay_broker_registration_change(record)
        after = self._cluster.image.brokers[record.broker_id]
        assert before is not None, "the replay refuses a broker that is not registered"
        if after.in_controlled_shutdown and not before.in_controlled_shutdown:
            yield ChangeKind.BROKER_IN_CONTROLLED_SHUTDOWN, after
        if after.fenced != before.fenced:
            yield ChangeKind.BROKER_FENCED if after.fenced else ChangeKind.BROKER_UNFENCED, after

    # Topics and partitions.

    def _create_topic(self, record: topics.TopicRecord) -> Events:
        self._topic_names[record.topic_id] = record.name
        self._overlay_size += 1
        yield ChangeKind.TOPIC_CREATED, TopicIdentity(record.name, record.topic_id)

    def _delete_topic(self, record: topics.RemoveTopicRecord) -> Events:
        topic = self._topic(record.topic_id)
        self._topic_names[record.topic_id] = None
        self._partitions.pop(record.topic_id, None)
        self._overlay_size += 1
        yield ChangeKind.TOPIC_DELETED, topic

    def _put_partition(self, record: topics.PartitionRecord) -> Events:
        topic = self._topic(record.topic_id)
        before = self._partition(record.topic_id, record.partition_id)
        kind = ChangeKind.PARTITION_CREATED if before is None else ChangeKind.PARTITION_CHANGED
        yield kind, self._set(topic, record.partition_id, before, partition_from_record(record))

    def _change_partition(self, record: topics.PartitionChangeRecord) -> Events:
        topic = self._topic(record.topic_id)
        before = self._partition(record.topic_id, record.partition_id)
        if before is None:
            raise CannotReplayError(f"topic '{topic.name}' has no partition {record.partition_id}")
        after = partition_after_change(before, record)
        yield ChangeKind.PARTITION_CHANGED, self._set(topic, record.partition_id, before, after)

    def _clear_elr(self, record: topics.ClearElrRecord) -> Events:
        for topic in list(self._live_topics()):
            if record.topic_name not in ("", topic.name):
                continue
            for partition_id, before in self._all_partitions(topic.id).items():
                if before.elr or before.last_known_elr:
                    after = replace(
                        before, elr=(), last_known_elr=(), partition_epoch=before.partition_epoch + 1
                    )
                    yield ChangeKind.PARTITION_CHANGED, self._set(topic, partition_id, before, after)

    def _topic(self, topic_id: UUID) -> TopicIdentity:
        known = self._base.by_id.get(topic_id)
        name = self._topic_names.get(topic_id, None if known is None else known.name)
        if name is None:
            raise CannotReplayError(f"there is no topic with id {uuid_to_text(topic_id)}")
        return TopicIdentity(name, topic_id)

    def _live_topics(self) -> Iterator[TopicIdentity]:
        for topic_id, topic in self._base.by_id.items():
            if topic_id not in self._topic_names:
                yield TopicIdentity(topic.name, topic_id)
        for topic_id, name in self._topic_names.items():
            if name is not None:
                yield TopicIdentity(name, topic_id)

    def _partition(self, topic_id: UUID, partition_id: int) -> PartitionState | None:
        changed = self._partitions.get(topic_id, {}).get(partition_id)
        return self._base.partition(topic_id, partition_id) if changed is None else changed

    def _all_partitions(self, topic_id: UUID) -> dict[int, PartitionState]:
        known = self._base.by_id.get(topic_id)
        return {**dict(known.partitions.items() if known else ()), **self._partitions.get(topic_id, {})}

    def _set(
        self, topic: TopicIdentity, partition_id: int, before: PartitionState | None, after: PartitionState
    ) -> PartitionTransition:
        self._partitions.setdefault(topic.id, {})[partition_id] = after
        self._overlay_size += 1
        return PartitionTransition(PartitionIdentity(topic, partition_id), before, after)


def _quorum_changes(batch: LogBatch) -> Iterator[Change]:
    """Of a control batch: its leader, where it opens an epoch, and its voters."""
    for record in batch.records:
        found = decode_control_record_lenient(record.key, record.value).record
        kind = _CONTROL_KINDS.get(type(found))
        if isinstance(found, LeaderChangeMessage | VotersRecord) and kind is not None:
            yield Change(kind, record.offset, batch.leader_epoch, record.timestamp_ms, found)


_CONTROL_KINDS: Mapping[type, ChangeKind] = {
    LeaderChangeMessage: ChangeKind.LEADER_ELECTED,
    VotersRecord: ChangeKind.VOTERS_CHANGED,
}
_READERS: Mapping[type[MetadataRecord], Callable[[ChangeTracker, Any], Events]] = {
    cluster.RegisterBrokerRecord: ChangeTracker._register,
    cluster.UnregisterBrokerRecord: ChangeTracker._unregister,
    cluster.FenceBrokerRecord: ChangeTracker._fence,
    cluster.UnfenceBrokerRecord: ChangeTracker._unfence,
    cluster.BrokerRegistrationChangeRecord: ChangeTracker._change_registration,
    topics.TopicRecord: ChangeTracker._create_topic,
    topics.RemoveTopicRecord: ChangeTracker._delete_topic,
    topics.PartitionRecord: ChangeTracker._put_partition,
    topics.PartitionChangeRecord: ChangeTracker._change_partition,
    topics.ClearElrRecord: ChangeTracker._clear_elr,
}
