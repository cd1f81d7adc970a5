"""DeleteTopics (20), versions 1 to 6. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@struct
class DeletableTopicResult(Struct):
    name: str | None = kafka("string", default="", nullable_since=6)
    topic_id: UUID = kafka("uuid", default=ZERO_UUID, since=6)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default=None, since=5, nullable=True)


@message(versions=(1, 6), flexible_since=4, api_key=20)
class DeleteTopicsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    responses: tuple[DeletableTopicResult, ...] = kafka([DeletableTopicResult], default=())


@struct
class DeleteTopicState(Struct):
    name: str | None = kafka("string", default=None, nullable=True)
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)


@message(versions=(1, 6), flexible_since=4, api_key=20, response=DeleteTopicsResponse)
class DeleteTopicsRequest(Request[DeleteTopicsResponse]):
    topic_names: tuple[str, ...] = kafka("[]string", default=(), until=5, is_ignorable=True)
    topics: tuple[DeleteTopicState, ...] = kafka([DeleteTopicState], default=(), since=6)
    timeout_ms: int = kafka("int32", default=0)
