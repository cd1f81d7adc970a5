"""ListPartitionReassignments (46), version 0. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class OngoingPartitionReassignment(Struct):
    partition_index: int = kafka("int32", default=0)
    replicas: tuple[int, ...] = kafka("[]int32", default=())
    adding_replicas: tuple[int, ...] = kafka("[]int32", default=())
    removing_replicas: tuple[int, ...] = kafka("[]int32", default=())


@struct
class OngoingTopicReassignment(Struct):
    name: str = kafka("string", default="")
    partitions: tuple[OngoingPartitionReassignment, ...] = kafka([OngoingPartitionReassignment], default=())


@message(versions=(0, 0), flexible_since=0, api_key=46)
class ListPartitionReassignmentsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)
    topics: tuple[OngoingTopicReassignment, ...] = kafka([OngoingTopicReassignment], default=())


@struct
class ListPartitionReassignmentsTopics(Struct):
    name: str = kafka("string", default="")
    partition_indexes: tuple[int, ...] = kafka("[]int32", default=())


@message(versions=(0, 0), flexible_since=0, api_key=46, response=ListPartitionReassignmentsResponse)
class ListPartitionReassignmentsRequest(Request[ListPartitionReassignmentsResponse]):
    timeout_ms: int = kafka("int32", default=60000)
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = kafka(
        [ListPartitionReassignmentsTopics], default=(), nullable=True
    )
