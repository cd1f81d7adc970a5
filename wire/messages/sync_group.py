"""SyncGroup (14), versions 0 to 5. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@message(versions=(0, 5), flexible_since=4, api_key=14)
class SyncGroupResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0, since=1)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    protocol_type: str | None = kafka("string", default=None, since=5, nullable=True)
    protocol_name: str | None = kafka("string", default=None, since=5, nullable=True)
    assignment: bytes = kafka("bytes", default=b"")


@struct
class SyncGroupRequestAssignment(Struct):
    member_id: str = kafka("string", default="")
    assignment: bytes = kafka("bytes", default=b"")


@message(versions=(0, 5), flexible_since=4, api_key=14, response=SyncGroupResponse)
class SyncGroupRequest(Request[SyncGroupResponse]):
    group_id: str = kafka("string", default="")
    generation_id: int = kafka("int32", default=0)
    member_id: str = kafka("string", default="")
    group_instance_id: str | None = kafka("string", default=None, since=3, nullable=True)
    protocol_type: str | None = kafka("string", default=None, since=5, nullable=True, is_ignorable=True)
    protocol_name: str | None = kafka("string", default=None, since=5, nullable=True, is_ignorable=True)
    assignments: tuple[SyncGroupRequestAssignment, ...] = kafka([SyncGroupRequestAssignment], default=())
