"""The consumer protocol (KIP-848): ConsumerGroupHeartbeat of the groups of a partition (rules G7.12 to G7.60).

The coordinator assigns partitions itself. A heartbeat says what changed at the member; its answer says what the member
is to have. Each step is in the log before its answer leaves, so the next coordinator goes on where this one ended.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol
from uuid import UUID

from kquorum.broker.coordinators.answers import Done, KeyValue
from kquorum.broker.coordinators.timers import Timers
from kquorum.broker.group_figures import GroupCounters
from kquorum.broker.groups.assignors import ASSIGNORS, AssignedMember
from kquorum.broker.groups.classic_group import ClassicGroup
from kquorum.broker.groups.classic_protocol import MOST_BYTES, MOST_OF_GROUP_BYTES, Client
from kquorum.broker.groups.consumer_group import (
    JOINING,
    LEFT,
    LEFT_FOR_A_WHILE,
    NO_TARGET,
    NOT_RESOLVED,
    ConsumerGroup,
    ConsumerMember,
    HeldBytes,
    MemberState,
    ResolvedRegex,
)
from kquorum.broker.groups.consumer_records import (
    Change,
    current_record,
    epoch_record,
    member_record,
    member_tombstones,
    regex_record,
    regex_tombstone,
    target_epoch_record,
    target_record,
    topics_tombstone,
)
from kquorum.broker.groups.group_errors import GroupError
from kquorum.broker.groups.reconciliation import Owned, reconciled
from kquorum.broker.groups.settings import ConsumerTimings, GroupSettings
from kquorum.broker.groups.topic_metadata import TopicMetadata
from kquorum.broker.groups.topic_regexes import MOST_REGEXES, RegexResolution, check_regex
from kquorum.wire.consumer_group_records import Target
from kquorum.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ResponseTopicPartitions,
)
from kquorum.wire.messages.error_codes import ErrorCode

log = logging.getLogger("broker.groups")

FIRST_WITH_MEMBER_ID: Final = 1
"""The first version of the request in which members bring their own id."""
REGEX_PAUSE_MS: Final = 10_000
"""At least how long lies between two resolutions of a group's regular expressions."""
RETRY_MS: Final = 500
MOST_MEMBERS: Final = 5_000
"""Of one group, whatever `group.consumer.max.size` says: an assignment looks at all of them in one turn of the loop."""
MOST_TOPICS_OF_MEMBER: Final = 10_000
"""By name: each join looks at all of them."""

HeartbeatReply = Callable[[ConsumerGroupHeartbeatResponse], None]
MayDescribe = Callable[[str], bool]


class ConsumerStore(Protocol):
    """What a shard does for its consumer groups."""

    groups: dict[str, ClassicGroup]
    consumers: dict[str, ConsumerGroup]
    held_by_consumers: HeldBytes
    timers: Timers
    topics: TopicMetadata
    counters: GroupCounters

    @property
    def settings(self) -> GroupSettings: ...

    def timings(self, group_id: str) -> ConsumerTimings: ...

    def new_member_id(self, prefix: str) -> str: ...

    def write(self, now_ms: int, records: Sequence[KeyValue], done: Done) -> bool:
        """Whether the log took them; `done` is called in any case."""
        ...

    def note_removed(self, group_id: str, member_id: str, reason: str) -> None:
        """A timer of the member ended: it is removed."""
        ...

    def begin_resolution(self, group_id: str, resolution: RegexResolution) -> None:
        """`resolved` of the protocol gets the result."""
        ...

    def is_resolving(self, group_id: str) -> bool: ...

    def change_of(self, now_ms: int, group_id: str, *, is_made: bool) -> Change:
        """Begins with the records that put the group in the place of a classic group. `is_made`: a group that is not
        there is made; it is kept when its first record is written. Raises GroupError."""
        ...

    def downgrade(
        self,
        now_ms: int,
        group: ConsumerGroup,
        leaving: Collection[str],
        done: Done,
    ) -> bool:
        """Make the group a classic one if only members that speak the classic protocol stay; whether that was so."""
        ...

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
        """The last member of the consumer protocol gives way to a member of the classic protocol with its instance id:
        the group becomes a classic one."""
        ...


class ConsumerProtocol:
    def __init__(self, store: ConsumerStore) -> None:
        self._store = store
        self._timers = store.timers

    # ConsumerGroupHeartbeat

    def heartbeat(
        self,
        now_ms: int,
        request: ConsumerGroupHeartbeatRequest,
        client: Client,
        may_describe: MayDescribe,
        reply: HeartbeatReply,
    ) -> None:
        try:
            self._check(request, client.version)
            if request.member_epoch in (LEFT, LEFT_FOR_A_WHILE):
                self._leave(now_ms, request, reply)
            else:
                self._beat(now_ms, request, client, may_describe, reply)
        except GroupError as error:
            reply(_refused(error.error_code, error.message))

    def _check(self, request: ConsumerGroupHeartbeatRequest, version: int) -> None:
        """Rules G7.4 to G7.6."""
        epoch = request.member_epoch
        if version >= FIRST_WITH_MEMBER_ID or epoch > JOINING or epoch == LEFT:
            _check_text("MemberId", request.member_id)
        _check_text("GroupId", request.group_id)
        _check_text("InstanceId", request.instance_id)
        _check_text("RackId", request.rack_id)
        if epoch == JOINING:
            if request.rebalance_timeout_ms == -1:
                raise _invalid("RebalanceTimeoutMs must be provided in first request.")
            if request.topic_partitions is None or request.topic_partitions:
                raise _invalid("TopicPartitions must be empty when (re-)joining.")
            if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
                raise _invalid(
                    "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
                )
        elif epoch == LEFT_FOR_A_WHILE and request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
        elif epoch < LEFT_FOR_A_WHILE:
            raise _invalid("MemberEpoch is invalid.")
        check_topics(request.subscribed_topic_names or ())
        assignors = self._store.settings.consumer_assignors
        if request.server_assignor is not None and request.server_assignor not in assignors:
            raise GroupError(
                ErrorCode.unsupported_assignor,
                f"ServerAssignor {request.server_assignor} is not supported. "
                f"Supported assignors: {', '.join(assignors)}.",
            )

    def _beat(
        self,
        now_ms: int,
        request: ConsumerGroupHeartbeatRequest,
        client: Client,
        may_describe: MayDescribe,
        reply: HeartbeatReply,
    ) -> None:
        joins = request.member_epoch == JOINING
        change = self._store.change_of(now_ms, request.group_id, is_made=joins)
        group = change.group
        self.check_size(group, request.member_id)
        member_id = request.member_id or self._store.new_member_id("")
        owned = _owned(request)
        if request.instance_id is None:
            member = self.dynamic_member(group, member_id, is_made=joins)
            check_epoch(member, request.member_epoch, owned)
        else:
            member = self.static_member(
                change, member_id, request.instance_id, is_made=joins, is_classic=False
            )
            if not joins:
                check_epoch(member, request.member_epoch, owned)
        updated = _updated(member, request, client)
        names_changed = self.note_metadata(change, member, updated)
        regex_changed, is_resolved = self.note_regexes(now_ms, change, member, updated, may_describe)
        self.note_epoch(change, member, updated, bumps=names_changed or (regex_changed and is_resolved))
        target_epoch, target = self.assign(now_ms, change, member, updated)
        after = self.reconcile(
            now_ms,
            change,
            updated,
            target_epoch,
            target,
            has_subscription_changed=names_changed or regex_changed,
            owned=owned,
        )
        timings = self._store.timings(group.group_id)
        is_full = (
            request.rebalance_timeout_ms != -1
            and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
            and request.topic_partitions is not None
        )
        response = ConsumerGroupHeartbeatResponse(
            member_id=after.member_id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=timings.heartbeat_interval_ms,
        )
        if joins or is_full or after.assigned != member.assigned:
            response.assignment = _assignment(after)
        change.then.append(
            lambda: self.set_session(now_ms, group.group_id, after.member_id, timings.session_timeout_ms)
        )
        self.commit(
            now_ms, change, lambda error: reply(response if error is ErrorCode.none else _refused(error))
        )

    def commit(self, now_ms: int, change: Change, done: Done) -> None:
        if self._store.write(now_ms, change.records, done):
            for action in change.then:
                action()

    # Members

    def check_size(self, group: ConsumerGroup, member_id: str) -> None:
        most = min(self._store.settings.consumer_max_size, MOST_MEMBERS)
        if len(group.members) >= most and member_id not in group.members:
            raise GroupError(
                ErrorCode.group_max_size_reached,
                f"The consumer group has reached its maximum capacity of {most} members.",
            )

    def _check_memory(self, group: ConsumerGroup, more: int) -> None:
        """Of one group, and of all groups of the partition: Kafka has no bound."""
        if more <= 0:
            return
        held = self._store.held_by_consumers.total
        if group.held_bytes + more > MOST_OF_GROUP_BYTES or held + more > MOST_BYTES:
            raise GroupError(
                ErrorCode.group_max_size_reached,
                f"The members of group {group.group_id}, or of all groups of its coordinator's partition, take more "
                "memory than they may.",
            )

    def dynamic_member(self, group: ConsumerGroup, member_id: str, *, is_made: bool) -> ConsumerMember:
        found = group.members.get(member_id)
        if found is not None:
            return found
        if not is_made:
            raise GroupError(
                ErrorCode.unknown_member_id,
                f"Member {member_id} is not a member of group {group.group_id}.",
            )
        return ConsumerMember(member_id=member_id)

    def static_member(
        self, change: Change, member_id: str, instance_id: str, *, is_made: bool, is_classic: bool
    ) -> ConsumerMember:
        """Rule G7.15: an instance that joins takes the place of its former member, with its assignment."""
        group = change.group
        known = group.static_member(instance_id)
        if not is_made:
            return check_instance(known, member_id, instance_id)
        if known is None:
            return self.dynamic_member(group, member_id, is_made=True)
        if not is_classic and known.classic is None and known.epoch != LEFT_FOR_A_WHILE:
            raise GroupError(
                ErrorCode.unreleased_instance_id,
                f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
                f"instance id is owned by {known.member_id} member.",
            )
        member = replace(known, member_id=member_id, epoch=JOINING, previous_epoch=JOINING)
        change.records += [
            *member_tombstones(group.group_id, known.member_id),
            member_record(group.group_id, member),
            target_record(group.group_id, member_id, group.target(known.member_id)),
            current_record(group.group_id, member),
        ]
        return member

    def note_metadata(self, change: Change, member: ConsumerMember, updated: ConsumerMember) -> bool:
        """Whether the member reads other topics."""
        if updated is member or updated == member:
            return False
        known = change.group.members.get(member.member_id)
        self._check_memory(change.group, updated.held_bytes - (0 if known is None else known.held_bytes))
        change.records.append(member_record(change.group.group_id, updated))
        return updated.topics != member.topics

    # Regular expressions

    def note_regexes(
        self,
        now_ms: int,
        change: Change,
        member: ConsumerMember,
        updated: ConsumerMember,
        may_describe: MayDescribe,
    ) -> tuple[bool, bool]:
        """Whether the member's expression changed, and whether its topics are known at once (rules G9.1 to G9.8)."""
        group = change.group
        before, after = member.regex or "", updated.regex or ""
        is_new = is_resolved = False
        if before != after:
            if before and group.regexes[before] == 1:
                change.records.append(regex_tombstone(group.group_id, before))
            if not after:
                is_resolved = True
            elif group.regexes[after]:
                is_resolved = after in group.resolved
            else:
                _check_number(group, before, after)
                check_regex(after)
                is_new = True
        changed = member.regex != updated.regex
        if not is_new and not group.regexes:
            return changed, is_resolved
        if self._store.is_resolving(group.group_id):
            return changed, is_resolved
        last = next(iter(group.resolved.values()), None)
        if last is not None and now_ms <= last.timestamp_ms + REGEX_PAUSE_MS:
            return changed, is_resolved
        _, regexes = group.subscriptions_with(member, updated)
        refresh_ms = self._store.settings.consumer_regex_refresh_ms
        is_due = (
            is_new
            or len(regexes) != len(group.resolved)
            or last is None
            or last.version < self._store.topics.newest_topics_version
            or now_ms > last.timestamp_ms + refresh_ms
        )
        if is_due and regexes:
            resolution = RegexResolution(tuple(regexes), self._store.topics.image, may_describe)
            change.then.append(lambda: self._store.begin_resolution(group.group_id, resolution))
        return changed, is_resolved

    def resolved(self, now_ms: int, group_id: str, found: Mapping[str, ResolvedRegex]) -> None:
        """The topics of a group's expressions are known: another epoch begins if they changed."""
        group = self._store.consumers.get(group_id)
        if group is None:
            return
        change = Change(group, group.epoch)
        subscriptions = group.subscriptions.copy()
        bumps = False
        for regex, result in found.items():
            if not group.regexes[regex]:
                continue
            before = group.resolved.get(regex, NOT_RESOLVED).topics
            if before != result.topics:
                bumps = True
                subscriptions.by_regex.subtract(before)
                subscriptions.by_regex.update(result.topics)
            change.records.append(regex_record(group_id, regex, result))
        names = set(subscriptions.by_name) | {
            name for name, number in subscriptions.by_regex.items() if number
        }
        metadata_hash = self._store.topics.hash_of(names)
        if bumps or metadata_hash != group.metadata_hash:
            self._bump(change, metadata_hash)
            change.then.append(lambda: self._refreshed(group.group_id))
        self.commit(now_ms, change, lambda error: _warn(group_id, "its regular expressions", error))

    # Epochs and assignments

    def note_epoch(
        self, change: Change, member: ConsumerMember, updated: ConsumerMember, *, bumps: bool
    ) -> None:
        """Another group epoch begins if what the assignment depends on changed (rules G7.18 and G7.19)."""
        group = change.group
        if not bumps and not group.needs_refresh:
            return
        subscriptions, _ = group.subscriptions_with(member, updated)
        metadata_hash = self._store.topics.hash_of(subscriptions.names())
        if bumps or metadata_hash != group.metadata_hash:
            self._bump(change, metadata_hash)
        if group.has_partition_metadata:
            change.records.append(topics_tombstone(group.group_id))
        change.then.append(lambda: self._refreshed(group.group_id))

    def _bump(self, change: Change, metadata_hash: int) -> None:
        change.epoch = change.group.epoch + 1
        change.records.append(epoch_record(change.group.group_id, change.epoch, metadata_hash))
        change.then.append(self._count_rebalance)

    def _refreshed(self, group_id: str) -> None:
        group = self._store.consumers.get(group_id)
        if group is not None:
            group.needs_refresh = False

    def _count_rebalance(self) -> None:
        self._store.counters.consumer_rebalances += 1

    def assign(
        self, now_ms: int, change: Change, member: ConsumerMember, updated: ConsumerMember
    ) -> tuple[int, Target]:
        """The target assignment of the member, and its epoch. A group gets one in consumer.assignment.interval.ms at
        most; until then its members go on with the last (KIP-1263)."""
        group = change.group
        present = group.assignment_epoch, group.target(updated.member_id, updated.instance_id)
        if group.assignment_epoch >= change.epoch:
            return present
        interval_ms = self._store.timings(group.group_id).assignment_interval_ms
        since_ms = group.assignment_timestamp_ms
        if since_ms and interval_ms and now_ms < since_ms + interval_ms:
            return present
        former_id = None if updated.instance_id is None else group.static.get(updated.instance_id)
        members = dict(group.members)
        if former_id is not None:
            members.pop(former_id, None)
        members[updated.member_id] = updated
        targets = self._computed(group, member, updated, members, former_id)
        for member_id, target in targets.items():
            if group.targets.get(member_id) != target:
                change.records.append(target_record(group.group_id, member_id, target))
        change.records.append(target_epoch_record(group.group_id, change.epoch, now_ms))
        return change.epoch, targets.get(updated.member_id, NO_TARGET)

    def _computed(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        updated: ConsumerMember,
        members: Mapping[str, ConsumerMember],
        former_id: str | None,
    ) -> dict[str, Target]:
        topics = self._store.topics
        by_names: dict[frozenset[str], frozenset[UUID]] = {}
        specs = []
        for member_id, each in members.items():
            names = group.topics_of(each)
            ids = by_names.get(names)
            if ids is None:
                ids = by_names[names] = topics.ids_of(names)
            had = group.targets.get(member_id, NO_TARGET)
            if member_id == updated.member_id and former_id is not None:
                had = group.targets.get(former_id, NO_TARGET)
            specs.append(AssignedMember(member_id, each.instance_id, ids, had))
        counts = {
            topic_id: topics.partition_count(topic_id) for ids in set(by_names.values()) for topic_id in ids
        }
        default = self._store.settings.consumer_assignors[0]
        name = group.preferred_assignor(member, updated) or default
        return ASSIGNORS[name if name in ASSIGNORS else default](specs, counts)

    def reconcile(
        self,
        now_ms: int,
        change: Change,
        member: ConsumerMember,
        target_epoch: int,
        target: Target,
        *,
        has_subscription_changed: bool,
        owned: Owned | None,
    ) -> ConsumerMember:
        if not has_subscription_changed and member.is_reconciled_to(target_epoch):
            return member
        group = change.group
        after = reconciled(
            member,
            target,
            target_epoch,
            has_subscription_changed=has_subscription_changed,
            subscribed=lambda: self._store.topics.ids_of(group.topics_of(member)),
            owner_epoch=group.owner_epoch,
            owned=owned,
        )
        if after == member:
            return member
        change.records.append(current_record(group.group_id, after))
        if after.classic is None:
            change.then.append(lambda: self._set_revocation(now_ms, group.group_id, after))
        return after

    # Leaving

    def _leave(self, now_ms: int, request: ConsumerGroupHeartbeatRequest, reply: HeartbeatReply) -> None:
        group = self._store.change_of(now_ms, request.group_id, is_made=False).group
        response = ConsumerGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch
        )

        def done(error: ErrorCode) -> None:
            reply(response if error is ErrorCode.none else _refused(error))

        if request.instance_id is None:
            member = self.dynamic_member(group, request.member_id, is_made=False)
        else:
            member = check_instance(
                group.static_member(request.instance_id), request.member_id, request.instance_id
            )
        if request.member_epoch == LEFT_FOR_A_WHILE:
            away = replace(
                member,
                epoch=LEFT_FOR_A_WHILE,
                assigned={topic: dict.fromkeys(each, 0) for topic, each in member.assigned.items()},
                pending_revocation={},
            )
            self.commit(now_ms, Change(group, group.epoch, [current_record(group.group_id, away)]), done)
            return
        self.remove(now_ms, group, (member.member_id,), done)

    def remove(self, now_ms: int, group: ConsumerGroup, member_ids: Collection[str], done: Done) -> None:
        """Of members that left, or were not heard of in time. One epoch begins for all (rule G7.40)."""
        if not member_ids:
            self._store.write(now_ms, (), done)
            return
        if self._store.downgrade(now_ms, group, member_ids, done):
            return
        group_id = group.group_id
        change = Change(group, group.epoch)
        subscriptions = group.subscriptions.copy()
        regexes: Counter[str] = Counter()
        for member_id in member_ids:
            member = group.members[member_id]
            change.records += member_tombstones(group_id, member_id)
            subscriptions.by_name.subtract(member.topics)
            if member.regex:
                regexes[member.regex] += 1
        for regex, number in regexes.items():
            if group.regexes[regex] == number:
                change.records.append(regex_tombstone(group_id, regex))
                subscriptions.by_regex.subtract(group.resolved.get(regex, NOT_RESOLVED).topics)
        names = {
            name
            for counter in (subscriptions.by_name, subscriptions.by_regex)
            for name, number in counter.items()
            if number > 0
        }
        self._bump(change, self._store.topics.hash_of(names))
        self.commit(now_ms, change, done)

    def fence(self, now_ms: int, group_id: str, member_id: str, reason: str) -> None:
        """A timer ended. What is not written is tried again."""
        group = self._store.consumers.get(group_id)
        if group is None or member_id not in group.members:
            return
        self._store.note_removed(group_id, member_id, reason)

        def done(error: ErrorCode) -> None:
            if error is not ErrorCode.none:
                _warn(group_id, f"the end of member {member_id}", error)
                self._timers.set(
                    ("consumer session", group_id, member_id),
                    now_ms + RETRY_MS,
                    lambda then_ms: self.fence(then_ms, group_id, member_id, reason),
                )

        self.remove(now_ms, group, (member_id,), done)

    # Timers

    def begin(self, now_ms: int, group: ConsumerGroup) -> None:
        """A group that was loaded: each member has its whole time (rule G7.60)."""
        for member in group.members.values():
            self.set_session(
                now_ms,
                group.group_id,
                member.member_id,
                self._store.timings(group.group_id).session_timeout_ms
                if member.classic is None
                else member.classic.session_timeout_ms,
            )
            if member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
                self._set_revocation(now_ms, group.group_id, member)

    def set_session(self, now_ms: int, group_id: str, member_id: str, timeout_ms: int) -> None:
        self._timers.set(
            ("consumer session", group_id, member_id),
            now_ms + timeout_ms,
            lambda then_ms: self.fence(then_ms, group_id, member_id, "its session ended"),
        )

    def _set_revocation(self, now_ms: int, group_id: str, member: ConsumerMember) -> None:
        """A member has its rebalance timeout to give partitions up (rule G7.34)."""
        key = ("revocation", group_id, member.member_id)
        if member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._timers.cancel(key)
            return

        def fired(then_ms: int) -> None:
            group = self._store.consumers.get(group_id)
            found = None if group is None else group.members.get(member.member_id)
            if found is not None and found.epoch == member.epoch:
                self.fence(then_ms, group_id, member.member_id, "it did not give its partitions up in time")

        self._timers.set(key, now_ms + member.rebalance_timeout_ms, fired)

    def forget(self, group_id: str, member_id: str) -> None:
        """The member is gone from the group."""
        for kind in ("consumer session", "revocation", "consumer join", "consumer sync"):
            self._timers.cancel((kind, group_id, member_id))


def check_epoch(member: ConsumerMember, epoch: int, owned: Owned | None) -> None:
    """Rule G7.16. A member whose last answer was lost comes with the epoch before, and owns nothing that it has not."""
    if epoch in (JOINING, member.epoch):
        return
    if epoch > member.epoch:
        raise GroupError(
            ErrorCode.fenced_member_epoch,
            f"The consumer group member has a greater member epoch ({epoch}) than the one known by the group "
            f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
        )
    if epoch != member.previous_epoch or not _is_part(owned, member):
        raise GroupError(
            ErrorCode.fenced_member_epoch,
            f"The consumer group member has a smaller member epoch ({epoch}) than the one known by the group "
            f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
        )


def check_topics(names: Collection[str]) -> None:
    """Of one member; each join looks at all of them. Kafka has no bound. Raises GroupError."""
    if len(names) > MOST_TOPICS_OF_MEMBER:
        raise _invalid(
            f"A member subscribes to {MOST_TOPICS_OF_MEMBER} topics by name at most, this one to {len(names)}. Use a "
            "regular expression."
        )


def check_instance(known: ConsumerMember | None, member_id: str, instance_id: str) -> ConsumerMember:
    if known is None:
        raise GroupError(ErrorCode.unknown_member_id, f"Instance id {instance_id} is unknown.")
    if known.member_id != member_id:
        raise GroupError(
            ErrorCode.fenced_instance_id,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {known.member_id}.",
        )
    return known


def _is_part(owned: Owned | None, member: ConsumerMember) -> bool:
    return owned is not None and all(
        partition in member.assigned.get(topic_id, {})
        for topic_id, partitions in owned.items()
        for partition in partitions
    )


def _updated(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, client: Client
) -> ConsumerMember:
    """With what the request says. What it leaves out stays (rule G7.3)."""
    changes: dict[str, object] = {}
    if request.instance_id is not None and request.instance_id != member.instance_id:
        changes["instance_id"] = request.instance_id
    if request.rack_id is not None and request.rack_id != member.rack_id:
        changes["rack_id"] = request.rack_id
    if request.rebalance_timeout_ms not in (-1, member.rebalance_timeout_ms):
        changes["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    if request.server_assignor is not None and request.server_assignor != member.assignor:
        changes["assignor"] = request.server_assignor
    if request.subscribed_topic_names is not None:
        topics = frozenset(request.subscribed_topic_names)
        if topics != member.topics:
            changes["topics"] = topics
    if request.subscribed_topic_regex is not None and request.subscribed_topic_regex != member.regex:
        changes["regex"] = request.subscribed_topic_regex
    if client.client_id != member.client_id:
        changes["client_id"] = client.client_id
    if client.host != member.client_host:
        changes["client_host"] = client.host
    if member.classic is not None:
        changes["classic"] = None
    return replace(member, **changes) if changes else member  # type: ignore[arg-type]


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned | None:
    if request.topic_partitions is None:
        return None
    return {each.topic_id: each.partitions for each in request.topic_partitions}


def _assignment(member: ConsumerMember) -> Assignment:
    return Assignment(
        topic_partitions=tuple(
            ResponseTopicPartitions(topic_id=topic_id, partitions=tuple(sorted(member.assigned[topic_id])))
            for topic_id in sorted(member.assigned)
        )
    )


def _check_number(group: ConsumerGroup, before: str, after: str) -> None:
    """Of the group's expressions with `after`; `before` goes if no other member has it. Kafka has no bound. Raises
    GroupError."""
    number = len(group.regexes) - (group.regexes[before] == 1)
    if number >= MOST_REGEXES:
        raise GroupError(
            ErrorCode.invalid_regular_expression,
            f"SubscribedTopicRegex `{after}` is refused: group {group.group_id} has {MOST_REGEXES} different "
            "expressions already. Use one of them, or name the topics.",
        )


def _check_text(name: str, text: str | None) -> None:
    if text is not None and not text.strip():
        raise _invalid(f"{name} can't be empty.")


def _invalid(message: str) -> GroupError:
    return GroupError(ErrorCode.invalid_request, message)


def _refused(error: ErrorCode, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error, error_message=message)


def _warn(group_id: str, what: str, error: ErrorCode) -> None:
    if error is not ErrorCode.none:
        log.warning("group %s: %s was not written: %s", group_id, what, error.name)
