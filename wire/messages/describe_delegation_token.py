"""DescribeDelegationToken (41), versions 1 to 3. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class DescribedDelegationTokenRenewer(Struct):
    principal_type: str = kafka("string", default="")
    principal_name: str = kafka("string", default="")


@struct
class DescribedDelegationToken(Struct):
    principal_type: str = kafka("string", default="")
    principal_name: str = kafka("string", default="")
    token_requester_principal_type: str = kafka("string", default="", since=3)
    token_requester_principal_name: str = kafka("string", default="", since=3)
    issue_timestamp: int = kafka("int64", default=0)
    expiry_timestamp: int = kafka("int64", default=0)
    max_timestamp: int = kafka("int64", default=0)
    token_id: str = kafka("string", default="")
    hmac: bytes = kafka("bytes", default=b"", is_secret=True)
    renewers: tuple[DescribedDelegationTokenRenewer, ...] = kafka(
        [DescribedDelegationTokenRenewer], default=()
    )


@message(versions=(1, 3), flexible_since=2, api_key=41)
class DescribeDelegationTokenResponse(Response):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    tokens: tuple[DescribedDelegationToken, ...] = kafka([DescribedDelegationToken], default=())
    throttle_time_ms: int = kafka("int32", default=0)


@struct
class DescribeDelegationTokenOwner(Struct):
    principal_type: str = kafka("string", default="")
    principal_name: str = kafka("string", default="")


@message(versions=(1, 3), flexible_since=2, api_key=41, response=DescribeDelegationTokenResponse)
class DescribeDelegationTokenRequest(Request[DescribeDelegationTokenResponse]):
    owners: tuple[DescribeDelegationTokenOwner, ...] | None = kafka(
        [DescribeDelegationTokenOwner], default=(), nullable=True
    )
