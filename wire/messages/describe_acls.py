"""DescribeAcls (29), versions 1 to 3. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class AclDescription(Struct):
    principal: str = kafka("string", default="")
    host: str = kafka("string", default="")
    operation: int = kafka("int8", default=0)
    permission_type: int = kafka("int8", default=0)


@struct
class DescribeAclsResource(Struct):
    resource_type: int = kafka("int8", default=0)
    resource_name: str = kafka("string", default="")
    pattern_type: int = kafka("int8", default=3)
    acls: tuple[AclDescription, ...] = kafka([AclDescription], default=())


@message(versions=(1, 3), flexible_since=2, api_key=29)
class DescribeAclsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)
    resources: tuple[DescribeAclsResource, ...] = kafka([DescribeAclsResource], default=())


@message(versions=(1, 3), flexible_since=2, api_key=29, response=DescribeAclsResponse)
class DescribeAclsRequest(Request[DescribeAclsResponse]):
    resource_type_filter: int = kafka("int8", default=0)
    resource_name_filter: str | None = kafka("string", default="", nullable=True)
    pattern_type_filter: int = kafka("int8", default=3)
    principal_filter: str | None = kafka("string", default="", nullable=True)
    host_filter: str | None = kafka("string", default="", nullable=True)
    operation: int = kafka("int8", default=0)
    permission_type: int = kafka("int8", default=0)
