"""InitializeShareGroupState (83), version 0. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@struct
class PartitionResult(Struct):
    partition: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default=None, nullable=True)


@struct
class InitializeStateResult(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[PartitionResult, ...] = kafka([PartitionResult], default=())


@message(versions=(0, 0), flexible_since=0, api_key=83)
class InitializeShareGroupStateResponse(Response):
    results: tuple[InitializeStateResult, ...] = kafka([InitializeStateResult], default=())


@struct
class PartitionData(Struct):
    partition: int = kafka("int32", default=0)
    state_epoch: int = kafka("int32", default=0)
    start_offset: int = kafka("int64", default=0)


@struct
class InitializeStateData(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[PartitionData, ...] = kafka([PartitionData], default=())


@message(versions=(0, 0), flexible_since=0, api_key=83, response=InitializeShareGroupStateResponse)
class InitializeShareGroupStateRequest(Request[InitializeShareGroupStateResponse]):
    group_id: str = kafka("string", default="")
    topics: tuple[InitializeStateData, ...] = kafka([InitializeStateData], default=())
