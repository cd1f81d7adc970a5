"""ConsumerGroupHeartbeat (68), versions 0 to 1. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@struct
class ResponseTopicPartitions(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[int, ...] = kafka("[]int32", default=())


@struct
class Assignment(Struct):
    topic_partitions: tuple[ResponseTopicPartitions, ...] = kafka([ResponseTopicPartitions], default=())


@message(versions=(0, 1), flexible_since=0, api_key=68)
class ConsumerGroupHeartbeatResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default=None, nullable=True)
    member_id: str | None = kafka("string", default=None, nullable=True)
    member_epoch: int = kafka("int32", default=0)
    heartbeat_interval_ms: int = kafka("int32", default=0)
    assignment: Assignment | None = kafka(Assignment, default=None, nullable=True)


@struct
class RequestTopicPartitions(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[int, ...] = kafka("[]int32", default=())


@message(versions=(0, 1), flexible_since=0, api_key=68, response=ConsumerGroupHeartbeatResponse)
class ConsumerGroupHeartbeatRequest(Request[ConsumerGroupHeartbeatResponse]):
    group_id: str = kafka("string", default="")
    member_id: str = kafka("string", default="")
    member_epoch: int = kafka("int32", default=0)
    instance_id: str | None = kafka("string", default=None, nullable=True)
    rack_id: str | None = kafka("string", default=None, nullable=True)
    rebalance_timeout_ms: int = kafka("int32", default=-1)
    subscribed_topic_names: tuple[str, ...] | None = kafka("[]string", default=None, nullable=True)
    subscribed_topic_regex: str | None = kafka("string", default=None, since=1, nullable=True)
    server_assignor: str | None = kafka("string", default=None, nullable=True)
    topic_partitions: tuple[RequestTopicPartitions, ...] | None = kafka(
        [RequestTopicPartitions], default=(), nullable=True
    )
