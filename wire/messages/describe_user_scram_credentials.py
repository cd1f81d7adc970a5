"""DescribeUserScramCredentials (50), version 0. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class CredentialInfo(Struct):
    mechanism: int = kafka("int8", default=0)
    iterations: int = kafka("int32", default=0)


@struct
class DescribeUserScramCredentialsResult(Struct):
    user: str = kafka("string", default="")
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)
    credential_infos: tuple[CredentialInfo, ...] = kafka([CredentialInfo], default=())


@message(versions=(0, 0), flexible_since=0, api_key=50)
class DescribeUserScramCredentialsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)
    results: tuple[DescribeUserScramCredentialsResult, ...] = kafka(
        [DescribeUserScramCredentialsResult], default=()
    )


@struct
class UserName(Struct):
    name: str = kafka("string", default="")


@message(versions=(0, 0), flexible_since=0, api_key=50, response=DescribeUserScramCredentialsResponse)
class DescribeUserScramCredentialsRequest(Request[DescribeUserScramCredentialsResponse]):
    users: tuple[UserName, ...] | None = kafka([UserName], default=(), nullable=True)
