"""DeleteGroups (42), versions 0 to 2. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class DeletableGroupResult(Struct):
    group_id: str = kafka("string", default="")
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)


@message(versions=(0, 2), flexible_since=2, api_key=42)
class DeleteGroupsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    results: tuple[DeletableGroupResult, ...] = kafka([DeletableGroupResult], default=())


@message(versions=(0, 2), flexible_since=2, api_key=42, response=DeleteGroupsResponse)
class DeleteGroupsRequest(Request[DeleteGroupsResponse]):
    groups_names: tuple[str, ...] = kafka("[]string", default=())
