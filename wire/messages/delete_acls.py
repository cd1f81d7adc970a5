"""DeleteAcls (31), versions 1 to 3. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class DeleteAclsMatchingAcl(Struct):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)
    resource_type: int = kafka("int8", default=0)
    resource_name: str = kafka("string", default="")
    pattern_type: int = kafka("int8", default=3)
    principal: str = kafka("string", default="")
    host: str = kafka("string", default="")
    operation: int = kafka("int8", default=0)
    permission_type: int = kafka("int8", default=0)


@struct
class DeleteAclsFilterResult(Struct):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)
    matching_acls: tuple[DeleteAclsMatchingAcl, ...] = kafka([DeleteAclsMatchingAcl], default=())


@message(versions=(1, 3), flexible_since=2, api_key=31)
class DeleteAclsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    filter_results: tuple[DeleteAclsFilterResult, ...] = kafka([DeleteAclsFilterResult], default=())


@struct
class DeleteAclsFilter(Struct):
    resource_type_filter: int = kafka("int8", default=0)
    resource_name_filter: str | None = kafka("string", default="", nullable=True)
    pattern_type_filter: int = kafka("int8", default=3)
    principal_filter: str | None = kafka("string", default="", nullable=True)
    host_filter: str | None = kafka("string", default="", nullable=True)
    operation: int = kafka("int8", default=0)
    permission_type: int = kafka("int8", default=0)


@message(versions=(1, 3), flexible_since=2, api_key=31, response=DeleteAclsResponse)
class DeleteAclsRequest(Request[DeleteAclsResponse]):
    filters: tuple[DeleteAclsFilter, ...] = kafka([DeleteAclsFilter], default=())
