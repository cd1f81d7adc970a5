"""SaslHandshake (17), versions 0 to 1. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, kafka, message
from kquorum.wire.messages.error_codes import ErrorCode


@message(versions=(0, 1), flexible_since=None, api_key=17)
class SaslHandshakeResponse(Response):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    mechanisms: tuple[str, ...] = kafka("[]string", default=())


@message(versions=(0, 1), flexible_since=None, api_key=17, response=SaslHandshakeResponse)
class SaslHandshakeRequest(Request[SaslHandshakeResponse]):
    mechanism: str = kafka("string", default="")
