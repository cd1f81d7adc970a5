"""ListGroups (api key 16): the groups that this broker coordinates. A client asks every broker."""

from itertools import islice
from typing import Final

from kquorum.broker.apis.api import Advance, Authorized, Sliced
from kquorum.broker.apis.growing_body import GrowingBody
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.coordinators.loading import ShardState
from kquorum.broker.groups.shard import ListedGroup as Group
from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import EncodedBody, encode_body

_IN_A_SLICE: Final = 1_000


def begin_list_groups(
    context: RequestContext, request: ListGroupsRequest, services: BrokerServices
) -> Advance:
    """While a shard loads, the whole list would be wrong (rule G6.3)."""
    version = context.header.api_version
    if any(shard.state is ShardState.LOADING for shard in services.groups.shards.values()):
        refused = ListGroupsResponse(error_code=ErrorCode.coordinator_load_in_progress)
        return lambda: EncodedBody(encode_body(refused, version))
    states = {each.strip().lower() for each in request.states_filter}
    types = {each.strip().lower() for each in request.types_filter}
    access = services.access(context)
    sees_all = access.allows_on_cluster(Operation.DESCRIBE, is_asked=False)

    def is_asked_for(group: Group) -> bool:
        return (
            (not states or group.state.lower() in states)
            and (not types or group.type in types)
            and (
                sees_all
                or access.allows(Operation.DESCRIBE, ResourceType.GROUP, group.group_id, is_asked=False)
            )
        )

    left = (group for shard in services.groups.active() for group in shard.listed())
    body = GrowingBody(lambda entries: ListGroupsResponse(groups=entries), version, context.making.note_made)

    def advance() -> EncodedBody | None:
        looked = tuple(islice(left, _IN_A_SLICE))
        body.add(
            [
                ListedGroup(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type,
                    group_state=group.state,
                    group_type=group.type,
                )
                for group in looked
                if is_asked_for(group)
            ]
        )
        return None if len(looked) == _IN_A_SLICE else body.whole()

    return advance


# DESCRIBE on the cluster, or on each group that is listed.
API: Final = Sliced(ApiKey.LIST_GROUPS, Authorized.IN_HANDLER, begin=begin_list_groups)
