"""ReadShareGroupState (84), version 0. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@struct
class StateBatch(Struct):
    first_offset: int = kafka("int64", default=0)
    last_offset: int = kafka("int64", default=0)
    delivery_state: int = kafka("int8", default=0)
    delivery_count: int = kafka("int16", default=0)


@struct
class PartitionResult(Struct):
    partition: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default=None, nullable=True)
    state_epoch: int = kafka("int32", default=0)
    start_offset: int = kafka("int64", default=0)
    state_batches: tuple[StateBatch, ...] = kafka([StateBatch], default=())


@struct
class ReadStateResult(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[PartitionResult, ...] = kafka([PartitionResult], default=())


@message(versions=(0, 0), flexible_since=0, api_key=84)
class ReadShareGroupStateResponse(Response):
    results: tuple[ReadStateResult, ...] = kafka([ReadStateResult], default=())


@struct
class PartitionData(Struct):
    partition: int = kafka("int32", default=0)
    leader_epoch: int = kafka("int32", default=0)


@struct
class ReadStateData(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[PartitionData, ...] = kafka([PartitionData], default=())


@message(versions=(0, 0), flexible_since=0, api_key=84, response=ReadShareGroupStateResponse)
class ReadShareGroupStateRequest(Request[ReadShareGroupStateResponse]):
    group_id: str = kafka("string", default="")
    topics: tuple[ReadStateData, ...] = kafka([ReadStateData], default=())
