"""Members of the classic protocol in a consumer group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup there (rules
G10.9 to G10.16 and G7.42).

The coordinator assigns to them too. A member learns by its heartbeat that it is to join again; its join says what it
owns, and its sync brings what it is to have.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from kquorum.broker.groups.classic_group import CONSUMER, JoinReply, SyncReply
from kquorum.broker.groups.classic_protocol import Client
from kquorum.broker.groups.consumer_group import (
    ClassicMember,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
)
from kquorum.broker.groups.consumer_protocol import (
    ConsumerProtocol,
    ConsumerStore,
    check_instance,
    check_topics,
)
from kquorum.broker.groups.consumer_records import Change
from kquorum.broker.groups.group_errors import GroupError
from kquorum.broker.groups.migration import decoded_subscription, encoded_assignment
from kquorum.broker.groups.settings import MigrationPolicy
from kquorum.wire.consumer_group_records import Target
from kquorum.wire.errors import DecodeError
from kquorum.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.heartbeat import HeartbeatRequest
from kquorum.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kquorum.wire.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse
from kquorum.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_FIRST_WITH_REQUIRED_ID: Final = 4
_NO_TIMEOUT: Final = -1


@dataclass(slots=True)
class _Join:
    """A JoinGroup on its way: `owned` is what the member says it has, `changes_assignment` whether the assignment
    depends on what changed."""

    now_ms: int
    change: Change
    request: JoinGroupRequest
    owned: Mapping[UUID, Collection[int]]
    reply: JoinReply
    changes_assignment: bool = False


class ClassicMembers:
    def __init__(self, store: ConsumerStore, protocol: ConsumerProtocol) -> None:
        self._store = store
        self._protocol = protocol
        self._timers = store.timers

    # JoinGroup

    def join(
        self, now_ms: int, group: ConsumerGroup, request: JoinGroupRequest, client: Client, reply: JoinReply
    ) -> None:
        try:
            self._join(now_ms, group, request, client, reply)
        except GroupError as error:
            reply(_join_error(error.error_code, request.member_id))

    def _join(
        self, now_ms: int, group: ConsumerGroup, request: JoinGroupRequest, client: Client, reply: JoinReply
    ) -> None:
        instance_id = request.group_instance_id
        member_id = request.member_id or self._store.new_member_id(instance_id or client.client_id)
        self._check_join(group, request, member_id)
        if not request.member_id and instance_id is None and client.version >= _FIRST_WITH_REQUIRED_ID:
            reply(_join_error(ErrorCode.member_id_required, member_id))
            return
        change = Change(group, group.epoch)
        member = self._joining_member(change, request, member_id)
        subscription = _subscription(request)
        updated = _updated(member, request, client, subscription)
        join = _Join(now_ms, change, request, self._owned(subscription), reply)
        join.changes_assignment = self._note_changes(join, member, updated)
        replaced = group.static_member(instance_id)
        if replaced is not None and replaced.classic is None and self._is_last(group, replaced):
            self._replace_last_consumer(join, replaced, updated)
        else:
            self._assign_and_commit(join, member, updated)

    def _check_join(self, group: ConsumerGroup, request: JoinGroupRequest, member_id: str) -> None:
        """Raises GroupError."""
        if self._store.settings.consumer_migration is MigrationPolicy.DISABLED:
            raise GroupError(
                ErrorCode.inconsistent_group_protocol,
                f"Cannot join the consumer group {group.group_id} with the classic protocol because the group "
                "migration is disabled.",
            )
        self._protocol.check_size(group, member_id)
        if not group.supports(request.protocol_type, [each.name for each in request.protocols]):
            raise GroupError(
                ErrorCode.inconsistent_group_protocol, f"Member {member_id}'s protocols are not supported."
            )

    def _joining_member(self, change: Change, request: JoinGroupRequest, member_id: str) -> ConsumerMember:
        """As the group has it, or a new one."""
        instance_id = request.group_instance_id
        if instance_id is None:
            return self._protocol.dynamic_member(change.group, member_id, is_made=True)
        is_unknown = not request.member_id
        return self._protocol.static_member(
            change, member_id, instance_id, is_made=is_unknown, is_classic=True
        )

    def _note_changes(self, join: _Join, member: ConsumerMember, updated: ConsumerMember) -> bool:
        """Adds the records of what the join changes; whether it changes what the assignment depends on."""
        change = join.change
        names_changed = self._protocol.note_metadata(change, member, updated)
        regex_changed, _ = self._protocol.note_regexes(
            join.now_ms, change, member, updated, lambda _topic: False
        )
        bumps = names_changed or regex_changed
        self._protocol.note_epoch(change, member, updated, bumps=bumps)
        return bumps

    def _replace_last_consumer(self, join: _Join, replaced: ConsumerMember, updated: ConsumerMember) -> None:
        """The last member of the consumer protocol gives way to one of the classic protocol: so does the group."""
        group, request, reply = join.change.group, join.request, join.reply
        is_stale = group.assignment_epoch < join.change.epoch
        if not is_stale:
            target = group.target(updated.member_id, updated.instance_id)
            updated = self._reconcile(join, updated, group.assignment_epoch, target)
        response = _joined(updated)
        self._store.replace_by_classic(
            join.now_ms,
            join.change,
            replaced.member_id,
            updated,
            rebalances=is_stale,
            done=lambda error: reply(
                response if error is ErrorCode.none else _join_error(error, request.member_id)
            ),
        )

    def _assign_and_commit(self, join: _Join, member: ConsumerMember, updated: ConsumerMember) -> None:
        now_ms, request, reply = join.now_ms, join.request, join.reply
        group_id = join.change.group.group_id
        target_epoch, target = self._protocol.assign(now_ms, join.change, member, updated)
        after = self._reconcile(join, updated, target_epoch, target)

        def done(error: ErrorCode) -> None:
            if error is not ErrorCode.none:
                reply(_join_error(error, request.member_id))
                return
            self._timers.cancel(("consumer join", group_id, after.member_id))
            self._protocol.set_session(now_ms, group_id, after.member_id, request.session_timeout_ms)
            self._set_timer(now_ms, "consumer sync", group_id, after, "it did not sync in time")
            reply(_joined(after))

        # Before the answer too: a member is there when its record is written, and may never hear the answer.
        join.change.then.append(
            lambda: self._protocol.set_session(now_ms, group_id, after.member_id, request.session_timeout_ms)
        )
        self._protocol.commit(now_ms, join.change, done)

    def _reconcile(
        self, join: _Join, updated: ConsumerMember, target_epoch: int, target: Target
    ) -> ConsumerMember:
        return self._protocol.reconcile(
            join.now_ms,
            join.change,
            updated,
            target_epoch,
            target,
            has_subscription_changed=join.changes_assignment,
            owned=join.owned,
        )

    def _is_last(self, group: ConsumerGroup, replaced: ConsumerMember) -> bool:
        """Whether only members of the classic protocol are left once this one is replaced by one."""
        settings = self._store.settings
        return (
            group.classic_count == len(group.members) - 1
            and replaced.classic is None
            and settings.consumer_migration.downgrades
            and len(group.members) <= settings.max_size
        )

    def _owned(self, subscription: ConsumerProtocolSubscription) -> dict[UUID, Collection[int]]:
        topics = self._store.topics
        return {
            topic_id: each.partitions
            for each in subscription.owned_partitions
            if (topic_id := topics.id_of(each.topic)) is not None
        }

    # SyncGroup

    def sync(self, now_ms: int, group: ConsumerGroup, request: SyncGroupRequest, reply: SyncReply) -> None:
        try:
            member = _classic_member(group, request.member_id, request.group_instance_id)
            classic = member.classic
            assert classic is not None
            _check_generation(member, request.generation_id)
            if request.protocol_type not in (None, CONSUMER) or request.protocol_name not in (
                None,
                classic.protocols[0][0],
            ):
                raise GroupError(
                    ErrorCode.inconsistent_group_protocol,
                    f"Member {member.member_id} joined with another protocol.",
                )
            if group.assignment_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
                self._ask_to_join(now_ms, group.group_id, member)
                raise GroupError(
                    ErrorCode.rebalance_in_progress, f"Member {member.member_id} is to join again."
                )
        except GroupError as error:
            reply(SyncGroupResponse(error_code=error.error_code))
            return
        assignment = encoded_assignment(member.assigned, classic.protocols[0][1], self._store.topics)

        def done(error: ErrorCode) -> None:
            if error is not ErrorCode.none:
                reply(SyncGroupResponse(error_code=error))
                return
            self._timers.cancel(("consumer sync", group.group_id, member.member_id))
            self._protocol.set_session(now_ms, group.group_id, member.member_id, classic.session_timeout_ms)
            reply(
                SyncGroupResponse(
                    protocol_type=request.protocol_type,
                    protocol_name=request.protocol_name,
                    assignment=assignment,
                )
            )

        self._store.write(now_ms, (), done)

    # Heartbeat and LeaveGroup

    def heartbeat(self, now_ms: int, group: ConsumerGroup, request: HeartbeatRequest) -> ErrorCode:
        try:
            member = _classic_member(group, request.member_id, request.group_instance_id)
            _check_generation(member, request.generation_id)
        except GroupError as error:
            return error.error_code
        assert member.classic is not None
        self._protocol.set_session(
            now_ms, group.group_id, member.member_id, member.classic.session_timeout_ms
        )
        if (
            member.epoch < group.assignment_epoch
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or (member.state is MemberState.UNRELEASED_PARTITIONS and not group.is_waiting_for_others(member))
        ):
            self._ask_to_join(now_ms, group.group_id, member)
            return ErrorCode.rebalance_in_progress
        return ErrorCode.none

    def leave(
        self,
        now_ms: int,
        group: ConsumerGroup,
        leaving: Collection[MemberIdentity],
        done: Callable[[LeaveGroupResponse], None],
    ) -> None:
        """Members of both protocols; an administrator may remove them too (KAFKA-18188)."""
        answers = []
        gone: dict[str, None] = {}
        for each in leaving:
            error = ErrorCode.none
            try:
                gone[_leaving(group, each).member_id] = None
            except GroupError as refused:
                error = refused.error_code
            answers.append(
                MemberResponse(
                    member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=error
                )
            )
        response = LeaveGroupResponse(members=tuple(answers))

        def written(failed: ErrorCode) -> None:
            done(response if failed is ErrorCode.none else LeaveGroupResponse(error_code=failed))

        try:
            self._protocol.remove(now_ms, group, tuple(gone), written)
        except GroupError as error:
            done(LeaveGroupResponse(error_code=error.error_code))

    # Timers

    def _ask_to_join(self, now_ms: int, group_id: str, member: ConsumerMember) -> None:
        if not self._timers.is_set(("consumer join", group_id, member.member_id)):
            self._set_timer(now_ms, "consumer join", group_id, member, "it did not join again in time")

    def _set_timer(self, now_ms: int, kind: str, group_id: str, member: ConsumerMember, reason: str) -> None:
        self._timers.set(
            (kind, group_id, member.member_id),
            now_ms + member.rebalance_timeout_ms,
            lambda then_ms: self._protocol.fence(then_ms, group_id, member.member_id, reason),
        )


def _classic_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    if instance_id is None:
        member = group.members.get(member_id)
    else:
        member = check_instance(group.static_member(instance_id), member_id, instance_id)
    if member is None or member.classic is None:
        raise GroupError(
            ErrorCode.unknown_member_id,
            f"Member {member_id} does not use the classic protocol in {group.group_id}.",
        )
    return member


def _leaving(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    instance_id = identity.group_instance_id
    if instance_id is None:
        member = group.members.get(identity.member_id)
        if member is None:
            raise GroupError(
                ErrorCode.unknown_member_id,
                f"Member {identity.member_id} is not a member of group {group.group_id}.",
            )
        return member
    known = group.static_member(instance_id)
    return check_instance(
        known, identity.member_id or ("" if known is None else known.member_id), instance_id
    )


def _check_generation(member: ConsumerMember, generation: int) -> None:
    if generation != member.epoch:
        raise GroupError(
            ErrorCode.illegal_generation,
            f"The generation {generation} of member {member.member_id} is not its epoch {member.epoch}.",
        )


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        found = decoded_subscription(request.protocols[0].metadata)
    except DecodeError as error:
        raise GroupError(
            ErrorCode.unknown_server_error, f"The subscription of the member cannot be read: {error}"
        ) from None
    check_topics(found.topics)
    return found


def _updated(
    member: ConsumerMember,
    request: JoinGroupRequest,
    client: Client,
    subscription: ConsumerProtocolSubscription,
) -> ConsumerMember:
    """A member of the classic protocol subscribes by names alone (KAFKA-19720)."""
    rebalance_ms = request.rebalance_timeout_ms
    if rebalance_ms == _NO_TIMEOUT:
        rebalance_ms = request.session_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=member.rack_id if subscription.rack_id is None else subscription.rack_id,
        rebalance_timeout_ms=rebalance_ms,
        topics=frozenset(subscription.topics),
        regex="",
        client_id=client.client_id,
        client_host=client.host,
        classic=ClassicMember(
            request.session_timeout_ms, tuple((each.name, bytes(each.metadata)) for each in request.protocols)
        ),
    )


def _joined(member: ConsumerMember) -> JoinGroupResponse:
    """No member is the leader: none is to assign partitions."""
    assert member.classic is not None
    return JoinGroupResponse(
        generation_id=member.epoch,
        protocol_type=CONSUMER,
        protocol_name=member.classic.protocols[0][0],
        leader="",
        member_id=member.member_id,
    )


def _join_error(error: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=None)
