"""ShareGroupHeartbeat (76), version 1. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@struct
class TopicPartitions(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[int, ...] = kafka("[]int32", default=())


@struct
class Assignment(Struct):
    topic_partitions: tuple[TopicPartitions, ...] = kafka([TopicPartitions], default=())


@message(versions=(1, 1), flexible_since=1, api_key=76)
class ShareGroupHeartbeatResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default=None, nullable=True)
    member_id: str | None = kafka("string", default=None, nullable=True)
    member_epoch: int = kafka("int32", default=0)
    heartbeat_interval_ms: int = kafka("int32", default=0)
    assignment: Assignment | None = kafka(Assignment, default=None, nullable=True)


@message(versions=(1, 1), flexible_since=1, api_key=76, response=ShareGroupHeartbeatResponse)
class ShareGroupHeartbeatRequest(Request[ShareGroupHeartbeatResponse]):
    group_id: str = kafka("string", default="")
    member_id: str = kafka("string", default="")
    member_epoch: int = kafka("int32", default=0)
    rack_id: str | None = kafka("string", default=None, nullable=True)
    subscribed_topic_names: tuple[str, ...] | None = kafka("[]string", default=None, nullable=True)
