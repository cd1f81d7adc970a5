"""JoinGroup (11), versions 0 to 9. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class JoinGroupResponseMember(Struct):
    member_id: str = kafka("string", default="")
    group_instance_id: str | None = kafka("string", default=None, since=5, nullable=True)
    metadata: bytes = kafka("bytes", default=b"")


@message(versions=(0, 9), flexible_since=6, api_key=11)
class JoinGroupResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0, since=2)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    generation_id: int = kafka("int32", default=-1)
    protocol_type: str | None = kafka("string", default=None, since=7, nullable=True)
    protocol_name: str | None = kafka("string", default="", nullable_since=7)
    leader: str = kafka("string", default="")
    skip_assignment: bool = kafka("bool", default=False, since=9)
    member_id: str = kafka("string", default="")
    members: tuple[JoinGroupResponseMember, ...] = kafka([JoinGroupResponseMember], default=())


@struct
class JoinGroupRequestProtocol(Struct):
    name: str = kafka("string", default="")
    metadata: bytes = kafka("bytes", default=b"")


@message(versions=(0, 9), flexible_since=6, api_key=11, response=JoinGroupResponse)
class JoinGroupRequest(Request[JoinGroupResponse]):
    group_id: str = kafka("string", default="")
    session_timeout_ms: int = kafka("int32", default=0)
    rebalance_timeout_ms: int = kafka("int32", default=-1, since=1, is_ignorable=True)
    member_id: str = kafka("string", default="")
    group_instance_id: str | None = kafka("string", default=None, since=5, nullable=True)
    protocol_type: str = kafka("string", default="")
    protocols: tuple[JoinGroupRequestProtocol, ...] = kafka([JoinGroupRequestProtocol], default=())
    reason: str | None = kafka("string", default=None, since=8, nullable=True, is_ignorable=True)
