"""DeleteRecords (21), versions 0 to 2. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class DeleteRecordsPartitionResult(Struct):
    partition_index: int = kafka("int32", default=0)
    low_watermark: int = kafka("int64", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)


@struct
class DeleteRecordsTopicResult(Struct):
    name: str = kafka("string", default="")
    partitions: tuple[DeleteRecordsPartitionResult, ...] = kafka([DeleteRecordsPartitionResult], default=())


@message(versions=(0, 2), flexible_since=2, api_key=21)
class DeleteRecordsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    topics: tuple[DeleteRecordsTopicResult, ...] = kafka([DeleteRecordsTopicResult], default=())


@struct
class DeleteRecordsPartition(Struct):
    partition_index: int = kafka("int32", default=0)
    offset: int = kafka("int64", default=0)


@struct
class DeleteRecordsTopic(Struct):
    name: str = kafka("string", default="")
    partitions: tuple[DeleteRecordsPartition, ...] = kafka([DeleteRecordsPartition], default=())


@message(versions=(0, 2), flexible_since=2, api_key=21, response=DeleteRecordsResponse)
class DeleteRecordsRequest(Request[DeleteRecordsResponse]):
    topics: tuple[DeleteRecordsTopic, ...] = kafka([DeleteRecordsTopic], default=())
    timeout_ms: int = kafka("int32", default=0)
