"""SaslAuthenticate (36), versions 0 to 2. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, kafka, message
from kquorum.wire.messages.error_codes import ErrorCode


@message(versions=(0, 2), flexible_since=2, api_key=36)
class SaslAuthenticateResponse(Response):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)
    auth_bytes: bytes = kafka("bytes", default=b"", is_secret=True)
    session_lifetime_ms: int = kafka("int64", default=0, since=1)


@message(versions=(0, 2), flexible_since=2, api_key=36, response=SaslAuthenticateResponse)
class SaslAuthenticateRequest(Request[SaslAuthenticateResponse]):
    auth_bytes: bytes = kafka("bytes", default=b"", is_secret=True)
