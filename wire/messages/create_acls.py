"""CreateAcls (30), versions 1 to 3. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class AclCreationResult(Struct):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)


@message(versions=(1, 3), flexible_since=2, api_key=30)
class CreateAclsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    results: tuple[AclCreationResult, ...] = kafka([AclCreationResult], default=())


@struct
class AclCreation(Struct):
    resource_type: int = kafka("int8", default=0)
    resource_name: str = kafka("string", default="")
    resource_pattern_type: int = kafka("int8", default=3)
    principal: str = kafka("string", default="")
    host: str = kafka("string", default="")
    operation: int = kafka("int8", default=0)
    permission_type: int = kafka("int8", default=0)


@message(versions=(1, 3), flexible_since=2, api_key=30, response=CreateAclsResponse)
class CreateAclsRequest(Request[CreateAclsResponse]):
    creations: tuple[AclCreation, ...] = kafka([AclCreation], default=())
