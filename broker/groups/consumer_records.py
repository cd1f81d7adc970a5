"""The records of a consumer group, as keys and values, and in which order they are written (rules G7.24 and G3.32)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kquorum.broker.coordinators.answers import KeyValue
from kquorum.broker.groups.consumer_group import ConsumerGroup, ConsumerMember, ResolvedRegex
from kquorum.wire.consumer_group_records import (
    ClassicMemberMetadata,
    ClassicProtocolEntry,
    ConsumerKey,
    CurrentAssignmentValue,
    GroupEpochValue,
    MemberMetadataValue,
    RegularExpressionValue,
    Target,
    TargetAssignmentValue,
    TargetEpochValue,
    assigned_entries,
    encode_consumer_key,
    encode_consumer_value,
    target_entries,
)
from kquorum.wire.offsets_records import RecordType

_EPOCH = RecordType.CONSUMER_GROUP_METADATA
_TOPICS = RecordType.CONSUMER_GROUP_PARTITION_METADATA
_MEMBER = RecordType.CONSUMER_GROUP_MEMBER_METADATA
_TARGET_EPOCH = RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA
_TARGET = RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER
_CURRENT = RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT
_REGEX = RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION


@dataclass(slots=True)
class Change:
    """What a request changes in a group: `epoch` is the group's epoch with it, `then` is done once the log has the
    records."""

    group: ConsumerGroup
    epoch: int
    records: list[KeyValue] = field(default_factory=list)
    then: list[Callable[[], None]] = field(default_factory=list)


def member_record(group_id: str, member: ConsumerMember) -> KeyValue:
    classic = member.classic
    value = MemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.topics)),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=None
        if classic is None
        else ClassicMemberMetadata(
            session_timeout_ms=classic.session_timeout_ms,
            supported_protocols=tuple(
                ClassicProtocolEntry(name=name, metadata=metadata) for name, metadata in classic.protocols
            ),
        ),
    )
    return _key(_MEMBER, group_id, member.member_id), encode_consumer_value(value)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> KeyValue:
    value = GroupEpochValue(epoch=epoch, metadata_hash=metadata_hash)
    return _key(_EPOCH, group_id), encode_consumer_value(value)


def target_record(group_id: str, member_id: str, target: Target) -> KeyValue:
    value = TargetAssignmentValue(topic_partitions=target_entries(target))
    return _key(_TARGET, group_id, member_id), encode_consumer_value(value)


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> KeyValue:
    value = TargetEpochValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return _key(_TARGET_EPOCH, group_id), encode_consumer_value(value)


def current_record(group_id: str, member: ConsumerMember) -> KeyValue:
    value = CurrentAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=assigned_entries(member.assigned),
        partitions_pending_revocation=assigned_entries(member.pending_revocation),
    )
    return _key(_CURRENT, group_id, member.member_id), encode_consumer_value(value)


def regex_record(group_id: str, regex: str, found: ResolvedRegex) -> KeyValue:
    value = RegularExpressionValue(
        topics=tuple(sorted(found.topics)), version=found.version, timestamp=found.timestamp_ms
    )
    return _key(_REGEX, group_id, regex), encode_consumer_value(value)


def regex_tombstone(group_id: str, regex: str) -> KeyValue:
    return _key(_REGEX, group_id, regex), None


def topics_tombstone(group_id: str) -> KeyValue:
    """Of the record that Kafka before 4.1 wrote."""
    return _key(_TOPICS, group_id), None


def member_tombstones(group_id: str, member_id: str) -> list[KeyValue]:
    return [(_key(kind, group_id, member_id), None) for kind in (_CURRENT, _TARGET, _MEMBER)]


def group_tombstones(group: ConsumerGroup, replaced: Mapping[str, str] | None = None) -> list[KeyValue]:
    """`replaced`: ids of members whose records earlier records of the batch put in place of others'."""
    new_ids = replaced or {}
    group_id = group.group_id
    members = [new_ids.get(member_id, member_id) for member_id in group.members]
    targets = dict.fromkeys((*members, *(new_ids.get(each, each) for each in group.targets)))
    return [
        *_tombstones(_CURRENT, group_id, members),
        *_tombstones(_TARGET, group_id, targets),
        (_key(_TARGET_EPOCH, group_id), None),
        *_tombstones(_MEMBER, group_id, members),
        *_tombstones(_REGEX, group_id, group.resolved),
        (_key(_TOPICS, group_id), None),
        (_key(_EPOCH, group_id), None),
    ]


def group_records(
    group_id: str,
    members: Iterable[ConsumerMember],
    *,
    epoch: int,
    metadata_hash: int,
    timestamp_ms: int,
) -> list[KeyValue]:
    """Of a group whose members have what they are to have."""
    members = list(members)
    targets = {
        member.member_id: {topic: frozenset(each) for topic, each in member.assigned.items()}
        for member in members
    }
    return [
        *(member_record(group_id, member) for member in members),
        epoch_record(group_id, epoch, metadata_hash),
        *(target_record(group_id, member_id, target) for member_id, target in targets.items()),
        target_epoch_record(group_id, epoch, timestamp_ms),
        *(current_record(group_id, member) for member in members),
    ]


def _tombstones(kind: RecordType, group_id: str, names: Iterable[str]) -> list[KeyValue]:
    return [(_key(kind, group_id, name), None) for name in names]


def _key(kind: RecordType, group_id: str, name: str = "") -> bytes:
    return encode_consumer_key(ConsumerKey(kind, group_id, name))
