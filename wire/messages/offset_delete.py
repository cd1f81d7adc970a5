"""OffsetDelete (47), version 0. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class OffsetDeleteResponsePartition(Struct):
    partition_index: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)


@struct
class OffsetDeleteResponseTopic(Struct):
    name: str = kafka("string", default="")
    partitions: tuple[OffsetDeleteResponsePartition, ...] = kafka([OffsetDeleteResponsePartition], default=())


@message(versions=(0, 0), flexible_since=None, api_key=47)
class OffsetDeleteResponse(Response):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    throttle_time_ms: int = kafka("int32", default=0)
    topics: tuple[OffsetDeleteResponseTopic, ...] = kafka([OffsetDeleteResponseTopic], default=())


@struct
class OffsetDeleteRequestPartition(Struct):
    partition_index: int = kafka("int32", default=0)


@struct
class OffsetDeleteRequestTopic(Struct):
    name: str = kafka("string", default="")
    partitions: tuple[OffsetDeleteRequestPartition, ...] = kafka([OffsetDeleteRequestPartition], default=())


@message(versions=(0, 0), flexible_since=None, api_key=47, response=OffsetDeleteResponse)
class OffsetDeleteRequest(Request[OffsetDeleteResponse]):
    group_id: str = kafka("string", default="")
    topics: tuple[OffsetDeleteRequestTopic, ...] = kafka([OffsetDeleteRequestTopic], default=())
