"""A consumer group (KIP-848): its members, its epochs, which partitions each member is to have and has (rules G7.9
to G7.10 and G3.28 to G3.34).

Here are the values, how records change them, and what follows from them. `consumer_protocol` decides. The group epoch
counts changes of what the assignment depends on; the assignment epoch is the group epoch of the target assignment; a
member's epoch is the assignment epoch that it has reached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple
from uuid import UUID

from kquorum.wire.consumer_group_records import (
    Assigned,
    CurrentAssignmentValue,
    MemberMetadataValue,
    Target,
    assigned_of,
)

FIRST_EPOCH: Final = 1
"""Of a group whose epochs are not in the log: its members read no topics yet."""
JOINING: Final = 0
"""The epoch of a member that joins."""
LEFT: Final = -1
"""The epoch of a member that leaves, and of one whose assignment is gone."""
LEFT_FOR_A_WHILE: Final = -2
"""The epoch of a static member that is to come back under its instance id."""
NO_EPOCH: Final = -1
_OBJECT_BYTES: Final = 64
NOTHING_ASSIGNED: Final[Assigned] = {}
NO_TARGET: Final[Target] = {}


class MemberState(IntEnum):
    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """The member is to give partitions up, and still has them."""
    UNRELEASED_PARTITIONS = 2
    """The member waits for partitions that other members still have."""
    UNKNOWN = 127
    """Of a later release."""

    @classmethod
    def _missing_(cls, _value: object) -> MemberState:
        return cls.UNKNOWN


class ConsumerGroupState(StrEnum):
    """In the words of Kafka's answers."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class ClassicMember(NamedTuple):
    """What a member has that speaks the classic protocol. `protocols` are names with metadata."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    """`pending_revocation` are the partitions that the member is to give up. `regex` is empty without one."""

    member_id: str
    epoch: int = JOINING
    previous_epoch: int = NO_EPOCH
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str | None = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    assigned: Assigned = field(default_factory=dict)
    pending_revocation: Assigned = field(default_factory=dict)
    classic: ClassicMember | None = None

    @property
    def held_bytes(self) -> int:
        """What it takes in memory by what its client chose, about; a text has at least the size of an object."""
        protocols = () if self.classic is None else self.classic.protocols
        texts = (self.member_id, self.client_id, self.instance_id, self.rack_id, self.regex, *self.topics)
        return sum(_OBJECT_BYTES + len(text or "") for text in texts) + sum(
            _OBJECT_BYTES + len(name) + len(metadata) for name, metadata in protocols
        )

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == assignment_epoch

    def assignment_epoch_of(self, topic_id: UUID, partition: int) -> int | None:
        """None: the member has not had this partition since it was another's."""
        found = self.assigned.get(topic_id, {}).get(partition)
        return self.pending_revocation.get(topic_id, {}).get(partition) if found is None else found

    def with_metadata(self, value: MemberMetadataValue) -> ConsumerMember:
        classic = value.classic_member_metadata
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
            regex=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            # Kafka's brokers before 3.8 wrote nothing of it, which reads as one without protocols.
            classic=None
            if classic is None or not classic.supported_protocols
            else ClassicMember(
                classic.session_timeout_ms,
                tuple((each.name, each.metadata) for each in classic.supported_protocols),
            ),
        )

    def with_current(self, value: CurrentAssignmentValue) -> ConsumerMember:
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state),
            assigned=assigned_of(value.assigned_partitions, value.member_epoch),
            pending_revocation=assigned_of(value.partitions_pending_revocation, value.member_epoch),
        )

    def without_current(self) -> ConsumerMember:
        return replace(self, epoch=LEFT, previous_epoch=LEFT, assigned={}, pending_revocation={})


class ResolvedRegex(NamedTuple):
    """The topics that a regular expression matched: in the metadata image at offset `version`, at `timestamp_ms`."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


NOT_RESOLVED: Final = ResolvedRegex(frozenset(), 0, 0)


@dataclass(slots=True)
class Subscriptions:
    """Which topics the members of a group name, and which their regular expressions match, with counts."""

    by_name: Counter[str] = field(default_factory=Counter)
    by_regex: Counter[str] = field(default_factory=Counter)

    def names(self) -> set[str]:
        return set(self.by_name) | set(self.by_regex)

    def copy(self) -> Subscriptions:
        return Subscriptions(Counter(self.by_name), Counter(self.by_regex))

    def __contains__(self, topic: str) -> bool:
        return topic in self.by_name or topic in self.by_regex


def count(counter: Counter[str], names: Iterable[str], step: int) -> None:
    """A name that nothing counts any more is not in the counter."""
    for name in names:
        found = counter[name] + step
        if found:
            counter[name] = found
        else:
            del counter[name]


@dataclass(slots=True)
class HeldBytes:
    total: int = 0


@dataclass(slots=True)
class ConsumerGroup:
    """`needs_refresh`: the topics may have changed since the metadata hash was computed (rule G7.55)."""

    group_id: str
    note_topics: Callable[[str, Collection[str], Collection[str]], None]
    """Gets the group's id, the topics that it read before, and those that it reads now."""
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    assignment_epoch: int = FIRST_EPOCH
    assignment_timestamp_ms: int = 0
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    static: dict[str, str] = field(default_factory=dict)
    """Member id by group instance id."""
    resolved: dict[str, ResolvedRegex] = field(default_factory=dict)
    has_partition_metadata: bool = False
    needs_refresh: bool = True
    subscriptions: Subscriptions = field(default_factory=Subscriptions)
    regexes: Counter[str] = field(default_factory=Counter)
    """How many members use a regular expression."""
    assignors: Counter[str] = field(default_factory=Counter)
    classic_count: int = 0
    classic_protocols: Counter[str] = field(default_factory=Counter)
    held_bytes: int = 0
    """Of all members."""
    held_by_all: HeldBytes = field(default_factory=HeldBytes)
    """Of the members of all groups that share it."""
    _owned: dict[UUID, dict[int, int]] = field(default_factory=dict)

    # What follows

    @property
    def state(self) -> ConsumerGroupState:
        return state_of(self.epoch, self.assignment_epoch, self.members)

    @property
    def is_empty(self) -> bool:
        return not self.members

    def owner_epoch(self, topic_id: UUID, partition: int) -> int:
        """The epoch of the member that has the partition, or is to give it up; -1 if no member does."""
        return self._owned.get(topic_id, {}).get(partition, NO_EPOCH)

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = None if instance_id is None else self.static.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def target(self, member_id: str, instance_id: str | None = None) -> Target:
        """A static member takes over the target of the member that had its instance id."""
        if instance_id is not None:
            member_id = self.static.get(instance_id, member_id)
        return self.targets.get(member_id, NO_TARGET)

    def supports(self, protocol_type: str, protocols: Collection[str]) -> bool:
        """Whether a member that speaks the classic protocol may join with these."""
        if protocol_type != "consumer":
            return False
        return any(self.classic_protocols[name] == self.classic_count for name in protocols)

    def is_waiting_for_others(self, member: ConsumerMember) -> bool:
        """Whether another member still has a partition of this member's target."""
        return member.state is MemberState.UNRELEASED_PARTITIONS and any(
            partition not in member.assigned.get(topic_id, {})
            and self.owner_epoch(topic_id, partition) != NO_EPOCH
            for topic_id, partitions in self.targets.get(member.member_id, NO_TARGET).items()
            for partition in partitions
        )

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """An expression that is not resolved matches nothing yet."""
        found = self.resolved.get(member.regex, NOT_RESOLVED) if member.regex else NOT_RESOLVED
        return member.topics | found.topics if found.topics else member.topics

    def preferred_assignor(self, before: ConsumerMember | None, after: ConsumerMember | None) -> str | None:
        """With `after` in place of `before`. Most votes count; in a tie the first name does."""
        votes = Counter(self.assignors)
        if before is not None and before.assignor is not None:
            votes[before.assignor] -= 1
        if after is not None and after.assignor is not None:
            votes[after.assignor] += 1
        chosen = [name for name, number in votes.items() if number > 0]
        return min(chosen, key=lambda name: (-votes[name], name)) if chosen else None

    def subscriptions_with(
        self, before: ConsumerMember | None, after: ConsumerMember | None
    ) -> tuple[Subscriptions, Counter[str]]:
        """The topics, and the uses of regular expressions, with `after` in place of `before`."""
        found, regexes = self.subscriptions.copy(), Counter(self.regexes)
        if before is not None:
            count(found.by_name, before.topics, -1)
            if before.regex:
                count(regexes, (before.regex,), -1)
        if after is not None:
            count(found.by_name, after.topics, +1)
            if after.regex:
                count(regexes, (after.regex,), +1)
        if before is not None and before.regex and before.regex not in regexes:
            count(found.by_regex, self.resolved.get(before.regex, NOT_RESOLVED).topics, -1)
        return found, regexes

    # Replay

    def put(self, member: ConsumerMember) -> None:
        """Raises ValueError for a partition that a member of the same or a later epoch has."""
        former = self.members.get(member.member_id)
        if former is not None:
            self._release(former.assigned, former.epoch)
            self._release(former.pending_revocation, former.epoch)
        self._take(member.assigned, member.epoch)
        self._take(member.pending_revocation, member.epoch)
        self._count_metadata(former, member)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> ConsumerMember | None:
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self._release(member.assigned, member.epoch)
        self._release(member.pending_revocation, member.epoch)
        self._count_metadata(member, None)
        if member.instance_id is not None and self.static.get(member.instance_id) == member_id:
            del self.static[member.instance_id]
        return member

    def resolve(self, regex: str, found: ResolvedRegex | None) -> None:
        topics_before = self.subscriptions.names()
        former = self.resolved.pop(regex, None)
        if former is not None:
            count(self.subscriptions.by_regex, former.topics, -1)
        if found is not None:
            self.resolved[regex] = found
            count(self.subscriptions.by_regex, found.topics, +1)
        self._tell(topics_before)

    def _tell(self, before: Collection[str]) -> None:
        after = self.subscriptions.names()
        if before != after:
            self.note_topics(self.group_id, before, after)

    def _count_metadata(self, before: ConsumerMember | None, after: ConsumerMember | None) -> None:
        topics = (_topics_of(before), _topics_of(after))
        if topics[0] != topics[1]:
            names_before = self.subscriptions.names()
            count(self.subscriptions.by_name, topics[0], -1)
            count(self.subscriptions.by_name, topics[1], +1)
            self._tell(names_before)
        for member, step in ((before, -1), (after, +1)):
            if member is None:
                continue
            self.held_bytes += step * member.held_bytes
            self.held_by_all.total += step * member.held_bytes
            if member.regex:
                count(self.regexes, (member.regex,), step)
            if member.assignor is not None:
                count(self.assignors, (member.assignor,), step)
            if member.classic is not None:
                self.classic_count += step
                count(self.classic_protocols, {name for name, _ in member.classic.protocols}, step)

    def _take(self, assigned: Assigned, epoch: int) -> None:
        """Raises ValueError. Compaction may have kept an older assignment of a member beside the newer one of another
        that has the partition now (KAFKA-19862)."""
        for topic_id, partitions in assigned.items():
            owned = self._owned.setdefault(topic_id, {})
            for partition in partitions:
                known = owned.get(partition)
                if known is not None and known >= epoch:
                    raise ValueError(
                        f"group {self.group_id}: two members have partition {partition} of topic {topic_id}, "
                        f"at the epochs {known} and {epoch}"
                    )
                owned[partition] = epoch

    def _release(self, assigned: Assigned, epoch: int) -> None:
        for topic_id, partitions in assigned.items():
            owned = self._owned.get(topic_id)
            if owned is None:
                continue
            for partition in partitions:
                if owned.get(partition) == epoch:
                    del owned[partition]
            if not owned:
                del self._owned[topic_id]


def _topics_of(member: ConsumerMember | None) -> frozenset[str]:
    return frozenset() if member is None else member.topics


def state_of(epoch: int, assignment_epoch: int, members: Mapping[str, ConsumerMember]) -> ConsumerGroupState:
    if not members:
        return ConsumerGroupState.EMPTY
    if epoch > assignment_epoch:
        return ConsumerGroupState.ASSIGNING
    if all(member.is_reconciled_to(assignment_epoch) for member in members.values()):
        return ConsumerGroupState.STABLE
    return ConsumerGroupState.RECONCILING
