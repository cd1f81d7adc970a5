"""OffsetForLeaderEpoch (23), versions 2 to 4. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class EpochEndOffset(Struct):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    partition: int = kafka("int32", default=0)
    leader_epoch: int = kafka("int32", default=-1)
    end_offset: int = kafka("int64", default=-1)


@struct
class OffsetForLeaderTopicResult(Struct):
    topic: str = kafka("string", default="")
    partitions: tuple[EpochEndOffset, ...] = kafka([EpochEndOffset], default=())


@message(versions=(2, 4), flexible_since=4, api_key=23)
class OffsetForLeaderEpochResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    topics: tuple[OffsetForLeaderTopicResult, ...] = kafka([OffsetForLeaderTopicResult], default=())


@struct
class OffsetForLeaderPartition(Struct):
    partition: int = kafka("int32", default=0)
    current_leader_epoch: int = kafka("int32", default=-1)
    leader_epoch: int = kafka("int32", default=0)


@struct
class OffsetForLeaderTopic(Struct):
    topic: str = kafka("string", default="")
    partitions: tuple[OffsetForLeaderPartition, ...] = kafka([OffsetForLeaderPartition], default=())


@message(versions=(2, 4), flexible_since=4, api_key=23, response=OffsetForLeaderEpochResponse)
class OffsetForLeaderEpochRequest(Request[OffsetForLeaderEpochResponse]):
    replica_id: int = kafka("int32", default=-2, since=3, is_ignorable=True)
    topics: tuple[OffsetForLeaderTopic, ...] = kafka([OffsetForLeaderTopic], default=())
