"""DescribeLogDirs (35), versions 1 to 5. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class DescribeLogDirsPartition(Struct):
    partition_index: int = kafka("int32", default=0)
    partition_size: int = kafka("int64", default=0)
    offset_lag: int = kafka("int64", default=0)
    is_future_key: bool = kafka("bool", default=False)


@struct
class DescribeLogDirsTopic(Struct):
    name: str = kafka("string", default="")
    partitions: tuple[DescribeLogDirsPartition, ...] = kafka([DescribeLogDirsPartition], default=())


@struct
class DescribeLogDirsResult(Struct):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    log_dir: str = kafka("string", default="")
    topics: tuple[DescribeLogDirsTopic, ...] = kafka([DescribeLogDirsTopic], default=())
    total_bytes: int = kafka("int64", default=-1, since=4)
    usable_bytes: int = kafka("int64", default=-1, since=4)
    is_cordoned: bool = kafka("bool", default=False, since=5)


@message(versions=(1, 5), flexible_since=2, api_key=35)
class DescribeLogDirsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none, since=3)
    results: tuple[DescribeLogDirsResult, ...] = kafka([DescribeLogDirsResult], default=())


@struct
class DescribableLogDirTopic(Struct):
    topic: str = kafka("string", default="")
    partitions: tuple[int, ...] = kafka("[]int32", default=())


@message(versions=(1, 5), flexible_since=2, api_key=35, response=DescribeLogDirsResponse)
class DescribeLogDirsRequest(Request[DescribeLogDirsResponse]):
    topics: tuple[DescribableLogDirTopic, ...] | None = kafka(
        [DescribableLogDirTopic], default=(), nullable=True
    )
