"""DescribeTopicPartitions (75), version 0. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@struct
class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    partition_index: int = kafka("int32", default=0)
    leader_id: int = kafka("int32", default=0)
    leader_epoch: int = kafka("int32", default=-1)
    replica_nodes: tuple[int, ...] = kafka("[]int32", default=())
    isr_nodes: tuple[int, ...] = kafka("[]int32", default=())
    eligible_leader_replicas: tuple[int, ...] | None = kafka("[]int32", default=None, nullable=True)
    last_known_elr: tuple[int, ...] | None = kafka("[]int32", default=None, nullable=True)
    offline_replicas: tuple[int, ...] = kafka("[]int32", default=())


@struct
class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    name: str | None = kafka("string", default="", nullable=True)
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    is_internal: bool = kafka("bool", default=False)
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = kafka(
        [DescribeTopicPartitionsResponsePartition], default=()
    )
    topic_authorized_operations: int = kafka("int32", default=-2147483648)


@struct
class ResponseCursor(Struct):
    topic_name: str = kafka("string", default="")
    partition_index: int = kafka("int32", default=0)


@message(versions=(0, 0), flexible_since=0, api_key=75)
class DescribeTopicPartitionsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...] = kafka(
        [DescribeTopicPartitionsResponseTopic], default=()
    )
    next_cursor: ResponseCursor | None = kafka(ResponseCursor, default=None, nullable=True)


@struct
class TopicRequest(Struct):
    name: str = kafka("string", default="")


@struct
class RequestCursor(Struct):
    topic_name: str = kafka("string", default="")
    partition_index: int = kafka("int32", default=0)


@message(versions=(0, 0), flexible_since=0, api_key=75, response=DescribeTopicPartitionsResponse)
class DescribeTopicPartitionsRequest(Request[DescribeTopicPartitionsResponse]):
    topics: tuple[TopicRequest, ...] = kafka([TopicRequest], default=())
    response_partition_limit: int = kafka("int32", default=2000)
    cursor: RequestCursor | None = kafka(RequestCursor, default=None, nullable=True)
