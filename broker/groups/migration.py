"""A classic group becomes a consumer group when a member of the consumer protocol joins it, and a classic group again
when only members of the classic protocol are left (rules G10.1 to G10.21). Members go on with what they have."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable
from typing import Final
from uuid import UUID

from kquorum.broker.coordinators.answers import KeyValue
from kquorum.broker.groups.classic_group import CONSUMER, ClassicGroup, GroupState, Member
from kquorum.broker.groups.consumer_group import (
    ClassicMember,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
)
from kquorum.broker.groups.consumer_records import group_records
from kquorum.broker.groups.group_errors import GroupError
from kquorum.broker.groups.settings import GroupSettings
from kquorum.broker.groups.topic_metadata import TopicMetadata
from kquorum.wire.consumer_group_records import Assigned, Target
from kquorum.wire.errors import DecodeError
from kquorum.wire.message_codec import decode, decode_bounded, encode
from kquorum.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from kquorum.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kquorum.wire.messages.error_codes import ErrorCode

_INT16: Final = struct.Struct(">h")
# Of the arrays in a subscription together: topics, and the partitions that the member has.
_MOST_ELEMENTS: Final = 100_000
_NEWEST: Final = ConsumerProtocolAssignment.versions[1]


def check_upgrade(group: ClassicGroup, settings: GroupSettings) -> None:
    """Raises GroupError. GROUP_ID_NOT_FOUND is Kafka's answer."""
    what = f"Cannot upgrade classic group {group.group_id} to consumer group because"
    if not settings.consumer_migration.upgrades:
        raise _not_found(f"{what} online upgrade is disabled.")
    if group.protocol_type != CONSUMER:
        raise _not_found(f"{what} the group does not use the consumer embedded protocol.")
    if len(group.members) > settings.consumer_max_size:
        raise _not_found(f"{what} the group size exceeds the consumer group maximum size.")


def upgraded(group: ClassicGroup, topics: TopicMetadata) -> tuple[ConsumerGroup, list[KeyValue]]:
    """The consumer group in place of a classic one, and its records. Raises GroupError."""
    made = ConsumerGroup(group.group_id, lambda _group_id, _before, _after: None)
    made.epoch = made.assignment_epoch = group.generation
    for member in group.members.values():
        if group.protocol is not None:
            metadata = member.metadata(group.protocol)
        else:
            metadata = member.protocols[0][1]
        found = _subscription(group.group_id, metadata)
        assigned = _assigned(group, member, topics)
        made.targets[member.member_id] = {topic: frozenset(each) for topic, each in assigned.items()}
        made.put(
            ConsumerMember(
                member_id=member.member_id,
                epoch=group.generation,
                previous_epoch=group.generation,
                state=MemberState.STABLE,
                instance_id=member.instance_id,
                rack_id=found.rack_id,
                client_id=member.client_id,
                client_host=member.client_host,
                topics=frozenset(found.topics),
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                assigned=assigned,
                classic=ClassicMember(member.session_timeout_ms, member.protocols),
            )
        )
    made.metadata_hash = topics.hash_of(made.subscriptions.names())
    records = group_records(
        group.group_id,
        made.members.values(),
        epoch=made.epoch,
        metadata_hash=made.metadata_hash,
        timestamp_ms=0,
    )
    return made, records


def can_downgrade(group: ConsumerGroup, leaving: Collection[str], settings: GroupSettings) -> bool:
    """Whether a group without these members is to be a classic one."""
    staying = [member for member_id, member in group.members.items() if member_id not in leaving]
    return (
        bool(staying)
        and settings.consumer_migration.downgrades
        and len(staying) <= settings.max_size
        and all(member.classic is not None for member in staying)
    )


def downgraded(
    now_ms: int, group: ConsumerGroup, members: Iterable[ConsumerMember], topics: TopicMetadata
) -> ClassicGroup:
    """The classic group of these members, each with its target as its assignment. Raises GroupError."""
    made = ClassicGroup(
        group.group_id, GroupState.STABLE, now_ms, generation=group.epoch, protocol_type=CONSUMER
    )
    for member in members:
        assert member.classic is not None
        made.add(
            Member(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.classic.session_timeout_ms,
                member.classic.protocols,
            ),
            CONSUMER,
        )
    made.protocol = made.selected_protocol()
    made.learn_subscriptions()
    for each in made.members.values():
        metadata = each.metadata(made.protocol)
        _subscription(group.group_id, metadata)
        target = group.target(each.member_id, each.instance_id)
        each.assignment = encoded_assignment(target, metadata, topics)
    return made


def encoded_assignment(assignment: Target | Assigned, metadata: bytes, topics: TopicMetadata) -> bytes:
    """For a member of the classic protocol, in the version of its subscription `metadata`. Topics that are gone are
    left out."""
    version = min(max(_INT16.unpack_from(metadata)[0], 0), _NEWEST)
    entries = [
        TopicPartition(topic=name, partitions=tuple(sorted(assignment[topic_id])))
        for topic_id in sorted(assignment)
        if (name := topics.name_of(topic_id)) is not None
    ]
    return _INT16.pack(version) + encode(
        ConsumerProtocolAssignment(assigned_partitions=tuple(entries)), version
    )


def decoded_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """In the version that the data begins with; of a later one the first fields are known. Raises DecodeError."""
    if len(metadata) < _INT16.size:
        raise DecodeError("a subscription has no version")
    version = _INT16.unpack_from(metadata)[0]
    if version < 0:
        raise DecodeError(f"a subscription has the version {version}")
    newest = ConsumerProtocolSubscription.versions[1]
    found, _ = decode_bounded(
        ConsumerProtocolSubscription, min(version, newest), metadata, _INT16.size, _MOST_ELEMENTS
    )
    return found


def _subscription(group_id: str, metadata: bytes) -> ConsumerProtocolSubscription:
    try:
        return decoded_subscription(metadata)
    except DecodeError:
        raise _not_found(
            f"Cannot migrate group {group_id} because the embedded consumer protocol is malformed."
        ) from None


def _assigned(group: ClassicGroup, member: Member, topics: TopicMetadata) -> Assigned:
    if not member.assignment:
        return {}
    try:
        version = min(_INT16.unpack_from(member.assignment)[0], _NEWEST)
        found, _ = decode(ConsumerProtocolAssignment, version, member.assignment, _INT16.size)
    except (DecodeError, struct.error):
        raise _not_found(
            f"Cannot upgrade classic group {group.group_id} to consumer group because the embedded consumer protocol "
            "is malformed."
        ) from None
    if found.user_data:
        raise _not_found(
            f"Cannot upgrade classic group {group.group_id} to consumer group because an unsupported custom assignor "
            "is in use. Please refer to the documentation or switch to a default assignor before re-attempting the "
            "upgrade."
        )
    assigned: dict[UUID, dict[int, int]] = {}
    for each in found.assigned_partitions:
        topic_id = topics.id_of(each.topic)
        if topic_id is not None:
            assigned.setdefault(topic_id, {}).update(dict.fromkeys(each.partitions, group.generation))
    return assigned


def _not_found(message: str) -> GroupError:
    return GroupError(ErrorCode.group_id_not_found, message)
