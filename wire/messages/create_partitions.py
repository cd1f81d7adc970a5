"""CreatePartitions (37), versions 0 to 3. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class CreatePartitionsTopicResult(Struct):
    name: str = kafka("string", default="")
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default=None, nullable=True)


@message(versions=(0, 3), flexible_since=2, api_key=37)
class CreatePartitionsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    results: tuple[CreatePartitionsTopicResult, ...] = kafka([CreatePartitionsTopicResult], default=())


@struct
class CreatePartitionsAssignment(Struct):
    broker_ids: tuple[int, ...] = kafka("[]int32", default=())


@struct
class CreatePartitionsTopic(Struct):
    name: str = kafka("string", default="")
    count: int = kafka("int32", default=0)
    assignments: tuple[CreatePartitionsAssignment, ...] | None = kafka(
        [CreatePartitionsAssignment], default=(), nullable=True
    )


@message(versions=(0, 3), flexible_since=2, api_key=37, response=CreatePartitionsResponse)
class CreatePartitionsRequest(Request[CreatePartitionsResponse]):
    topics: tuple[CreatePartitionsTopic, ...] = kafka([CreatePartitionsTopic], default=())
    timeout_ms: int = kafka("int32", default=0)
    validate_only: bool = kafka("bool", default=False)
