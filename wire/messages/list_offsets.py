"""ListOffsets (2), versions 1 to 11. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class ListOffsetsPartitionResponse(Struct):
    partition_index: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    timestamp: int = kafka("int64", default=-1)
    offset: int = kafka("int64", default=-1)
    leader_epoch: int = kafka("int32", default=-1, since=4)


@struct
class ListOffsetsTopicResponse(Struct):
    name: str = kafka("string", default="")
    partitions: tuple[ListOffsetsPartitionResponse, ...] = kafka([ListOffsetsPartitionResponse], default=())


@message(versions=(1, 11), flexible_since=6, api_key=2)
class ListOffsetsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0, since=2)
    topics: tuple[ListOffsetsTopicResponse, ...] = kafka([ListOffsetsTopicResponse], default=())


@struct
class ListOffsetsPartition(Struct):
    partition_index: int = kafka("int32", default=0)
    current_leader_epoch: int = kafka("int32", default=-1, since=4, is_ignorable=True)
    timestamp: int = kafka("int64", default=0)


@struct
class ListOffsetsTopic(Struct):
    name: str = kafka("string", default="")
    partitions: tuple[ListOffsetsPartition, ...] = kafka([ListOffsetsPartition], default=())


@message(versions=(1, 11), flexible_since=6, api_key=2, response=ListOffsetsResponse)
class ListOffsetsRequest(Request[ListOffsetsResponse]):
    replica_id: int = kafka("int32", default=0)
    isolation_level: int = kafka("int8", default=0, since=2)
    topics: tuple[ListOffsetsTopic, ...] = kafka([ListOffsetsTopic], default=())
    timeout_ms: int = kafka("int32", default=0, since=10, is_ignorable=True)
