"""DescribeGroups (15), versions 0 to 6. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class DescribedGroupMember(Struct):
    member_id: str = kafka("string", default="")
    group_instance_id: str | None = kafka("string", default=None, since=4, nullable=True)
    client_id: str = kafka("string", default="")
    client_host: str = kafka("string", default="")
    member_metadata: bytes = kafka("bytes", default=b"")
    member_assignment: bytes = kafka("bytes", default=b"")


@struct
class DescribedGroup(Struct):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default=None, since=6, nullable=True)
    group_id: str = kafka("string", default="")
    group_state: str = kafka("string", default="")
    protocol_type: str = kafka("string", default="")
    protocol_data: str = kafka("string", default="")
    members: tuple[DescribedGroupMember, ...] = kafka([DescribedGroupMember], default=())
    authorized_operations: int = kafka("int32", default=-2147483648, since=3)


@message(versions=(0, 6), flexible_since=5, api_key=15)
class DescribeGroupsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0, since=1)
    groups: tuple[DescribedGroup, ...] = kafka([DescribedGroup], default=())


@message(versions=(0, 6), flexible_since=5, api_key=15, response=DescribeGroupsResponse)
class DescribeGroupsRequest(Request[DescribeGroupsResponse]):
    groups: tuple[str, ...] = kafka("[]string", default=())
    include_authorized_operations: bool = kafka("bool", default=False, since=3)
