"""ListGroups (api key 16): the groups that this broker coordinates. A client asks every broker."""

from typing import Final

from kquorum.broker.apis.api import Authorized, Local
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.coordinators.loading import ShardState
from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kquorum.wire.protocol.api_keys import ApiKey


def handle_list_groups(
    context: RequestContext, request: ListGroupsRequest, services: BrokerServices
) -> ListGroupsResponse:
    """While a shard loads, the whole list would be wrong (rule G6.3)."""
    shards = list(services.groups.shards.values())
    if any(shard.state is ShardState.LOADING for shard in shards):
        return ListGroupsResponse(error_code=ErrorCode.coordinator_load_in_progress)
    states = {each.strip().lower() for each in request.states_filter}
    types = {each.strip().lower() for each in request.types_filter}
    access = services.access(context)
    sees_all = access.allows_on_cluster(Operation.DESCRIBE, is_asked=False)
    listed = [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type,
            group_state=group.state,
            group_type=group.type,
        )
        for shard in services.groups.active()
        for group in shard.listed()
        if (not states or group.state.lower() in states)
        and (not types or group.type in types)
        and (
            sees_all or access.allows(Operation.DESCRIBE, ResourceType.GROUP, group.group_id, is_asked=False)
        )
    ]
    return ListGroupsResponse(groups=tuple(sorted(listed, key=lambda group: group.group_id)))


# DESCRIBE on the cluster, or on each group that is listed.
API: Final = Local(ApiKey.LIST_GROUPS, Authorized.IN_HANDLER, handle=handle_list_groups)
