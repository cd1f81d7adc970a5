"""ListGroups (16), versions 0 to 5. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class ListedGroup(Struct):
    group_id: str = kafka("string", default="")
    protocol_type: str = kafka("string", default="")
    group_state: str = kafka("string", default="", since=4)
    group_type: str = kafka("string", default="", since=5)


@message(versions=(0, 5), flexible_since=3, api_key=16)
class ListGroupsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0, since=1)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    groups: tuple[ListedGroup, ...] = kafka([ListedGroup], default=())


@message(versions=(0, 5), flexible_since=3, api_key=16, response=ListGroupsResponse)
class ListGroupsRequest(Request[ListGroupsResponse]):
    states_filter: tuple[str, ...] = kafka("[]string", default=(), since=4)
    types_filter: tuple[str, ...] = kafka("[]string", default=(), since=5)
