"""DeleteShareGroupOffsets (92), version 0. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@struct
class DeleteShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = kafka("string", default="")
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default=None, nullable=True)


@message(versions=(0, 0), flexible_since=0, api_key=92)
class DeleteShareGroupOffsetsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default=None, nullable=True)
    responses: tuple[DeleteShareGroupOffsetsResponseTopic, ...] = kafka(
        [DeleteShareGroupOffsetsResponseTopic], default=()
    )


@struct
class DeleteShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = kafka("string", default="")


@message(versions=(0, 0), flexible_since=0, api_key=92, response=DeleteShareGroupOffsetsResponse)
class DeleteShareGroupOffsetsRequest(Request[DeleteShareGroupOffsetsResponse]):
    group_id: str = kafka("string", default="")
    topics: tuple[DeleteShareGroupOffsetsRequestTopic, ...] = kafka(
        [DeleteShareGroupOffsetsRequestTopic], default=()
    )
