"""BrokerHeartbeat (63), versions 0 to 2. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, kafka, message
from kquorum.wire.messages.error_codes import ErrorCode


@message(versions=(0, 2), flexible_since=0, api_key=63)
class BrokerHeartbeatResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    is_caught_up: bool = kafka("bool", default=False)
    is_fenced: bool = kafka("bool", default=True)
    should_shut_down: bool = kafka("bool", default=False)


@message(versions=(0, 2), flexible_since=0, api_key=63, response=BrokerHeartbeatResponse)
class BrokerHeartbeatRequest(Request[BrokerHeartbeatResponse]):
    broker_id: int = kafka("int32", default=0)
    broker_epoch: int = kafka("int64", default=-1)
    current_metadata_offset: int = kafka("int64", default=0)
    want_fence: bool = kafka("bool", default=False)
    want_shut_down: bool = kafka("bool", default=False)
    offline_log_dirs: tuple[UUID, ...] = kafka("[]uuid", default=(), since=1, tag=0)
    cordoned_log_dirs: tuple[UUID, ...] | None = kafka("[]uuid", default=None, since=2, nullable=True, tag=1)
