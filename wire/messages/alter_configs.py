"""AlterConfigs (33), versions 0 to 2. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class AlterConfigsResourceResponse(Struct):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)
    resource_type: int = kafka("int8", default=0)
    resource_name: str = kafka("string", default="")


@message(versions=(0, 2), flexible_since=2, api_key=33)
class AlterConfigsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    responses: tuple[AlterConfigsResourceResponse, ...] = kafka([AlterConfigsResourceResponse], default=())


@struct
class AlterableConfig(Struct):
    name: str = kafka("string", default="")
    value: str | None = kafka("string", default="", nullable=True)


@struct
class AlterConfigsResource(Struct):
    resource_type: int = kafka("int8", default=0)
    resource_name: str = kafka("string", default="")
    configs: tuple[AlterableConfig, ...] = kafka([AlterableConfig], default=())


@message(versions=(0, 2), flexible_since=2, api_key=33, response=AlterConfigsResponse)
class AlterConfigsRequest(Request[AlterConfigsResponse]):
    resources: tuple[AlterConfigsResource, ...] = kafka([AlterConfigsResource], default=())
    validate_only: bool = kafka("bool", default=False)
