"""DescribeShareGroupOffsets (90), versions 0 to 1. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@struct
class DescribeShareGroupOffsetsResponsePartition(Struct):
    partition_index: int = kafka("int32", default=0)
    start_offset: int = kafka("int64", default=0)
    leader_epoch: int = kafka("int32", default=0)
    lag: int = kafka("int64", default=-1, since=1)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default=None, nullable=True)


@struct
class DescribeShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = kafka("string", default="")
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[DescribeShareGroupOffsetsResponsePartition, ...] = kafka(
        [DescribeShareGroupOffsetsResponsePartition], default=()
    )


@struct
class DescribeShareGroupOffsetsResponseGroup(Struct):
    group_id: str = kafka("string", default="")
    topics: tuple[DescribeShareGroupOffsetsResponseTopic, ...] = kafka(
        [DescribeShareGroupOffsetsResponseTopic], default=()
    )
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default=None, nullable=True)


@message(versions=(0, 1), flexible_since=0, api_key=90)
class DescribeShareGroupOffsetsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    groups: tuple[DescribeShareGroupOffsetsResponseGroup, ...] = kafka(
        [DescribeShareGroupOffsetsResponseGroup], default=()
    )


@struct
class DescribeShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = kafka("string", default="")
    partitions: tuple[int, ...] = kafka("[]int32", default=())


@struct
class DescribeShareGroupOffsetsRequestGroup(Struct):
    group_id: str = kafka("string", default="")
    topics: tuple[DescribeShareGroupOffsetsRequestTopic, ...] | None = kafka(
        [DescribeShareGroupOffsetsRequestTopic], default=(), nullable=True
    )


@message(versions=(0, 1), flexible_since=0, api_key=90, response=DescribeShareGroupOffsetsResponse)
class DescribeShareGroupOffsetsRequest(Request[DescribeShareGroupOffsetsResponse]):
    groups: tuple[DescribeShareGroupOffsetsRequestGroup, ...] = kafka(
        [DescribeShareGroupOffsetsRequestGroup], default=()
    )
