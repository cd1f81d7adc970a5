"""One partition of `__consumer_offsets` that this broker leads: its groups, their offsets, their timers.

Sans-IO: `now_ms` is an argument, and the shard reads and writes the log through the partition. A request becomes
records; their replay changes the offsets; the answer goes out when the records are committed. The members of classic
groups are not in the log before their leader has assigned partitions (`classic_protocol`).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

from kquorum.broker.coordinators.answers import Done, KeyValue
from kquorum.broker.coordinators.batches import in_batches, record_bytes
from kquorum.broker.coordinators.coordinator_log import TransactionOf
from kquorum.broker.coordinators.loading import ShardState
from kquorum.broker.coordinators.shard import CoordinatorShard
from kquorum.broker.coordinators.timers import Earliest
from kquorum.broker.group_figures import GroupCounters
from kquorum.broker.groups.classic_group import (
    CONSUMER,
    ClassicGroup,
    GroupState,
    JoinReply,
    SyncReply,
    group_of,
)
from kquorum.broker.groups.classic_members import ClassicMembers
from kquorum.broker.groups.classic_protocol import ClassicProtocol, Client, check_member
from kquorum.broker.groups.committed_groups import CommittedGroup, CommittedGroups
from kquorum.broker.groups.consumer_group import ConsumerGroup, ConsumerMember, HeldBytes, ResolvedRegex
from kquorum.broker.groups.consumer_protocol import ConsumerProtocol
from kquorum.broker.groups.consumer_records import Change, group_tombstones
from kquorum.broker.groups.group_errors import GroupError
from kquorum.broker.groups.migration import can_downgrade, check_upgrade, downgraded, upgraded
from kquorum.broker.groups.offsets import (
    CommittedOffset,
    OffsetStore,
    Place,
    committed_offset,
    is_expired,
)
from kquorum.broker.groups.settings import ConsumerTimings, GroupSettings
from kquorum.broker.groups.topic_metadata import TopicMetadata
from kquorum.broker.groups.topic_regexes import RegexResolution
from kquorum.broker.replica.partition import Partition
from kquorum.wire.consumer_group_records import (
    CONSUMER_TYPES,
    ConsumerKey,
    CurrentAssignmentValue,
    GroupEpochValue,
    MemberMetadataValue,
    PartitionMetadataValue,
    RegularExpressionValue,
    TargetAssignmentValue,
    TargetEpochValue,
    Value,
    decode_consumer_key,
    decode_consumer_value,
    target_of,
)
from kquorum.wire.data_batch import read_data_records
from kquorum.wire.errors import DecodeError
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.heartbeat import HeartbeatRequest
from kquorum.wire.messages.join_group import JoinGroupRequest
from kquorum.wire.messages.leave_group import LeaveGroupResponse, MemberIdentity
from kquorum.wire.messages.sync_group import SyncGroupRequest
from kquorum.wire.offsets_records import (
    NO_TIMESTAMP,
    GroupKey,
    ModernKey,
    OffsetCommitValue,
    OffsetKey,
    RecordType,
    UnknownKey,
    decode_group_value,
    decode_key,
    decode_offset_value,
    encode_group_key,
    encode_group_value,
    encode_offset_key,
    encode_offset_value,
)
from kquorum.wire.record_batch import BatchHeader
from kquorum.wire.record_parsing import Record
from kquorum.wire.transaction_markers import decode_transaction_marker
from kquorum.wire.uuids import ZERO_UUID

log = logging.getLogger("broker.groups")

NO_GENERATION: Final = -1
_LATEST_MS: Final = 2**63 - 1
_LEADER_DOES_NOT_WAIT: Final = 1
_FIRST_WITH_GROUP_ID_NOT_FOUND: Final = 9
# What one turn of the loop does at most, of work that grows with the groups and their offsets.
_LOOKED_AT_ONCE: Final = 1_000
# So many members that are removed together have their names in the log of the broker.
_NAMED_AT_MOST: Final = 5

_ENDED: Final = object()
_OF_MEMBERS: Final = frozenset(
    {
        RecordType.SHARE_GROUP_MEMBER_METADATA,
        RecordType.STREAMS_GROUP_MEMBER_METADATA,
    }
)
# Kafka refuses to load a group whose parts are removed in another order (rule G3.32).
_ORDER_OF_REMOVAL: Final = (14, 13, 12, 10, 15, 11, 22, 21, 20, 19, 23, 17, 9, 18)
_TYPE_OF_METADATA: Final = {
    RecordType.SHARE_GROUP_METADATA: "share",
    RecordType.STREAMS_GROUP_METADATA: "streams",
}


@dataclass(frozen=True, slots=True)
class OffsetToCommit:
    place: Place
    topic_id: UUID
    offset: int
    leader_epoch: int
    metadata: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Of a member, or of a client that is none: then `generation` is negative and `member_id` empty."""

    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    retention_ms: int
    version: int
    offsets: Sequence[OffsetToCommit]
    transaction: TransactionOf | None = None
    """With one the offsets count when it is committed."""


class ListedGroup(NamedTuple):
    group_id: str
    protocol_type: str
    state: str
    type: str


FetchDone = Callable[[ErrorCode, Mapping[Place, CommittedOffset], Collection[Place]], None]
"""The error, the offsets of the group, and the places of which a transaction has not ended."""


class GroupShard(CoordinatorShard):
    """Implements `broker.groups.classic_protocol.GroupStore` and `broker.groups.consumer_protocol.ConsumerStore`.

    `topics` and `counters` are shared by all shards, `timings` are those of a consumer group by its id.
    """

    SERVES = "groups"
    REQUIRED_ACKS = _LEADER_DOES_NOT_WAIT

    def __init__(
        self,
        partition: Partition,
        settings: Callable[[], GroupSettings],
        new_id: Callable[[], UUID],
        topics: TopicMetadata,
        timings: Callable[[str], ConsumerTimings],
        counters: GroupCounters,
        earliest: Earliest | None = None,
    ) -> None:
        super().__init__(partition, log, earliest)
        self.groups: dict[str, ClassicGroup] = {}
        self.offsets = OffsetStore()
        self.consumers: dict[str, ConsumerGroup] = {}
        self.held_by_consumers = HeldBytes()
        self.committed = CommittedGroups()
        self.topics = topics
        self.timings = timings
        self.counters = counters
        self.classic = ClassicProtocol(self)
        self.consumer = ConsumerProtocol(self)
        self.classic_members = ClassicMembers(self, self.consumer)
        self._settings = settings
        self._new_id = new_id
        self._modern: dict[str, set[tuple[RecordType, bytes]]] = {}
        """The records of share and streams groups, which another broker's coordinator keeps."""
        self._groups_of_topic: dict[str, set[str]] = {}
        self._resolutions: dict[str, RegexResolution] = {}
        self._works: deque[Iterator[None]] = deque()
        self._removed: list[tuple[str, str, str]] = []
        self._ends: dict[str, ErrorCode] = {}

    @property
    def settings(self) -> GroupSettings:
        return self._settings()

    def new_member_id(self, prefix: str) -> str:
        return f"{prefix}-{self._new_id()}" if prefix else str(self._new_id())

    # Loading

    @property
    def load_buffer_bytes(self) -> int:
        return self.settings.load_buffer_bytes

    def loaded(self, now_ms: int) -> None:
        self.state = ShardState.ACTIVE
        self.commit_to(self.partition.log.high_watermark)
        for group in self.groups.values():
            self.classic.begin(now_ms, group)
        for consumers in self.consumers.values():
            self.consumer.begin(now_ms, consumers)
        self._schedule_expiry(now_ms)
        log.info(
            "%s-%d: %d groups with %d offsets loaded, leader epoch %d",
            *self.partition.topic_partition,
            len(self.groups) + len(self.consumers),
            self.offsets.count,
            self.leader_epoch,
        )

    def commit_to(self, high_watermark: int) -> None:
        self.offsets.commit_to(high_watermark)
        self.committed.commit_to(high_watermark)

    def replay_batch(self, data: bytes, position: int, header: BatchHeader) -> None:
        for record in read_data_records(data, position, header):
            if header.is_control:
                self._replay_marker(header.producer_id, record)
            elif record.key is not None:
                producer_id = header.producer_id if header.is_transactional else None
                self.replay(record.offset, record.key, record.value, producer_id)

    def _replay_marker(self, producer_id: int, record: Record) -> None:
        try:
            marker = decode_transaction_marker(record.key, record.value)
        except DecodeError:
            # Control records of other kinds say nothing of groups.
            return
        self.end_transaction(producer_id, record.offset, is_commit=marker.is_commit)

    def end_transaction(self, producer_id: int, record_offset: int, *, is_commit: bool) -> None:
        for key in self.offsets.end_transaction(producer_id, record_offset, is_commit=is_commit):
            self._make_simple(key.group_id)

    def given_up(self) -> None:
        for group in tuple(self.groups.values()):
            self.classic.end(group, ErrorCode.not_coordinator)
        self._resolutions.clear()
        self._works.clear()

    # Replay

    def replay(self, offset: int, key: bytes, value: bytes | None, producer_id: int | None = None) -> None:
        """Raises DecodeError, and ValueError for what contradicts the records before. Earlier records of a key may be
        missing: compaction removed them (rule G3.28)."""
        found = decode_key(key)
        if isinstance(found, OffsetKey):
            self._replay_offset(offset, found, value, producer_id)
        elif isinstance(found, GroupKey):
            self._replay_group(found.group_id, value)
        elif isinstance(found, ModernKey) and found.type in CONSUMER_TYPES:
            decoded = None if value is None else decode_consumer_value(found.type, value)
            self._replay_consumer(offset, decode_consumer_key(found.type, key), decoded)
        elif isinstance(found, ModernKey):
            self._replay_modern(found, key, value)
        else:
            assert isinstance(found, UnknownKey)
            log.warning("a record of the unknown type %d is skipped", found.type)

    def _replay_offset(
        self, offset: int, key: OffsetKey, value: bytes | None, producer_id: int | None
    ) -> None:
        if value is None:
            self.offsets.set(key, None, offset)
            return
        found = committed_offset(decode_offset_value(value), offset)
        if producer_id is not None:
            self.offsets.set_in_transaction(producer_id, key, found)
            return
        self._make_simple(key.group_id)
        self.offsets.set(key, found, offset)

    def _make_simple(self, group_id: str) -> None:
        if not any(group_id in each for each in (self.groups, self.consumers, self._modern)):
            self.groups[group_id] = ClassicGroup(group_id)

    def _replay_group(self, group_id: str, value: bytes | None) -> None:
        known = self.groups.pop(group_id, None)
        error = self._ends.pop(group_id, ErrorCode.unknown_member_id)
        if known is not None:
            self.classic.end(known, error)
        if value is not None:
            self.groups[group_id] = group_of(group_id, decode_group_value(value))

    def _replay_consumer(self, offset: int, key: ConsumerKey, value: Value | None) -> None:
        """Tombstones may come in any order: compaction may have removed others of them."""
        group = self.consumers.get(key.group_id)
        if group is None:
            if value is None:
                return
            group = self._consumer_to_replay(key.group_id)
        name = key.name
        if value is None:
            self._remove_of_consumer(key, group)
        elif isinstance(value, GroupEpochValue):
            group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
        elif isinstance(value, PartitionMetadataValue):
            group.has_partition_metadata = True
        elif isinstance(value, MemberMetadataValue):
            group.put(_member(group, name).with_metadata(value))
        elif isinstance(value, TargetEpochValue):
            group.assignment_epoch = value.assignment_epoch
            group.assignment_timestamp_ms = value.assignment_timestamp
        elif isinstance(value, TargetAssignmentValue):
            group.targets[name] = target_of(value.topic_partitions)
        elif isinstance(value, CurrentAssignmentValue):
            group.put(_member(group, name).with_current(value))
        elif isinstance(value, RegularExpressionValue):
            group.resolve(name, ResolvedRegex(frozenset(value.topics), value.version, value.timestamp))
        is_gone = key.group_id not in self.consumers
        self.committed.note(offset, key.type, name, group, is_gone=is_gone)

    def _remove_of_consumer(self, key: ConsumerKey, group: ConsumerGroup) -> None:
        kind, name = key.type, key.name
        if kind is RecordType.CONSUMER_GROUP_METADATA:
            for member_id in group.members:
                self.consumer.forget(group.group_id, member_id)
            self._note_topics(group.group_id, group.subscriptions.names(), ())
            self._resolutions.pop(group.group_id, None)
            del self.consumers[group.group_id]
            self.held_by_consumers.total -= group.held_bytes
        elif kind is RecordType.CONSUMER_GROUP_PARTITION_METADATA:
            group.has_partition_metadata = False
        elif kind is RecordType.CONSUMER_GROUP_MEMBER_METADATA:
            group.remove(name)
            self.consumer.forget(group.group_id, name)
        elif kind is RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA:
            group.assignment_epoch, group.assignment_timestamp_ms = -1, 0
        elif kind is RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER:
            group.targets.pop(name, None)
        elif kind is RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT:
            if name in group.members:
                group.put(group.members[name].without_current())
        elif kind is RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION:
            group.resolve(name, None)

    def _consumer_to_replay(self, group_id: str) -> ConsumerGroup:
        """Takes the place of a simple group, which offsets alone made (KAFKA-20254)."""
        known = self.groups.get(group_id)
        if group_id in self._modern or (known is not None and not known.is_simple):
            raise ValueError(f"group {group_id} is of another protocol, and has records of a consumer group")
        self.groups.pop(group_id, None)
        made = self.consumers[group_id] = ConsumerGroup(
            group_id, self._note_topics, held_by_all=self.held_by_consumers
        )
        return made

    def _note_topics(self, group_id: str, before: Collection[str], after: Collection[str]) -> None:
        for topic in before:
            if topic not in after:
                readers = self._groups_of_topic.get(topic, set())
                readers.discard(group_id)
                if not readers:
                    self._groups_of_topic.pop(topic, None)
        for topic in after:
            self._groups_of_topic.setdefault(topic, set()).add(group_id)

    def _replay_modern(self, found: ModernKey, key: bytes, value: bytes | None) -> None:
        """Of a group that another broker's coordinator keeps: its id is taken, and its records are known."""
        entry = (found.type, key)
        if value is not None:
            self.groups.pop(found.group_id, None)
            self._modern.setdefault(found.group_id, set()).add(entry)
            return
        kept = self._modern.get(found.group_id)
        if kept is not None:
            kept.discard(entry)
            if not kept:
                del self._modern[found.group_id]

    # Consumer groups

    def change_of(self, now_ms: int, group_id: str, *, is_made: bool) -> Change:
        """Rules G7.12 and G10.1 to G10.4."""
        group = self.consumers.get(group_id)
        if group is not None:
            return Change(group, group.epoch)
        classic = self.groups.get(group_id)
        if group_id in self._modern or (classic is not None and not is_made):
            raise GroupError(ErrorCode.group_id_not_found, f"Group {group_id} is not a consumer group.")
        if not is_made:
            raise GroupError(ErrorCode.group_id_not_found, f"Consumer group {group_id} not found.")
        if classic is None:
            return _begun(group_id)
        tombstone: KeyValue = (encode_group_key(group_id), None)
        if classic.state is GroupState.EMPTY:
            return _begun(group_id, tombstone)
        check_upgrade(classic, self.settings)
        made, records = upgraded(classic, self.topics)

        def begin() -> None:
            log.info("group %s speaks the consumer protocol from now on", group_id)
            for member in made.members.values():
                assert member.classic is not None
                self.consumer.set_session(
                    now_ms, group_id, member.member_id, member.classic.session_timeout_ms
                )

        self._ends[group_id] = ErrorCode.rebalance_in_progress
        return Change(made, made.epoch, [tombstone, *records], [begin])

    def downgrade(self, now_ms: int, group: ConsumerGroup, leaving: Collection[str], done: Done) -> bool:
        if not can_downgrade(group, leaving, self.settings):
            return False
        staying = [member for member_id, member in group.members.items() if member_id not in leaving]
        try:
            made = downgraded(now_ms, group, staying, self.topics)
        except GroupError as error:
            log.warning("group %s stays a consumer group: %s", group.group_id, error.message)
            return False
        self._become_classic(now_ms, group_tombstones(group), made, done, rebalances=True)
        return True

    def replace_by_classic(
        self,
        now_ms: int,
        change: Change,
        former_id: str,
        member: ConsumerMember,
        *,
        rebalances: bool,
        done: Done,
    ) -> None:
        group = change.group
        others = [each for member_id, each in group.members.items() if member_id != former_id]
        made = downgraded(now_ms, group, [*others, member], self.topics)
        records = [*change.records, *group_tombstones(group, {former_id: member.member_id})]
        self._become_classic(now_ms, records, made, done, rebalances=rebalances)

    def _become_classic(
        self,
        now_ms: int,
        records: Sequence[KeyValue],
        made: ClassicGroup,
        done: Done,
        *,
        rebalances: bool,
    ) -> None:
        """The record has one protocol of each member; the group goes on with all."""
        record = (encode_group_key(made.group_id), encode_group_value(made.record()))
        if not self.write(now_ms, [*records, record], done):
            return
        log.info("group %s speaks the classic protocol from now on", made.group_id)
        self.groups[made.group_id] = made
        self.classic.begin(now_ms, made)
        if rebalances and made.state is GroupState.STABLE:
            self.classic.prepare(now_ms, made)

    def topics_changed(self, topics: Collection[str]) -> None:
        for topic in topics:
            for group_id in self._groups_of_topic.get(topic, ()):
                self.consumers[group_id].needs_refresh = True

    def described(self, group_id: str) -> CommittedGroup | None:
        return self.committed.all.get(group_id)

    def begin_resolution(self, group_id: str, resolution: RegexResolution) -> None:
        self._resolutions[group_id] = resolution

    def is_resolving(self, group_id: str) -> bool:
        return group_id in self._resolutions

    @property
    def has_work(self) -> bool:
        """Regular expressions are resolved part by part too, and what is over is removed so."""
        return self.has_to_read or bool(self._resolutions or self._works)

    def work_some(self, now_ms: int) -> None:
        if self.has_to_read:
            self.load_some(now_ms)
            return
        if self._works:
            work = self._works.popleft()
            if next(work, _ENDED) is not _ENDED:
                self._works.append(work)
            return
        group_id, resolution = next(iter(self._resolutions.items()))
        if resolution.advance():
            del self._resolutions[group_id]
            self.consumer.resolved(now_ms, group_id, resolution.result(now_ms))

    # Members of the classic protocol, in groups of either

    def join(self, now_ms: int, request: JoinGroupRequest, client: Client, reply: JoinReply) -> None:
        group = self.consumers.get(request.group_id)
        if group is not None and not group.is_empty and self.classic.check(request, reply):
            self.classic_members.join(now_ms, group, request, client, reply)
        elif group is None or group.is_empty:
            self.classic.join(now_ms, request, client, reply)

    def sync(self, now_ms: int, request: SyncGroupRequest, reply: SyncReply) -> None:
        group = self.consumers.get(request.group_id)
        if group is None:
            self.classic.sync(now_ms, request, reply)
        else:
            self.classic_members.sync(now_ms, group, request, reply)

    def heartbeat(self, now_ms: int, request: HeartbeatRequest, done: Done) -> None:
        group = self.consumers.get(request.group_id)
        if group is None:
            error = self.classic.heartbeat(now_ms, request)
        else:
            error = self.classic_members.heartbeat(now_ms, group, request)
        self.after_writes(now_ms, lambda failed: done(error if failed is ErrorCode.none else failed))

    def leave(
        self,
        now_ms: int,
        group_id: str,
        leaving: Sequence[MemberIdentity],
        done: Callable[[LeaveGroupResponse], None],
    ) -> None:
        group = self.consumers.get(group_id)
        if group is not None:
            self.classic_members.leave(now_ms, group, leaving, done)
            return
        response = self.classic.leave(now_ms, group_id, tuple(leaving))
        self.after_writes(
            now_ms,
            lambda failed: done(
                response if failed is ErrorCode.none else LeaveGroupResponse(error_code=failed)
            ),
        )

    # Writing

    def write(
        self,
        now_ms: int,
        records: Sequence[KeyValue],
        done: Done,
        transaction: TransactionOf | None = None,
    ) -> bool:
        """Whether the log took them; `done` is called in any case. The records change the state before they are
        committed."""
        producer_id = None if transaction is None else transaction.producer.producer_id

        def appended(first_offset: int) -> None:
            for offset, (key, value) in enumerate(records, first_offset):
                self.replay(offset, key, value, producer_id)

        return self._append(now_ms, records, done, appended, transaction)

    def write_group(
        self, now_ms: int, group: ClassicGroup, done: Done, assignments: Mapping[str, bytes] | None = None
    ) -> None:
        """The group itself is ahead of its record, which is not replayed: members wait for this one."""
        record = (encode_group_key(group.group_id), encode_group_value(group.record(assignments)))
        self._append(now_ms, [record], done, lambda _first_offset: None)

    def _append(
        self,
        now_ms: int,
        records: Sequence[KeyValue],
        done: Done,
        appended: Callable[[int], None],
        transaction: TransactionOf | None = None,
    ) -> bool:
        settings = self.settings
        error = self.log.write(
            now_ms,
            records,
            done,
            timeout_ms=settings.commit_timeout_ms,
            appended=appended,
            codec=settings.compression_codec,
            transaction=transaction,
        )
        if error is not ErrorCode.none:
            done(error)
        return error is ErrorCode.none

    def after_writes(self, now_ms: int, done: Done) -> None:
        self.log.after_writes(now_ms, done, timeout_ms=self.settings.commit_timeout_ms)

    def note_removed(self, group_id: str, member_id: str, reason: str) -> None:
        """For the log of the broker, which has a line for all members that are removed together."""
        self._removed.append((group_id, member_id, reason))

    def expire(self, now_ms: int) -> None:
        super().expire(now_ms)
        removed, self._removed = self._removed, []
        if not removed:
            return
        named = [
            f"member {member_id} of group {group_id} ({reason})"
            for group_id, member_id, reason in removed[:_NAMED_AT_MOST]
        ]
        more = len(removed) - len(named)
        log.info(
            "%s-%d: removed %s%s",
            *self.partition.topic_partition,
            ", ".join(named),
            f" and {more} other members" if more else "",
        )

    def make_room(self, now_ms: int, group_id: str) -> ErrorCode:
        group = self.consumers.get(group_id)
        if group is not None:
            self.write(now_ms, group_tombstones(group), lambda _error: None)
            return ErrorCode.none if group_id not in self.consumers else ErrorCode.coordinator_not_available
        kept = self._modern.get(group_id)
        if kept is None:
            return ErrorCode.none
        if self._has_modern_members(group_id):
            return ErrorCode.inconsistent_group_protocol
        self.write(now_ms, _removals(kept), lambda _error: None)
        return ErrorCode.inconsistent_group_protocol if group_id in self._modern else ErrorCode.none

    def _has_modern_members(self, group_id: str) -> bool:
        return any(kind in _OF_MEMBERS for kind, _ in self._modern.get(group_id, ()))

    # Offsets

    def commit_offsets(
        self, now_ms: int, commit: Commit, done: Callable[[Sequence[ErrorCode]], None]
    ) -> None:
        """`done` gets an error for each offset, in their order."""
        is_plain = commit.transaction is None
        error = self._may_commit(commit) if is_plain else self._may_commit_in_transaction(commit)
        if error is not ErrorCode.none:
            self.after_writes(
                now_ms,
                lambda failed: done(
                    [failed if failed is not ErrorCode.none else error] * len(commit.offsets)
                ),
            )
            return
        settings = self.settings
        group = self.groups.get(commit.group_id)
        if (
            is_plain
            and group is not None
            and commit.member_id in group.members
            and group.state in (GroupState.STABLE, GroupState.PREPARING)
        ):
            self.classic.note_life(now_ms, group, commit.member_id)
        # A client may ask for the longest time that it can write.
        expires = NO_TIMESTAMP if commit.retention_ms < 0 else min(now_ms + commit.retention_ms, _LATEST_MS)
        too_large = [_utf16_units(each.metadata) > settings.metadata_max_bytes for each in commit.offsets]
        # A partition that is named often, which no client does, gets one record: the last entry counts in any case.
        last_of = {
            each.place: number
            for number, (each, is_refused) in enumerate(zip(commit.offsets, too_large, strict=True))
            if not is_refused
        }
        records: list[KeyValue] = [
            (
                encode_offset_key(OffsetKey(commit.group_id, *each.place)),
                encode_offset_value(
                    OffsetCommitValue(
                        offset=each.offset,
                        leader_epoch=each.leader_epoch,
                        metadata=each.metadata,
                        commit_timestamp=now_ms,
                        expire_timestamp=expires,
                        topic_id=each.topic_id,
                    )
                ),
            )
            for each in map(commit.offsets.__getitem__, sorted(last_of.values()))
        ]

        def written(failed: ErrorCode) -> None:
            if failed is ErrorCode.none:
                self.counters.offset_commits += len(records)
            done([ErrorCode.offset_metadata_too_large if is_refused else failed for is_refused in too_large])

        self.write(now_ms, records, written, commit.transaction)

    def _may_commit_in_transaction(self, commit: Commit) -> ErrorCode:
        """Rule G5.32. A producer need not say which member it works for; clients before version 3 cannot."""
        group = self.groups.get(commit.group_id)
        if commit.generation < 0 and not commit.member_id and commit.instance_id is None:
            return ErrorCode.none
        consumers = self.consumers.get(commit.group_id)
        if consumers is not None:
            error = self._may_commit_as_consumer(consumers, commit)
            # Clients of this API know no STALE_MEMBER_EPOCH.
            return ErrorCode.illegal_generation if error is ErrorCode.stale_member_epoch else error
        if commit.group_id in self._modern:
            return ErrorCode.unknown_member_id
        if group is None:
            return ErrorCode.none if commit.generation < 0 else ErrorCode.illegal_generation
        return check_member(group, commit.member_id, commit.instance_id, commit.generation)

    def _may_commit(self, commit: Commit) -> ErrorCode:
        """Rules G5.5, G5.6, G5.8 to G5.10."""
        is_anonymous = commit.generation < 0
        consumers = self.consumers.get(commit.group_id)
        if consumers is not None:
            return self._may_commit_as_consumer(consumers, commit)
        if commit.group_id in self._modern:
            has_members = self._has_modern_members(commit.group_id)
            return ErrorCode.none if is_anonymous and not has_members else ErrorCode.unknown_member_id
        group = self.groups.get(commit.group_id)
        if group is None:
            if is_anonymous:
                return ErrorCode.none
            knows = commit.version >= _FIRST_WITH_GROUP_ID_NOT_FOUND
            return ErrorCode.group_id_not_found if knows else ErrorCode.illegal_generation
        if is_anonymous and group.state is GroupState.EMPTY:
            return ErrorCode.none
        if not is_anonymous or commit.member_id or commit.instance_id is not None:
            error = check_member(group, commit.member_id, commit.instance_id, commit.generation)
            if error is not ErrorCode.none:
                return error
        else:
            return ErrorCode.unknown_member_id
        is_completing = group.state is GroupState.COMPLETING
        return ErrorCode.rebalance_in_progress if is_completing else ErrorCode.none

    def _may_commit_as_consumer(self, group: ConsumerGroup, commit: Commit) -> ErrorCode:
        """An epoch before the member's own is good for partitions that the member had at that epoch (KIP-1251)."""
        if commit.generation < 0 and group.is_empty:
            return ErrorCode.none
        member = group.members.get(commit.member_id)
        if member is None:
            return ErrorCode.unknown_member_id
        if member.classic is None and commit.version < _FIRST_WITH_GROUP_ID_NOT_FOUND:
            return ErrorCode.unsupported_version
        if commit.generation == member.epoch:
            return ErrorCode.none
        stale = ErrorCode.stale_member_epoch if member.classic is None else ErrorCode.illegal_generation
        if commit.generation > member.epoch:
            return stale
        for each in commit.offsets:
            topic_id = each.topic_id
            if topic_id == ZERO_UUID:
                topic_id = self.topics.id_of(each.place.topic) or ZERO_UUID
            since = member.assignment_epoch_of(topic_id, each.place.partition)
            if since is None or commit.generation < since:
                return stale
        return ErrorCode.none

    def may_fetch(
        self, group_id: str, member_id: str | None, member_epoch: int, *, is_stable: bool
    ) -> ErrorCode:
        """Rule G5.20: a member of a consumer group says at which epoch it is."""
        if member_id is None and member_epoch < 0:
            return ErrorCode.none
        found = self.consumers.get(group_id) if is_stable else self.committed.all.get(group_id)
        if found is None:
            return ErrorCode.none
        member = found.members.get(member_id or "")
        if member is None:
            return ErrorCode.unknown_member_id
        if member.epoch == member_epoch:
            return ErrorCode.none
        return ErrorCode.stale_member_epoch if member.classic is None else ErrorCode.illegal_generation

    def fetch_offsets(self, now_ms: int, group_id: str, *, is_stable: bool, done: FetchDone) -> None:
        """With `is_stable` the newest state, once it is committed; else what is committed now (rule G5.18)."""
        if not is_stable:
            done(ErrorCode.none, self.offsets.committed(group_id), ())
            return
        found = dict(self.offsets.newest(group_id))
        unstable = frozenset(self.offsets.in_transactions(group_id))
        self.after_writes(now_ms, lambda error: done(error, found, unstable))

    def delete_offsets(
        self,
        now_ms: int,
        group_id: str,
        places: Sequence[Place],
        done: Callable[[ErrorCode, Sequence[ErrorCode]], None],
    ) -> None:
        group = self.groups.get(group_id)
        consumers = self.consumers.get(group_id)
        error = ErrorCode.none
        if not group_id:
            error = ErrorCode.invalid_group_id
        elif group is None and consumers is None and group_id not in self._modern:
            error = ErrorCode.group_id_not_found
        elif (
            group is not None and group.state is not GroupState.EMPTY and group.protocol_type != CONSUMER
        ) or self._has_modern_members(group_id):
            error = ErrorCode.non_empty_group
        if error is not ErrorCode.none:
            self.after_writes(
                now_ms, lambda failed: done(failed if failed is not ErrorCode.none else error, ())
            )
            return
        subscribed = [
            (group is not None and group.is_subscribed(place.topic))
            or (consumers is not None and place.topic in consumers.subscriptions)
            for place in places
        ]
        kept = self.offsets.newest(group_id)
        records: list[KeyValue] = [
            (encode_offset_key(OffsetKey(group_id, *place)), None)
            for place, is_used in zip(places, subscribed, strict=True)
            if not is_used and (place in kept or self.offsets.is_in_transaction(group_id, place))
        ]
        errors = [
            ErrorCode.group_subscribed_to_topic if is_used else ErrorCode.none for is_used in subscribed
        ]

        def written(failed: ErrorCode) -> None:
            if failed is ErrorCode.none:
                self.counters.offset_deletions += len(records)
            done(failed, errors)

        self.write(now_ms, records, written)

    # Groups

    def listed(self) -> Iterator[ListedGroup]:
        """The groups that are there at the first step, each as it is at its own step."""
        classic, consumers = tuple(self.groups.values()), tuple(self.committed.all.values())
        modern = tuple(self._modern.items())
        for group in classic:
            if self.groups.get(group.group_id) is group:
                yield ListedGroup(group.group_id, group.protocol_type or "", group.state.value, "classic")
        for committed in consumers:
            if committed.group_id in self.committed.all:
                yield ListedGroup(committed.group_id, CONSUMER, committed.state.value, CONSUMER)
        for group_id, kept in modern:
            kind = next((_TYPE_OF_METADATA[each] for each, _ in kept if each in _TYPE_OF_METADATA), "share")
            state = "Stable" if self._has_modern_members(group_id) else "Empty"
            yield ListedGroup(group_id, kind, state, kind)

    def delete_groups(
        self, now_ms: int, group_ids: Sequence[str], done: Callable[[Mapping[str, ErrorCode]], None]
    ) -> None:
        """The tombstones of all are one batch."""
        errors = {group_id: self._may_delete(group_id) for group_id in group_ids}
        records: list[KeyValue] = []
        for group_id, error in errors.items():
            if error is ErrorCode.none:
                records += self._tombstones(group_id)

        def written(failed: ErrorCode) -> None:
            done(
                {group_id: failed if error is ErrorCode.none else error for group_id, error in errors.items()}
            )

        self.write(now_ms, records, written)

    def _may_delete(self, group_id: str) -> ErrorCode:
        consumers = self.consumers.get(group_id)
        if consumers is not None:
            return ErrorCode.none if consumers.is_empty else ErrorCode.non_empty_group
        if group_id in self._modern:
            return ErrorCode.non_empty_group if self._has_modern_members(group_id) else ErrorCode.none
        group = self.groups.get(group_id)
        if group is None:
            return ErrorCode.group_id_not_found
        return ErrorCode.none if group.state is GroupState.EMPTY else ErrorCode.non_empty_group

    def _tombstones(self, group_id: str) -> list[KeyValue]:
        places = dict.fromkeys((*self.offsets.newest(group_id), *self.offsets.in_transactions(group_id)))
        return _offset_tombstones(group_id, places) + self._tombstones_of_group(group_id)

    def _tombstones_of_group(self, group_id: str) -> list[KeyValue]:
        if group_id in self.consumers:
            return group_tombstones(self.consumers[group_id])
        if group_id in self._modern:
            return _removals(self._modern[group_id])
        return [(encode_group_key(group_id), None)]

    # Expiry

    def _schedule_expiry(self, now_ms: int) -> None:
        self.timers.set("expiry", now_ms + self.settings.retention_check_ms, self.expire_offsets)

    def expire_offsets(self, now_ms: int) -> None:
        """Rules G3.37 to G3.41 and G5.40. A group that has no offsets left and no members goes too."""
        self._works.append(self._expiry(now_ms))

    def _expiry(self, now_ms: int) -> Iterator[None]:
        """A slice in each step, which writes what it has found."""
        records: list[KeyValue] = []
        looked = 0
        for group_id in (*self.groups, *self.consumers):
            # Of this group, in `records`.
            removed = 0
            for part in _parts(tuple(self.offsets.newest(group_id))):
                expired = self._expired(now_ms, group_id, part)
                self.counters.offset_expirations += len(expired)
                records += _offset_tombstones(group_id, expired)
                removed += len(expired)
                looked += 1 + len(part)
                if looked >= _LOOKED_AT_ONCE:
                    self._remove_some(now_ms, records)
                    records, looked, removed = [], 0, 0
                    yield
            if self._is_over(group_id, removed):
                records += self._tombstones_of_group(group_id)
        self._remove_some(now_ms, records)
        self._schedule_expiry(now_ms)

    def _expired(self, now_ms: int, group_id: str, places: Iterable[Place]) -> list[Place]:
        group, consumers = self.groups.get(group_id), self.consumers.get(group_id)
        kept = self.offsets.newest(group_id)
        retention_ms = self.settings.retention_ms

        def has_expired(place: Place) -> bool:
            found = kept.get(place)
            if found is None or self.offsets.is_in_transaction(group_id, place):
                return False
            if group is not None:
                return _has_expired(group, place, found, now_ms, retention_ms)
            # Offsets of topics that a consumer group reads stay, however old.
            return (
                consumers is not None
                and place.topic not in consumers.subscriptions
                and is_expired(found, now_ms, found.commit_timestamp_ms, retention_ms)
            )

        return [place for place in places if has_expired(place)]

    def _is_over(self, group_id: str, removed: int) -> bool:
        """Whether the group has no members, and no offsets but those that are being `removed`."""
        if self.offsets.in_transactions(group_id) or len(self.offsets.newest(group_id)) > removed:
            return False
        group, consumers = self.groups.get(group_id), self.consumers.get(group_id)
        if group is not None:
            return group.state is GroupState.EMPTY and not group.pending_ids
        return consumers is not None and consumers.is_empty

    def forget_topics(self, now_ms: int, topics: Collection[str]) -> None:
        """Topics were deleted: another topic of the same name has other records (rule G3.42)."""
        # The first step may come late, after the work of other shards.
        end_offset = self.partition.log.log_end_offset
        self._works.append(self._forgetting(now_ms, frozenset(topics), end_offset))

    def _forgetting(self, now_ms: int, topics: Collection[str], end_offset: int) -> Iterator[None]:
        """A slice in each step. What was committed from `end_offset` on is of another topic."""
        records: list[KeyValue] = []
        looked = 0
        for group_id in (*self.groups, *self.consumers, *self._modern):
            newest = self.offsets.newest(group_id)
            for part in _parts((*newest, *self.offsets.in_transactions(group_id))):
                gone = [
                    place
                    for place in dict.fromkeys(part)
                    if place.topic in topics
                    and ((found := newest.get(place)) is None or found.record_offset < end_offset)
                ]
                records += _offset_tombstones(group_id, gone)
                looked += 1 + len(part)
                if looked >= _LOOKED_AT_ONCE:
                    self._remove_some(now_ms, records)
                    records, looked = [], 0
                    yield
        self._remove_some(now_ms, records)

    def _remove_some(self, now_ms: int, records: Sequence[KeyValue]) -> None:
        for part in in_batches(records, record_bytes):
            self.write(now_ms, part, lambda _error: None)


def _member(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    known = group.members.get(member_id)
    return ConsumerMember(member_id=member_id) if known is None else known


def _parts(places: Sequence[Place]) -> Iterator[Sequence[Place]]:
    """At least one, so that a group without offsets takes a step too."""
    for start in range(0, max(len(places), 1), _LOOKED_AT_ONCE):
        yield places[start : start + _LOOKED_AT_ONCE]


def _offset_tombstones(group_id: str, places: Iterable[Place]) -> list[KeyValue]:
    return [(encode_offset_key(OffsetKey(group_id, *place)), None) for place in places]


def _begun(group_id: str, *records: KeyValue) -> Change:
    group = ConsumerGroup(group_id, _note_nothing)
    return Change(group, group.epoch, list(records))


def _note_nothing(_group_id: str, _before: Collection[str], _after: Collection[str]) -> None:
    """Of a group that the shard does not keep yet."""


def _has_expired(
    group: ClassicGroup, place: Place, found: CommittedOffset, now_ms: int, retention_ms: int
) -> bool:
    since_ms = found.commit_timestamp_ms
    if group.protocol_type is not None:
        if group.state is GroupState.EMPTY:
            if group.state_timestamp_ms >= 0:
                since_ms = group.state_timestamp_ms
        elif (
            group.state is not GroupState.STABLE
            or group.subscribed is None
            or place.topic in group.subscribed
        ):
            return False
    elif group.members or group.pending_ids:
        return False
    return is_expired(found, now_ms, since_ms, retention_ms)


def _removals(kept: Collection[tuple[RecordType, bytes]]) -> list[KeyValue]:
    ordered = sorted(kept, key=lambda each: (_ORDER_OF_REMOVAL.index(each[0]), each[1]))
    return [(key, None) for _, key in ordered]


def _utf16_units(text: str) -> int:
    """The length of a string of Java."""
    return len(text) + sum(character > "￿" for character in text)


def is_same_topic(kept: UUID, asked: UUID) -> bool:
    """Whether an offset that was committed for the topic `kept` is one of the topic `asked` (KAFKA-19154)."""
    return ZERO_UUID in (kept, asked) or kept == asked
