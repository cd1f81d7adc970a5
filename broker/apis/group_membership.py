"""JoinGroup (11), Heartbeat (12), LeaveGroup (13) and SyncGroup (14): members that speak the classic protocol.

A join and a sync wait for the other members, the rest for the log. `broker.groups.classic_protocol` decides, and
`broker.groups.classic_members` in a group that has members of the consumer protocol too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kquorum.broker.apis.api import Answer, Authorized, Deferred
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.groups.classic_protocol import Client
from kquorum.broker.groups.shard import GroupShard
from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kquorum.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kquorum.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kquorum.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kquorum.wire.protocol.api_keys import ApiKey

Reply = Callable[[Answer], None]

_FIRST_JOIN_WITH_NULL_PROTOCOL: Final = 7
_FIRST_LEAVE_OF_MANY: Final = 3
_FIRST_SYNC_WITH_PROTOCOL: Final = 5


def _shard(context: RequestContext, services: BrokerServices, group_id: str) -> GroupShard | ErrorCode:
    if not services.access(context).allows(Operation.READ, ResourceType.GROUP, group_id):
        return ErrorCode.group_authorization_failed
    if not group_id:
        return ErrorCode.invalid_group_id
    return services.groups.shard_of(group_id)


def handle_join_group(
    context: RequestContext, request: JoinGroupRequest, services: BrokerServices, reply: Reply
) -> None:
    version = context.header.api_version

    def answer(response: JoinGroupResponse) -> None:
        """Before version 7 the protocol cannot be null, and since it is not empty (rule G4.5)."""
        is_nullable = version >= _FIRST_JOIN_WITH_NULL_PROTOCOL
        response.protocol_name = response.protocol_name or (None if is_nullable else "")
        services.data.settle_soon()
        reply(response)

    shard = _shard(context, services, request.group_id)
    if isinstance(shard, ErrorCode):
        answer(JoinGroupResponse(error_code=shard, member_id=request.member_id))
        return
    # Java's form of an address.
    client = Client(version, context.header.client_id or "", f"/{context.peer_host}")
    shard.join(services.data.now_ms(), request, client, answer)
    # For the other members, unless it is answered.
    context.park()
    services.data.settle_soon()


def handle_sync_group(
    context: RequestContext, request: SyncGroupRequest, services: BrokerServices, reply: Reply
) -> None:
    def answer(response: SyncGroupResponse) -> None:
        services.data.settle_soon()
        reply(response)

    lacks_protocol = request.protocol_type is None or request.protocol_name is None
    if context.header.api_version >= _FIRST_SYNC_WITH_PROTOCOL and lacks_protocol:
        answer(SyncGroupResponse(error_code=ErrorCode.inconsistent_group_protocol))
        return
    shard = _shard(context, services, request.group_id)
    if isinstance(shard, ErrorCode):
        answer(SyncGroupResponse(error_code=shard))
        return
    shard.sync(services.data.now_ms(), request, answer)
    context.park()
    services.data.settle_soon()


def handle_heartbeat(
    context: RequestContext, request: HeartbeatRequest, services: BrokerServices, reply: Reply
) -> None:
    shard = _shard(context, services, request.group_id)
    if isinstance(shard, ErrorCode):
        # Members are not to join again because their coordinator moved (rule G1.22).
        is_loading = shard is ErrorCode.coordinator_load_in_progress
        reply(HeartbeatResponse(error_code=ErrorCode.none if is_loading else shard))
        return
    shard.heartbeat(services.data.now_ms(), request, lambda error: reply(HeartbeatResponse(error_code=error)))
    services.data.settle_soon()


def handle_leave_group(
    context: RequestContext, request: LeaveGroupRequest, services: BrokerServices, reply: Reply
) -> None:
    is_one = context.header.api_version < _FIRST_LEAVE_OF_MANY
    members = (MemberIdentity(member_id=request.member_id),) if is_one else request.members
    shard = _shard(context, services, request.group_id)
    if isinstance(shard, ErrorCode):
        reply(LeaveGroupResponse(error_code=shard))
        return

    def answer(response: LeaveGroupResponse) -> None:
        if is_one and response.error_code is ErrorCode.none:
            response.error_code = response.members[0].error_code
        reply(response)

    shard.leave(services.data.now_ms(), request.group_id, tuple(members), answer)
    services.data.settle_soon()


# READ on the group.
JOIN_GROUP: Final = Deferred(ApiKey.JOIN_GROUP, Authorized.IN_HANDLER, handle=handle_join_group)
SYNC_GROUP: Final = Deferred(ApiKey.SYNC_GROUP, Authorized.IN_HANDLER, handle=handle_sync_group)
HEARTBEAT: Final = Deferred(ApiKey.HEARTBEAT, Authorized.IN_HANDLER, handle=handle_heartbeat)
LEAVE_GROUP: Final = Deferred(ApiKey.LEAVE_GROUP, Authorized.IN_HANDLER, handle=handle_leave_group)
