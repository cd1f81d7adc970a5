"""Heartbeat (12), versions 0 to 4. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, kafka, message
from kquorum.wire.messages.error_codes import ErrorCode


@message(versions=(0, 4), flexible_since=4, api_key=12)
class HeartbeatResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0, since=1)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)


@message(versions=(0, 4), flexible_since=4, api_key=12, response=HeartbeatResponse)
class HeartbeatRequest(Request[HeartbeatResponse]):
    group_id: str = kafka("string", default="")
    generation_id: int = kafka("int32", default=0)
    member_id: str = kafka("string", default="")
    group_instance_id: str | None = kafka("string", default=None, since=3, nullable=True)
