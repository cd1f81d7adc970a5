"""ExpireDelegationToken (40), versions 1 to 2. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, kafka, message
from kquorum.wire.messages.error_codes import ErrorCode


@message(versions=(1, 2), flexible_since=2, api_key=40)
class ExpireDelegationTokenResponse(Response):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    expiry_timestamp_ms: int = kafka("int64", default=0)
    throttle_time_ms: int = kafka("int32", default=0)


@message(versions=(1, 2), flexible_since=2, api_key=40, response=ExpireDelegationTokenResponse)
class ExpireDelegationTokenRequest(Request[ExpireDelegationTokenResponse]):
    hmac: bytes = kafka("bytes", default=b"", is_secret=True)
    expiry_time_period_ms: int = kafka("int64", default=0)
