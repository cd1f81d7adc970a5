"""DescribeGroups (api key 15): the state and the members of classic groups."""

from itertools import islice
from typing import Final

from kquorum.broker.apis.api import Advance, Authorized, Sliced
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.groups.classic_group import ClassicGroup, GroupState
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
from kquorum.wire.protocol.headers import EncodedBody, encode_body

_FIRST_VERSION_WITH_ABSENCE: Final = 6
_IN_A_SLICE: Final = 500
_NOT_THERE: Final = "There is no classic group of this id."


def begin_describe_groups(
    context: RequestContext, request: DescribeGroupsRequest, services: BrokerServices
) -> Advance:
    """In slices: each group has to be looked up, and a few bytes of a request name one. A group that is named often is
    described once, for its members may be many."""
    access = services.access(context)
    version = context.header.api_version
    says_absence = version >= _FIRST_VERSION_WITH_ABSENCE
    messages = messages_of_entries(_NOT_THERE if says_absence else None)
    left = iter(dict.fromkeys(request.groups))
    found: list[DescribedGroup] = []

    def described(group_id: str) -> DescribedGroup:
        if not access.allows(Operation.DESCRIBE, ResourceType.GROUP, group_id):
            return DescribedGroup(group_id=group_id, error_code=ErrorCode.group_authorization_failed)
        shard = services.groups.shard_of(group_id)
        if isinstance(shard, ErrorCode):
            return DescribedGroup(group_id=group_id, error_code=shard)
        group = shard.groups.get(group_id)
        if group is not None:
            answer = _described(group)
        else:
            # Before version 6 it is a group in the state Dead, without an error.
            answer = DescribedGroup(
                group_id=group_id,
                group_state=GroupState.DEAD.value,
                error_code=ErrorCode.group_id_not_found if says_absence else ErrorCode.none,
                error_message=next(messages),
            )
        if request.include_authorized_operations:
            answer.authorized_operations = access.operations_on(ResourceType.GROUP, group_id)
        return answer

    def advance() -> EncodedBody | None:
        before = len(found)
        found.extend(described(group_id) for group_id in islice(left, _IN_A_SLICE))
        if len(found) - before == _IN_A_SLICE:
            return None
        return EncodedBody(encode_body(DescribeGroupsResponse(groups=tuple(found)), version))

    return advance


# DESCRIBE on each group.
API: Final = Sliced(ApiKey.DESCRIBE_GROUPS, Authorized.IN_HANDLER, begin=begin_describe_groups)


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
