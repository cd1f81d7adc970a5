"""AlterPartitionReassignments (45), versions 0 to 1. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class ReassignablePartitionResponse(Struct):
    partition_index: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)


@struct
class ReassignableTopicResponse(Struct):
    name: str = kafka("string", default="")
    partitions: tuple[ReassignablePartitionResponse, ...] = kafka([ReassignablePartitionResponse], default=())


@message(versions=(0, 1), flexible_since=0, api_key=45)
class AlterPartitionReassignmentsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    allow_replication_factor_change: bool = kafka("bool", default=True, since=1)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)
    responses: tuple[ReassignableTopicResponse, ...] = kafka([ReassignableTopicResponse], default=())


@struct
class ReassignablePartition(Struct):
    partition_index: int = kafka("int32", default=0)
    replicas: tuple[int, ...] | None = kafka("[]int32", default=None, nullable=True)


@struct
class ReassignableTopic(Struct):
    name: str = kafka("string", default="")
    partitions: tuple[ReassignablePartition, ...] = kafka([ReassignablePartition], default=())


@message(versions=(0, 1), flexible_since=0, api_key=45, response=AlterPartitionReassignmentsResponse)
class AlterPartitionReassignmentsRequest(Request[AlterPartitionReassignmentsResponse]):
    timeout_ms: int = kafka("int32", default=60000)
    allow_replication_factor_change: bool = kafka("bool", default=True, since=1)
    topics: tuple[ReassignableTopic, ...] = kafka([ReassignableTopic], default=())
