"""ConsumerGroupDescribe (69), versions 0 to 1. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct, frozen_struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@struct
class TopicPartitions(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    topic_name: str = kafka("string", default="")
    partitions: tuple[int, ...] = kafka("[]int32", default=())


@frozen_struct
class Assignment(Struct):
    topic_partitions: tuple[TopicPartitions, ...] = kafka([TopicPartitions], default=())


@struct
class Member(Struct):
    member_id: str = kafka("string", default="")
    instance_id: str | None = kafka("string", default=None, nullable=True)
    rack_id: str | None = kafka("string", default=None, nullable=True)
    member_epoch: int = kafka("int32", default=0)
    client_id: str = kafka("string", default="")
    client_host: str = kafka("string", default="")
    subscribed_topic_names: tuple[str, ...] = kafka("[]string", default=())
    subscribed_topic_regex: str | None = kafka("string", default=None, nullable=True)
    assignment: Assignment = kafka(Assignment, default=Assignment())
    target_assignment: Assignment = kafka(Assignment, default=Assignment())
    member_type: int = kafka("int8", default=-1, since=1)


@struct
class DescribedGroup(Struct):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default=None, nullable=True)
    group_id: str = kafka("string", default="")
    group_state: str = kafka("string", default="")
    group_epoch: int = kafka("int32", default=0)
    assignment_epoch: int = kafka("int32", default=0)
    assignor_name: str = kafka("string", default="")
    members: tuple[Member, ...] = kafka([Member], default=())
    authorized_operations: int = kafka("int32", default=-2147483648)


@message(versions=(0, 1), flexible_since=0, api_key=69)
class ConsumerGroupDescribeResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    groups: tuple[DescribedGroup, ...] = kafka([DescribedGroup], default=())


@message(versions=(0, 1), flexible_since=0, api_key=69, response=ConsumerGroupDescribeResponse)
class ConsumerGroupDescribeRequest(Request[ConsumerGroupDescribeResponse]):
    group_ids: tuple[str, ...] = kafka("[]string", default=())
    include_authorized_operations: bool = kafka("bool", default=False)
