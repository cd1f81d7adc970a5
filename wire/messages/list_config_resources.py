"""ListConfigResources (74), versions 0 to 1. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class ConfigResource(Struct):
    resource_name: str = kafka("string", default="")
    resource_type: int = kafka("int8", default=16, since=1)


@message(versions=(0, 1), flexible_since=0, api_key=74)
class ListConfigResourcesResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    config_resources: tuple[ConfigResource, ...] = kafka([ConfigResource], default=())


@message(versions=(0, 1), flexible_since=0, api_key=74, response=ListConfigResourcesResponse)
class ListConfigResourcesRequest(Request[ListConfigResourcesResponse]):
    resource_types: tuple[int, ...] = kafka("[]int8", default=(), since=1)
