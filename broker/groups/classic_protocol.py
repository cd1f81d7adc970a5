"""The classic protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup of the groups of a partition (rules G4.16
to G4.60).

Members join, the leader among them assigns the partitions, and each gets its part by its sync. Only the leader's
assignment and an empty group are written to the log; all else is lost with the coordinator, and members join again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from kquorum.broker.coordinators.answers import Done
from kquorum.broker.coordinators.timers import Timers
from kquorum.broker.group_figures import GroupCounters
from kquorum.broker.groups.classic_group import (
    ClassicGroup,
    GroupState,
    JoinReply,
    Member,
    Protocols,
    SyncReply,
    held_bytes,
)
from kquorum.broker.groups.settings import GroupSettings
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.heartbeat import HeartbeatRequest
from kquorum.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from kquorum.wire.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse
from kquorum.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

log = logging.getLogger("broker.groups")

_FIRST_WITH_REQUIRED_ID: Final = 4
# Of one group. A client joins with its id at once, so that more are only of clients that never do; Kafka has no bound.
MOST_PENDING_IDS: Final = 1_000
# What the members of a group, and of all groups of a partition of `__consumer_offsets`, may take in memory. Kafka has
# no bound; but the members of a larger group do not fit into the record that says what they were assigned.
MOST_OF_GROUP_BYTES: Final = 8 << 20
MOST_BYTES: Final = 32 << 20
_RECOUNT_MS: Final = 5_000
_FIRST_WITH_SKIPPED_ASSIGNMENT: Final = 9
NEW_MEMBER_TIMEOUT_MS: Final = 5 * 60 * 1000
"""A new member waits in its first join beyond its session timeout: it sends no heartbeat before it has its answer."""


@dataclass(frozen=True, slots=True)
class Client:
    """Of a request: what the group keeps of its sender."""

    version: int
    client_id: str
    host: str


class GroupStore(Protocol):
    """What a shard does for its groups."""

    groups: dict[str, ClassicGroup]
    timers: Timers
    counters: GroupCounters

    @property
    def settings(self) -> GroupSettings: ...

    def new_member_id(self, prefix: str) -> str: ...

    def make_room(self, now_ms: int, group_id: str) -> ErrorCode:
        """For a classic group of this name. A group of a later kind gives way if it has no members."""
        ...

    def note_removed(self, group_id: str, member_id: str, reason: str) -> None:
        """A timer of the member ended: it is removed."""
        ...

    def write_group(
        self, now_ms: int, group: ClassicGroup, done: Done, assignments: Mapping[str, bytes] | None = None
    ) -> None: ...


class ClassicProtocol:
    def __init__(self, store: GroupStore) -> None:
        self._store = store
        self._timers = store.timers
        # Of all members, as counted last, with those that came since.
        self._held_bytes = 0
        self._counted_ms = -_RECOUNT_MS

    # JoinGroup

    def check(self, request: JoinGroupRequest, reply: JoinReply) -> bool:
        """Whether a request to join is valid in a group of either protocol; if not, it is answered."""
        settings = self._store.settings
        if not request.group_id:
            reply(_join_error(ErrorCode.invalid_group_id, request.member_id))
            return False
        if not (
            settings.min_session_timeout_ms <= request.session_timeout_ms <= settings.max_session_timeout_ms
        ):
            reply(_join_error(ErrorCode.invalid_session_timeout, request.member_id))
            return False
        return True

    def join(self, now_ms: int, request: JoinGroupRequest, client: Client, reply: JoinReply) -> None:
        if not self.check(request, reply):
            return
        group = self._store.groups.get(request.group_id)
        is_made = group is None
        if group is None:
            if request.member_id:
                reply(_join_error(ErrorCode.unknown_member_id, request.member_id))
                return
            refusal = self._store.make_room(now_ms, request.group_id)
            if refusal is not ErrorCode.none:
                reply(_join_error(refusal, ""))
                return
            group = ClassicGroup(request.group_id, GroupState.EMPTY, now_ms)
            self._store.groups[request.group_id] = group
        if not self._has_room(group, request.member_id):
            if group.remove(request.member_id) is not None:
                self._cancel_session(group, request.member_id)
            reply(_join_error(ErrorCode.group_max_size_reached, request.member_id))
        elif not self._has_memory(now_ms, group, request, client):
            reply(_join_error(ErrorCode.group_max_size_reached, request.member_id))
        elif not group.supports(request.protocol_type, _protocols(request)):
            is_known = request.member_id in group.members or request.member_id in group.pending_ids
            reply(_join_error(ErrorCode.inconsistent_group_protocol, request.member_id if is_known else ""))
        elif request.member_id:
            self._join_known(now_ms, group, request, client, reply)
        else:
            self._join_new(now_ms, group, request, client, reply)
        if is_made:
            self._note_made(now_ms, group)

    def _note_made(self, now_ms: int, group: ClassicGroup) -> None:
        """So that the next coordinator knows the group, before its first generation (rule G4.20)."""

        def done(error: ErrorCode) -> None:
            if error is ErrorCode.none:
                return
            for member in tuple(group.members.values()):
                if member.awaiting_join is not None:
                    group.answer_join(member, _join_error(error, ""))

        if group.generation == 0:
            self._store.write_group(now_ms, ClassicGroup(group.group_id, state_timestamp_ms=now_ms), done)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        most = self._store.settings.max_size
        if group.state is GroupState.EMPTY:
            return True
        member = group.members.get(member_id)
        if group.state is GroupState.PREPARING:
            return (member is not None and member.awaiting_join is not None) or group.awaiting_joins < most
        return member is not None or len(group.members) < most

    def _has_memory(
        self, now_ms: int, group: ClassicGroup, request: JoinGroupRequest, client: Client
    ) -> bool:
        known = group.members.get(request.member_id)
        more = held_bytes(_protocols(request), client.client_id) - (0 if known is None else known.held_bytes)
        if now_ms - self._counted_ms >= _RECOUNT_MS:
            self._counted_ms = now_ms
            self._held_bytes = sum(each.held_bytes for each in self._store.groups.values())
        if group.held_bytes + more > MOST_OF_GROUP_BYTES or self._held_bytes + more > MOST_BYTES:
            return False
        self._held_bytes += max(more, 0)
        return True

    def _join_new(
        self, now_ms: int, group: ClassicGroup, request: JoinGroupRequest, client: Client, reply: JoinReply
    ) -> None:
        instance_id = request.group_instance_id
        member_id = self._store.new_member_id(client.client_id if instance_id is None else instance_id)
        if instance_id is not None:
            former_id = group.static.get(instance_id)
            if former_id is not None:
                self._replace_static(now_ms, group, request, client, former_id, member_id, reply)
                return
        elif client.version >= _FIRST_WITH_REQUIRED_ID:
            if len(group.pending_ids) >= MOST_PENDING_IDS:
                oldest = next(iter(group.pending_ids))
                self._cancel_session(group, oldest)
                del group.pending_ids[oldest]
            group.pending_ids[member_id] = None
            self._set_session(now_ms, group, member_id, request.session_timeout_ms)
            reply(_join_error(ErrorCode.member_id_required, member_id))
            return
        self._add(now_ms, group, request, client, member_id, reply)

    def _add(
        self,
        now_ms: int,
        group: ClassicGroup,
        request: JoinGroupRequest,
        client: Client,
        member_id: str,
        reply: JoinReply,
    ) -> None:
        member = Member(
            member_id,
            request.group_instance_id,
            client.client_id,
            client.host,
            _rebalance_timeout_ms(request),
            request.session_timeout_ms,
            _protocols(request),
            awaiting_join=reply,
            is_new=True,
        )
        if group.state is GroupState.PREPARING and group.is_initial:
            group.has_new_member = True
        group.add(member, request.protocol_type)
        self._set_session(now_ms, group, member_id, NEW_MEMBER_TIMEOUT_MS)
        self._rebalance(now_ms, group)

    def _join_known(
        self, now_ms: int, group: ClassicGroup, request: JoinGroupRequest, client: Client, reply: JoinReply
    ) -> None:
        member_id = request.member_id
        if member_id in group.pending_ids:
            if request.group_instance_id is not None:
                reply(_join_error(ErrorCode.unknown_server_error, member_id))
                return
            self._add(now_ms, group, request, client, member_id, reply)
            return
        error = check_member(group, member_id, request.group_instance_id)
        if error is not ErrorCode.none:
            reply(_join_error(error, member_id))
            return
        member = group.members[member_id]
        protocols = _protocols(request)
        is_same = member.protocols == protocols
        if group.state is GroupState.COMPLETING and is_same:
            # The former answer was lost.
            reply(self._joined(group, member))
            return
        if group.state is GroupState.STABLE and is_same and member_id != group.leader:
            reply(self._joined(group, member))
            return
        if group.state is GroupState.EMPTY:
            reply(_join_error(ErrorCode.unknown_member_id, member_id))
            return
        # A leader that joins a stable group may have seen that the topics changed.
        group.update(member, protocols, _rebalance_timeout_ms(request), request.session_timeout_ms)
        group.await_join(member, reply)
        self._rebalance(now_ms, group)

    def _replace_static(
        self,
        now_ms: int,
        group: ClassicGroup,
        request: JoinGroupRequest,
        client: Client,
        former_id: str,
        member_id: str,
        reply: JoinReply,
    ) -> None:
        """Rules G4.43 to G4.46: where nothing changed for the others, the instance gets its assignment again."""
        former_leader = group.leader
        member = group.members[former_id]
        fence_join = _join_error(ErrorCode.fenced_instance_id, former_id)
        group.answer_join(member, fence_join)
        answer_sync(member, SyncGroupResponse(error_code=ErrorCode.fenced_instance_id))
        self._cancel_session(group, former_id)
        before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
        group.replace_static(former_id, member_id)
        group.update(member, _protocols(request), _rebalance_timeout_ms(request), request.session_timeout_ms)
        self._set_session(now_ms, group, member_id, request.session_timeout_ms)
        if group.state is not GroupState.STABLE or group.selected_protocol() != group.protocol:
            group.await_join(member, reply)
            self._rebalance(now_ms, group)
            return

        def done(error: ErrorCode) -> None:
            if error is not ErrorCode.none:
                if group.static.get(member.instance_id or "") == member_id:
                    group.replace_static(member_id, former_id)
                    group.update(member, *before)
                    self._cancel_session(group, member_id)
                    self._set_session(now_ms, group, former_id, member.session_timeout_ms)
                reply(_join_error(error, ""))
                return
            skips = client.version >= _FIRST_WITH_SKIPPED_ASSIGNMENT
            response = self._joined(group, member)
            if skips:
                response.skip_assignment = group.leader == member_id
            else:
                # It takes itself for a follower, and does not assign again.
                response.leader, response.members = former_leader or "", ()
            reply(response)

        self._store.write_group(now_ms, group, done)

    # Rebalances

    def _rebalance(self, now_ms: int, group: ClassicGroup) -> None:
        if group.state is GroupState.PREPARING:
            self._maybe_complete_join(now_ms, group)
        elif group.state is not GroupState.DEAD:
            self.prepare(now_ms, group)

    def prepare(self, now_ms: int, group: ClassicGroup) -> None:
        """Ask all members to join again."""
        self._timers.cancel(("sync", group.group_id))
        if group.state is GroupState.COMPLETING:
            self._reset_assignments(now_ms, group, ErrorCode.rebalance_in_progress)
        group.is_initial = group.state is GroupState.EMPTY
        group.change_state(now_ms, GroupState.PREPARING)
        if group.is_initial:
            group.has_new_member = False
            delay_ms = self._store.settings.initial_rebalance_delay_ms
            self._set_initial(now_ms, group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        elif group.has_all_joined:
            self._complete_join(now_ms, group)
        else:
            self._set_join_timer(now_ms, group)

    def _set_initial(self, now_ms: int, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        """Members that start together join one generation together, if they come within the delay of each other."""

        def fired(then_ms: int) -> None:
            if group.has_new_member and remaining_ms > 0:
                group.has_new_member = False
                next_ms = min(self._store.settings.initial_rebalance_delay_ms, remaining_ms)
                self._set_initial(then_ms, group, next_ms, max(remaining_ms - next_ms, 0))
            else:
                self._complete_join(then_ms, group)

        self._timers.set(("join", group.group_id), now_ms + delay_ms, fired)

    def _set_join_timer(self, now_ms: int, group: ClassicGroup) -> None:
        self._timers.set(
            ("join", group.group_id),
            now_ms + group.rebalance_timeout_ms,
            lambda then_ms: self._complete_join(then_ms, group),
        )

    def _maybe_complete_join(self, now_ms: int, group: ClassicGroup) -> None:
        if group.state is GroupState.PREPARING and not group.is_initial and group.has_all_joined:
            self._complete_join(now_ms, group)

    def _complete_join(self, now_ms: int, group: ClassicGroup) -> None:
        """The next generation begins with the members that joined; static ones stay until their session ends."""
        if group.state is not GroupState.PREPARING:
            return
        self._timers.cancel(("join", group.group_id))
        for member in [each for each in group.members.values() if each.awaiting_join is None]:
            if member.instance_id is None:
                self._cancel_session(group, member.member_id)
                group.remove(member.member_id)
        joined = [member for member in group.members.values() if member.awaiting_join is not None]
        if group.members and not joined:
            self._set_join_timer(now_ms, group)
            return
        group.is_initial = False
        group.generation += 1
        group.pending_sync.clear()
        if not group.members:
            group.protocol = None
            group.change_state(now_ms, GroupState.EMPTY)
            group.learn_subscriptions()
            self._store.write_group(now_ms, group, lambda error: _warn_of_empty(group, error))
            return
        leader = group.members.get(group.leader or "")
        if leader is None or leader.awaiting_join is None:
            group.leader = joined[0].member_id
        group.protocol = group.selected_protocol()
        group.change_state(now_ms, GroupState.COMPLETING)
        group.learn_subscriptions()
        for member in group.members.values():
            group.pending_sync.add(member.member_id)
            member.is_new = False
            self._set_session(now_ms, group, member.member_id, member.session_timeout_ms)
        for member in joined:
            group.answer_join(member, self._joined(group, member))
        self._set_sync_timer(now_ms, group)

    def _set_sync_timer(self, now_ms: int, group: ClassicGroup) -> None:
        """Members that do not fetch their assignment in time are removed (rule G4.39)."""
        generation = group.generation

        def fired(then_ms: int) -> None:
            if group.generation != generation or not group.pending_sync:
                return
            if group.state not in (GroupState.COMPLETING, GroupState.STABLE):
                return
            for member_id in tuple(group.pending_sync):
                self._cancel_session(group, member_id)
                removed = group.remove(member_id)
                if removed is not None:
                    _answer_removed(group, removed)
            self.prepare(then_ms, group)

        self._timers.set(("sync", group.group_id), now_ms + group.rebalance_timeout_ms, fired)

    def _joined(self, group: ClassicGroup, member: Member) -> JoinGroupResponse:
        members: tuple[JoinGroupResponseMember, ...] = ()
        if group.leader == member.member_id:
            members = tuple(
                JoinGroupResponseMember(
                    member_id=each.member_id,
                    group_instance_id=each.instance_id,
                    metadata=each.metadata(group.protocol),
                )
                for each in group.members.values()
            )
        return JoinGroupResponse(
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol,
            leader=group.leader or "",
            member_id=member.member_id,
            members=members,
        )

    def _reset_assignments(self, now_ms: int, group: ClassicGroup, error: ErrorCode) -> None:
        for member in group.members.values():
            member.assignment = b""
        self._answer_syncs(now_ms, group, error)

    def _answer_syncs(self, now_ms: int, group: ClassicGroup, error: ErrorCode) -> None:
        for member in tuple(group.members.values()):
            if member.awaiting_sync is not None:
                self._set_session(now_ms, group, member.member_id, member.session_timeout_ms)
                answer_sync(member, _synced(group, member, error))

    # SyncGroup

    def sync(self, now_ms: int, request: SyncGroupRequest, reply: SyncReply) -> None:
        group = self._store.groups.get(request.group_id)
        error = ErrorCode.none
        if not request.group_id:
            error = ErrorCode.invalid_group_id
        elif group is None:
            error = ErrorCode.unknown_member_id
        else:
            error = check_member(group, request.member_id, request.group_instance_id, request.generation_id)
            if error is ErrorCode.none and (
                _differs(request.protocol_type, group.protocol_type)
                or _differs(request.protocol_name, group.protocol)
            ):
                error = ErrorCode.inconsistent_group_protocol
        if error is ErrorCode.none and group is not None and group.state is GroupState.PREPARING:
            error = ErrorCode.rebalance_in_progress
        if error is not ErrorCode.none or group is None:
            reply(SyncGroupResponse(error_code=error))
            return
        member = group.members[request.member_id]
        group.pending_sync.discard(member.member_id)
        if group.state is GroupState.STABLE:
            self._set_session(now_ms, group, member.member_id, member.session_timeout_ms)
            reply(_synced(group, member, ErrorCode.none))
            return
        member.awaiting_sync = reply
        if member.member_id == group.leader:
            given = {each.member_id: each.assignment for each in request.assignments}
            self._assign(now_ms, group, given)

    def _assign(self, now_ms: int, group: ClassicGroup, given: Mapping[str, bytes]) -> None:
        """The group is stable when the assignment is committed, so that the next coordinator has it too."""
        assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
        generation = group.generation

        def done(error: ErrorCode) -> None:
            if group.state is not GroupState.COMPLETING or group.generation != generation:
                return
            if error is not ErrorCode.none:
                self._reset_assignments(now_ms, group, error)
                self.prepare(now_ms, group)
                return
            for member in group.members.values():
                member.assignment = assignments.get(member.member_id, b"")
            group.change_state(group.state_timestamp_ms, GroupState.STABLE)
            self._store.counters.completed_rebalances += 1
            self._answer_syncs(now_ms, group, ErrorCode.none)

        self._store.write_group(now_ms, group, done, assignments)

    # Heartbeat and LeaveGroup

    def heartbeat(self, now_ms: int, request: HeartbeatRequest) -> ErrorCode:
        if not request.group_id:
            return ErrorCode.invalid_group_id
        group = self._store.groups.get(request.group_id)
        if group is None or group.state is GroupState.EMPTY:
            return ErrorCode.unknown_member_id
        error = check_member(group, request.member_id, request.group_instance_id, request.generation_id)
        if error is not ErrorCode.none:
            return error
        self.note_life(now_ms, group, request.member_id)
        is_preparing = group.state is GroupState.PREPARING
        return ErrorCode.rebalance_in_progress if is_preparing else ErrorCode.none

    def note_life(self, now_ms: int, group: ClassicGroup, member_id: str) -> None:
        member = group.members[member_id]
        self._set_session(now_ms, group, member_id, member.session_timeout_ms)

    def leave(self, now_ms: int, group_id: str, leaving: tuple[MemberIdentity, ...]) -> LeaveGroupResponse:
        if not group_id:
            return LeaveGroupResponse(error_code=ErrorCode.invalid_group_id)
        group = self._store.groups.get(group_id)
        answers = []
        has_left = False
        for each in leaving:
            error = ErrorCode.unknown_member_id if group is None else self._leave(group, each)
            has_left = has_left or error is ErrorCode.none
            answers.append(
                MemberResponse(
                    member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=error
                )
            )
        if group is not None and has_left:
            self._members_left(now_ms, group)
        return LeaveGroupResponse(members=tuple(answers))

    def _leave(self, group: ClassicGroup, identity: MemberIdentity) -> ErrorCode:
        member_id = identity.member_id
        if member_id in group.pending_ids:
            self._cancel_session(group, member_id)
            group.remove(member_id)
            return ErrorCode.none
        if not member_id and identity.group_instance_id is not None:
            # An administrator removes it by the name of the instance.
            member_id = group.static.get(identity.group_instance_id, "")
        error = check_member(group, member_id, identity.group_instance_id)
        if error is ErrorCode.none:
            self._remove(group, member_id)
        return error

    # The life of members

    def _remove(self, group: ClassicGroup, member_id: str) -> None:
        self._cancel_session(group, member_id)
        removed = group.remove(member_id)
        if removed is not None:
            _answer_removed(group, removed)

    def _members_left(self, now_ms: int, group: ClassicGroup) -> None:
        if group.state in (GroupState.STABLE, GroupState.COMPLETING):
            self.prepare(now_ms, group)
        else:
            self._maybe_complete_join(now_ms, group)

    def _set_session(self, now_ms: int, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        self._timers.set(
            ("session", group.group_id, member_id),
            now_ms + timeout_ms,
            lambda then_ms: self._session_ended(then_ms, group, member_id),
        )

    def _cancel_session(self, group: ClassicGroup, member_id: str) -> None:
        self._timers.cancel(("session", group.group_id, member_id))

    def _session_ended(self, now_ms: int, group: ClassicGroup, member_id: str) -> None:
        if group.state is GroupState.DEAD:
            return
        if member_id in group.pending_ids:
            group.remove(member_id)
            self._maybe_complete_join(now_ms, group)
            return
        member = group.members.get(member_id)
        if member is None:
            return
        is_waiting = member.awaiting_join is not None or member.awaiting_sync is not None
        if is_waiting and not member.is_new:
            # It lives; the answer to its request sets the timer again.
            return
        self._store.note_removed(group.group_id, member_id, "its session ended")
        self._remove(group, member_id)
        self._members_left(now_ms, group)

    def begin(self, now_ms: int, group: ClassicGroup) -> None:
        """A group that was loaded: its members may go on with their generation, if they are heard in time."""
        for member in group.members.values():
            self._set_session(now_ms, group, member.member_id, member.session_timeout_ms)
        if len(group.members) > self._store.settings.max_size:
            self.prepare(now_ms, group)

    def end(self, group: ClassicGroup, error: ErrorCode) -> None:
        """This broker coordinates the group no longer, or it is deleted: each request that waits gets an answer."""
        group.state = GroupState.DEAD
        for key in ("join", "sync"):
            self._timers.cancel((key, group.group_id))
        for member_id in group.pending_ids:
            self._cancel_session(group, member_id)
        for member in tuple(group.members.values()):
            self._cancel_session(group, member.member_id)
            group.answer_join(member, _join_error(error, member.member_id))
            answer_sync(member, SyncGroupResponse(error_code=error))


def check_member(
    group: ClassicGroup, member_id: str, instance_id: str | None, generation: int | None = None
) -> ErrorCode:
    """Who sends, then for which generation (rules G4.27 and G4.58)."""
    if instance_id is not None:
        known = group.static.get(instance_id)
        if known is None:
            return ErrorCode.unknown_member_id
        if known != member_id:
            return ErrorCode.fenced_instance_id
    if member_id not in group.members:
        return ErrorCode.unknown_member_id
    if generation is not None and generation != group.generation:
        return ErrorCode.illegal_generation
    return ErrorCode.none


def answer_sync(member: Member, response: SyncGroupResponse) -> None:
    reply, member.awaiting_sync = member.awaiting_sync, None
    if reply is not None:
        reply(response)


def _answer_removed(group: ClassicGroup, member: Member) -> None:
    group.answer_join(member, _join_error(ErrorCode.unknown_member_id, ""))
    answer_sync(member, SyncGroupResponse(error_code=ErrorCode.unknown_member_id))


def _synced(group: ClassicGroup, member: Member, error: ErrorCode) -> SyncGroupResponse:
    if error is not ErrorCode.none:
        return SyncGroupResponse(error_code=error)
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment
    )


def _join_error(error: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=None)


def _protocols(request: JoinGroupRequest) -> Protocols:
    return tuple((each.name, each.metadata) for each in request.protocols)


def _rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    """Version 0 has none."""
    return request.session_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms


def _differs(said: str | None, known: str | None) -> bool:
    return said is not None and known is not None and said != known


def _warn_of_empty(group: ClassicGroup, error: ErrorCode) -> None:
    if error is not ErrorCode.none:
        log.warning("group %s: that it is empty was not written: %s", group.group_id, error.name)
