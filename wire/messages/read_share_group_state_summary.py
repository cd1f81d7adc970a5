"""ReadShareGroupStateSummary (87), versions 0 to 1. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@struct
class PartitionResult(Struct):
    partition: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default=None, nullable=True)
    state_epoch: int = kafka("int32", default=0)
    leader_epoch: int = kafka("int32", default=0)
    start_offset: int = kafka("int64", default=0)
    delivery_complete_count: int = kafka("int32", default=-1, since=1)


@struct
class ReadStateSummaryResult(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[PartitionResult, ...] = kafka([PartitionResult], default=())


@message(versions=(0, 1), flexible_since=0, api_key=87)
class ReadShareGroupStateSummaryResponse(Response):
    results: tuple[ReadStateSummaryResult, ...] = kafka([ReadStateSummaryResult], default=())


@struct
class PartitionData(Struct):
    partition: int = kafka("int32", default=0)
    leader_epoch: int = kafka("int32", default=0)


@struct
class ReadStateSummaryData(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[PartitionData, ...] = kafka([PartitionData], default=())


@message(versions=(0, 1), flexible_since=0, api_key=87, response=ReadShareGroupStateSummaryResponse)
class ReadShareGroupStateSummaryRequest(Request[ReadShareGroupStateSummaryResponse]):
    group_id: str = kafka("string", default="")
    topics: tuple[ReadStateSummaryData, ...] = kafka([ReadStateSummaryData], default=())
