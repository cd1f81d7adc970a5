"""AlterShareGroupOffsets (91), version 0. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@struct
class AlterShareGroupOffsetsResponsePartition(Struct):
    partition_index: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default=None, nullable=True)


@struct
class AlterShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = kafka("string", default="")
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[AlterShareGroupOffsetsResponsePartition, ...] = kafka(
        [AlterShareGroupOffsetsResponsePartition], default=()
    )


@message(versions=(0, 0), flexible_since=0, api_key=91)
class AlterShareGroupOffsetsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default=None, nullable=True)
    responses: tuple[AlterShareGroupOffsetsResponseTopic, ...] = kafka(
        [AlterShareGroupOffsetsResponseTopic], default=()
    )


@struct
class AlterShareGroupOffsetsRequestPartition(Struct):
    partition_index: int = kafka("int32", default=0)
    start_offset: int = kafka("int64", default=0)


@struct
class AlterShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = kafka("string", default="")
    partitions: tuple[AlterShareGroupOffsetsRequestPartition, ...] = kafka(
        [AlterShareGroupOffsetsRequestPartition], default=()
    )


@message(versions=(0, 0), flexible_since=0, api_key=91, response=AlterShareGroupOffsetsResponse)
class AlterShareGroupOffsetsRequest(Request[AlterShareGroupOffsetsResponse]):
    group_id: str = kafka("string", default="")
    topics: tuple[AlterShareGroupOffsetsRequestTopic, ...] = kafka(
        [AlterShareGroupOffsetsRequestTopic], default=()
    )
