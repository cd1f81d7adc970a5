"""DescribeConfigs (32), versions 1 to 4. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class DescribeConfigsSynonym(Struct):
    name: str = kafka("string", default="")
    value: str | None = kafka("string", default="", nullable=True)
    source: int = kafka("int8", default=0)


@struct
class DescribeConfigsResourceResult(Struct):
    name: str = kafka("string", default="")
    value: str | None = kafka("string", default="", nullable=True)
    read_only: bool = kafka("bool", default=False)
    config_source: int = kafka("int8", default=-1)
    is_sensitive: bool = kafka("bool", default=False)
    synonyms: tuple[DescribeConfigsSynonym, ...] = kafka([DescribeConfigsSynonym], default=())
    config_type: int = kafka("int8", default=0, since=3)
    documentation: str | None = kafka("string", default="", since=3, nullable=True)


@struct
class DescribeConfigsResult(Struct):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)
    resource_type: int = kafka("int8", default=0)
    resource_name: str = kafka("string", default="")
    configs: tuple[DescribeConfigsResourceResult, ...] = kafka([DescribeConfigsResourceResult], default=())


@message(versions=(1, 4), flexible_since=4, api_key=32)
class DescribeConfigsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    results: tuple[DescribeConfigsResult, ...] = kafka([DescribeConfigsResult], default=())


@struct
class DescribeConfigsResource(Struct):
    resource_type: int = kafka("int8", default=0)
    resource_name: str = kafka("string", default="")
    configuration_keys: tuple[str, ...] | None = kafka("[]string", default=(), nullable=True)


@message(versions=(1, 4), flexible_since=4, api_key=32, response=DescribeConfigsResponse)
class DescribeConfigsRequest(Request[DescribeConfigsResponse]):
    resources: tuple[DescribeConfigsResource, ...] = kafka([DescribeConfigsResource], default=())
    include_synonyms: bool = kafka("bool", default=False)
    include_documentation: bool = kafka("bool", default=False, since=3)
