"""FindCoordinator (10), versions 0 to 6. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class Coordinator(Struct):
    key: str = kafka("string", default="")
    node_id: int = kafka("int32", default=0)
    host: str = kafka("string", default="")
    port: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)


@message(versions=(0, 6), flexible_since=3, api_key=10)
class FindCoordinatorResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0, since=1)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none, until=3)
    error_message: str | None = kafka("string", default="", since=1, until=3, nullable=True)
    node_id: int = kafka("int32", default=0, until=3)
    host: str = kafka("string", default="", until=3)
    port: int = kafka("int32", default=0, until=3)
    coordinators: tuple[Coordinator, ...] = kafka([Coordinator], default=(), since=4)


@message(versions=(0, 6), flexible_since=3, api_key=10, response=FindCoordinatorResponse)
class FindCoordinatorRequest(Request[FindCoordinatorResponse]):
    key: str = kafka("string", default="", until=3)
    key_type: int = kafka("int8", default=0, since=1)
    coordinator_keys: tuple[str, ...] = kafka("[]string", default=(), since=4)
