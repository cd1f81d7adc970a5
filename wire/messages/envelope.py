"""Envelope (58), version 0. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, kafka, message
from kquorum.wire.messages.error_codes import ErrorCode


@message(versions=(0, 0), flexible_since=0, api_key=58)
class EnvelopeResponse(Response):
    response_data: bytes | None = kafka("bytes", default=None, nullable=True)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)


@message(versions=(0, 0), flexible_since=0, api_key=58, response=EnvelopeResponse)
class EnvelopeRequest(Request[EnvelopeResponse]):
    request_data: bytes = kafka("bytes", default=b"")
    request_principal: bytes | None = kafka("bytes", default=b"", nullable=True)
    client_host_address: bytes = kafka("bytes", default=b"")
