"""UnregisterBroker (64), version 0. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, kafka, message
from kquorum.wire.messages.error_codes import ErrorCode


@message(versions=(0, 0), flexible_since=0, api_key=64)
class UnregisterBrokerResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)


@message(versions=(0, 0), flexible_since=0, api_key=64, response=UnregisterBrokerResponse)
class UnregisterBrokerRequest(Request[UnregisterBrokerResponse]):
    broker_id: int = kafka("int32", default=0)
