"""A classic group: its members, its state, the protocol that all members support (rules G4.7 to G4.15).

Here are the values and what follows from them. `classic_protocol` decides what a request or a timer changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kquorum.wire.errors import DecodeError
from kquorum.wire.message_codec import decode_bounded
from kquorum.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kquorum.wire.messages.join_group import JoinGroupResponse
from kquorum.wire.messages.sync_group import SyncGroupResponse
from kquorum.wire.offsets_records import GroupMetadataValue, MemberMetadata

CONSUMER: Final = "consumer"
# Of all members of a group, at a rebalance: 30 ms.
_MOST_TOPICS: Final = 100_000
# What a member takes besides its texts and bytes, and each of its protocols.
_MEMBER_BYTES, _PROTOCOL_BYTES = 1_000, 150
Protocols = tuple[tuple[str, bytes], ...]
JoinReply = Callable[[JoinGroupResponse], None]
SyncReply = Callable[[SyncGroupResponse], None]


class GroupState(StrEnum):
    """In the words of Kafka's answers."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    """Members are joining."""
    COMPLETING = "CompletingRebalance"
    """The leader is to assign partitions."""
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(slots=True)
class Member:
    """`awaiting_join` and `awaiting_sync` answer the request that the member waits for. `is_new`: its first join has no
    answer yet."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    awaiting_join: JoinReply | None = None
    awaiting_sync: SyncReply | None = None
    is_new: bool = False

    @property
    def held_bytes(self) -> int:
        return held_bytes(self.protocols, self.client_id) + len(self.instance_id or "")

    def metadata(self, protocol: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")


@dataclass(slots=True)
class ClassicGroup:
    """A group without protocol type and members is simple: a consumer that assigns its partitions itself made it by a
    commit. The first member is the leader. `pending_ids` were handed out to clients, which are to join with them
    (KIP-394).
    """

    group_id: str
    state: GroupState = GroupState.EMPTY
    state_timestamp_ms: int = -1
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    static: dict[str, str] = field(default_factory=dict)
    """Member id by group instance id (KIP-345)."""
    pending_ids: dict[str, None] = field(default_factory=dict)
    """The oldest first."""
    pending_sync: set[str] = field(default_factory=set)
    is_initial: bool = False
    """Whether this rebalance began with the empty group: it waits for more members before it ends (KIP-134)."""
    has_new_member: bool = False
    subscribed: frozenset[str] | None = None
    """The topics of the members; None if a subscription cannot be read, or the members are no consumers."""
    _supported: Counter[str] = field(default_factory=Counter)
    _member_bytes: int = 0
    _awaiting_joins: int = 0

    @property
    def is_simple(self) -> bool:
        return self.protocol_type is None and not self.members and not self.pending_ids

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def held_bytes(self) -> int:
        """About what the members take in memory, and the ids that were handed out."""
        return self._member_bytes + sum(map(len, self.pending_ids)) + _PROTOCOL_BYTES * len(self.pending_ids)

    @property
    def has_all_joined(self) -> bool:
        return self._awaiting_joins == len(self.members) and not self.pending_ids

    @property
    def awaiting_joins(self) -> int:
        return self._awaiting_joins

    def change_state(self, now_ms: int, state: GroupState) -> None:
        self.state = state
        self.state_timestamp_ms = now_ms

    # Members

    def add(self, member: Member, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._member_bytes += member.held_bytes
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id
        self._supported.update({name for name, _ in member.protocols})
        self.pending_ids.pop(member.member_id, None)
        self._awaiting_joins += member.awaiting_join is not None

    def remove(self, member_id: str) -> Member | None:
        """Its waiting requests are the caller's to answer."""
        self.pending_sync.discard(member_id)
        self.pending_ids.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self._member_bytes -= member.held_bytes
        self._supported.subtract({name for name, _ in member.protocols})
        self._awaiting_joins -= member.awaiting_join is not None
        if member.instance_id is not None and self.static.get(member.instance_id) == member_id:
            del self.static[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def replace_static(self, former_id: str, member_id: str) -> Member:
        """The instance restarted: another member id in the same place. Leader role and assignment pass on."""
        member = self.members[former_id]
        # In the same place of the order.
        self.members = {
            member_id if each == former_id else each: value for each, value in self.members.items()
        }
        member.member_id = member_id
        assert member.instance_id is not None
        self.static[member.instance_id] = member_id
        if self.leader == former_id:
            self.leader = member_id
        if former_id in self.pending_sync:
            self.pending_sync.remove(former_id)
            self.pending_sync.add(member_id)
        return member

    def update(self, member: Member, protocols: Protocols, rebalance_ms: int, session_ms: int) -> None:
        self._supported.subtract({name for name, _ in member.protocols})
        self._supported.update({name for name, _ in protocols})
        self._member_bytes -= member.held_bytes
        member.protocols = protocols
        self._member_bytes += member.held_bytes
        member.rebalance_timeout_ms = rebalance_ms
        member.session_timeout_ms = session_ms

    def await_join(self, member: Member, reply: JoinReply) -> None:
        """A member that joins again before its answer gets one answer, to its last request."""
        self._awaiting_joins += member.awaiting_join is None
        member.awaiting_join = reply

    def answer_join(self, member: Member, response: JoinGroupResponse) -> None:
        reply, member.awaiting_join = member.awaiting_join, None
        if reply is not None:
            self._awaiting_joins -= member.member_id in self.members
            reply(response)

    # The protocol

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member may join with these."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        if protocol_type != self.protocol_type:
            return False
        return any(self._supported[name] == len(self.members) for name, _ in protocols)

    def candidates(self) -> set[str]:
        """The protocols that every member supports."""
        return {name for name, count in self._supported.items() if count == len(self.members) and count}

    def selected_protocol(self) -> str:
        """Each member votes for the first of its protocols that all support. In a tie the first vote counts."""
        candidates = self.candidates()
        votes: Counter[str] = Counter()
        for member in self.members.values():
            votes.update([next(name for name, _ in member.protocols if name in candidates)])
        return votes.most_common(1)[0][0]

    def learn_subscriptions(self) -> None:
        self.subscribed = self._subscriptions()

    def _subscriptions(self) -> frozenset[str] | None:
        if self.protocol_type != CONSUMER:
            return None
        if not self.members:
            return frozenset()
        if self.protocol is None:
            return None
        topics: set[str] = set()
        left = _MOST_TOPICS
        for member in self.members.values():
            found = subscription_of(member.metadata(self.protocol), left)
            if found is None:
                return None
            left -= len(found)
            topics.update(found)
        return frozenset(topics)

    def is_subscribed(self, topic: str) -> bool:
        """A consumer group whose subscriptions are unknown counts as subscribed to every topic (rule G5.26)."""
        if self.protocol_type != CONSUMER or self.state is GroupState.EMPTY:
            return False
        return self.subscribed is None or topic in self.subscribed

    # The record

    def record(self, assignments: Mapping[str, bytes] | None = None) -> GroupMetadataValue:
        """With `assignments` in place of the present ones."""
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=self.state_timestamp_ms,
            members=tuple(
                MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata(self.protocol),
                    assignment=member.assignment
                    if assignments is None
                    else assignments.get(member.member_id, b""),
                )
                for member in self.members.values()
            ),
        )


def group_of(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """As a new coordinator finds it in the log: with members it is stable (rule G3.30)."""
    group = ClassicGroup(
        group_id,
        GroupState.STABLE if value.members else GroupState.EMPTY,
        value.current_state_timestamp,
        value.generation,
        value.protocol_type or None,
        value.protocol,
    )
    for each in value.members:
        timeout_ms = each.session_timeout if each.rebalance_timeout == -1 else each.rebalance_timeout
        member = Member(
            each.member_id,
            each.group_instance_id,
            each.client_id,
            each.client_host,
            timeout_ms,
            each.session_timeout,
            ((value.protocol or "", each.subscription),),
            each.assignment,
        )
        group.add(member, value.protocol_type)
    group.leader = value.leader
    group.protocol_type = value.protocol_type or None
    group.learn_subscriptions()
    return group


def subscription_of(metadata: bytes, most: int) -> tuple[str, ...] | None:
    """The topics that a consumer subscribes to. What later versions add stands behind them (rule G4.13). None where
    they cannot be read, or are more than `most`: the metadata are the client's, and may name millions."""
    try:
        found, _ = decode_bounded(ConsumerProtocolSubscription, 0, metadata, 2, most)
    except DecodeError:
        return None
    return tuple(found.topics)


def held_bytes(protocols: Protocols, client_id: str) -> int:
    """About what a member takes in memory."""
    of_protocols = sum(len(name) + len(metadata) + _PROTOCOL_BYTES for name, metadata in protocols)
    return _MEMBER_BYTES + len(client_id) + of_protocols
