"""ListGroups (api key 16): this broker coordinates no groups, so it lists none, which is no failure.

kafka-configs asks for the groups before it shows the config of one.
"""

from typing import Final

from kquorum.broker.apis.api import Authorized, Local
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kquorum.wire.protocol.api_keys import ApiKey


def handle_list_groups(
    _context: RequestContext, _request: ListGroupsRequest, _services: BrokerServices
) -> ListGroupsResponse:
    return ListGroupsResponse()


API: Final = Local(ApiKey.LIST_GROUPS, Authorized.NOT_NEEDED, handle=handle_list_groups)
