"""LeaveGroup (13), versions 0 to 5. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class MemberResponse(Struct):
    member_id: str = kafka("string", default="")
    group_instance_id: str | None = kafka("string", default="", nullable=True)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)


@message(versions=(0, 5), flexible_since=4, api_key=13)
class LeaveGroupResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0, since=1)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    members: tuple[MemberResponse, ...] = kafka([MemberResponse], default=(), since=3)


@struct
class MemberIdentity(Struct):
    member_id: str = kafka("string", default="")
    group_instance_id: str | None = kafka("string", default=None, nullable=True)
    reason: str | None = kafka("string", default=None, since=5, nullable=True, is_ignorable=True)


@message(versions=(0, 5), flexible_since=4, api_key=13, response=LeaveGroupResponse)
class LeaveGroupRequest(Request[LeaveGroupResponse]):
    group_id: str = kafka("string", default="")
    member_id: str = kafka("string", default="", until=2)
    members: tuple[MemberIdentity, ...] = kafka([MemberIdentity], default=(), since=3)
