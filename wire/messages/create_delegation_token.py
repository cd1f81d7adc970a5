"""CreateDelegationToken (38), versions 1 to 3. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@message(versions=(1, 3), flexible_since=2, api_key=38)
class CreateDelegationTokenResponse(Response):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    principal_type: str = kafka("string", default="")
    principal_name: str = kafka("string", default="")
    token_requester_principal_type: str = kafka("string", default="", since=3)
    token_requester_principal_name: str = kafka("string", default="", since=3)
    issue_timestamp_ms: int = kafka("int64", default=0)
    expiry_timestamp_ms: int = kafka("int64", default=0)
    max_timestamp_ms: int = kafka("int64", default=0)
    token_id: str = kafka("string", default="")
    hmac: bytes = kafka("bytes", default=b"", is_secret=True)
    throttle_time_ms: int = kafka("int32", default=0)


@struct
class CreatableRenewers(Struct):
    principal_type: str = kafka("string", default="")
    principal_name: str = kafka("string", default="")


@message(versions=(1, 3), flexible_since=2, api_key=38, response=CreateDelegationTokenResponse)
class CreateDelegationTokenRequest(Request[CreateDelegationTokenResponse]):
    owner_principal_type: str | None = kafka("string", default="", since=3, nullable=True)
    owner_principal_name: str | None = kafka("string", default="", since=3, nullable=True)
    renewers: tuple[CreatableRenewers, ...] = kafka([CreatableRenewers], default=())
    max_lifetime_ms: int = kafka("int64", default=0)
