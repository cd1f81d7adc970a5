"""DescribeGroups (api key 15): the state and the members of classic groups."""

from typing import Final

from kquorum.broker.apis.api import Authorized, Local
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.groups.classic_group import ClassicGroup, GroupState
from kquorum.metadata.authorizer.access import Access
from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.metadata.controller.requests import messages_of_entries
from kquorum.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey

_FIRST_VERSION_WITH_ABSENCE: Final = 6
_NOT_THERE: Final = "There is no classic group of this id."


def handle_describe_groups(
    context: RequestContext, request: DescribeGroupsRequest, services: BrokerServices
) -> DescribeGroupsResponse:
    access = services.access(context)
    says_absence = context.header.api_version >= _FIRST_VERSION_WITH_ABSENCE
    messages = messages_of_entries(_NOT_THERE if says_absence else None)
    found = []
    for group_id in request.groups:
        if not access.allows(Operation.DESCRIBE, ResourceType.GROUP, group_id):
            found.append(DescribedGroup(group_id=group_id, error_code=ErrorCode.group_authorization_failed))
            continue
        shard = services.groups.shard_of(group_id)
        if isinstance(shard, ErrorCode):
            found.append(DescribedGroup(group_id=group_id, error_code=shard))
            continue
        group = shard.groups.get(group_id)
        if group is not None:
            described = _described(group)
        else:
            # Before version 6 it is a group in the state Dead, without an error.
            described = DescribedGroup(
                group_id=group_id,
                group_state=GroupState.DEAD.value,
                error_code=ErrorCode.group_id_not_found if says_absence else ErrorCode.none,
                error_message=next(messages),
            )
        if request.include_authorized_operations:
            described.authorized_operations = _operations(access, group_id)
        found.append(described)
    return DescribeGroupsResponse(groups=tuple(found))


# DESCRIBE on each group.
API: Final = Local(ApiKey.DESCRIBE_GROUPS, Authorized.IN_HANDLER, handle=handle_describe_groups)


def _operations(access: Access, group_id: str) -> int:
    return access.operations_on(ResourceType.GROUP, group_id)


def _described(group: ClassicGroup) -> DescribedGroup:
    """While members join, there is no protocol, and no assignment to tell."""
    is_stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if is_stable else "",
        members=tuple(
            [
                DescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    member_metadata=member.metadata(group.protocol) if is_stable else b"",
                    member_assignment=member.assignment if is_stable else b"",
                )
                for member in group.members.values()
            ]
        ),
    )
