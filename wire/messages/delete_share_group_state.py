"""DeleteShareGroupState (86), version 0. Written by `make messages`; do not edit."""

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
class DeleteStateResult(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[PartitionResult, ...] = kafka([PartitionResult], default=())


@message(versions=(0, 0), flexible_since=0, api_key=86)
class DeleteShareGroupStateResponse(Response):
    results: tuple[DeleteStateResult, ...] = kafka([DeleteStateResult], default=())


@struct
class PartitionData(Struct):
    partition: int = kafka("int32", default=0)


@struct
class DeleteStateData(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[PartitionData, ...] = kafka([PartitionData], default=())


@message(versions=(0, 0), flexible_since=0, api_key=86, response=DeleteShareGroupStateResponse)
class DeleteShareGroupStateRequest(Request[DeleteShareGroupStateResponse]):
    group_id: str = kafka("string", default="")
    topics: tuple[DeleteStateData, ...] = kafka([DeleteStateData], default=())
