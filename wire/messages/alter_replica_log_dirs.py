"""AlterReplicaLogDirs (34), versions 1 to 2. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)


@struct
class AlterReplicaLogDirTopicResult(Struct):
    topic_name: str = kafka("string", default="")
    partitions: tuple[AlterReplicaLogDirPartitionResult, ...] = kafka(
        [AlterReplicaLogDirPartitionResult], default=()
    )


@message(versions=(1, 2), flexible_since=2, api_key=34)
class AlterReplicaLogDirsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    results: tuple[AlterReplicaLogDirTopicResult, ...] = kafka([AlterReplicaLogDirTopicResult], default=())


@struct
class AlterReplicaLogDirTopic(Struct):
    name: str = kafka("string", default="")
    partitions: tuple[int, ...] = kafka("[]int32", default=())


@struct
class AlterReplicaLogDir(Struct):
    path: str = kafka("string", default="")
    topics: tuple[AlterReplicaLogDirTopic, ...] = kafka([AlterReplicaLogDirTopic], default=())


@message(versions=(1, 2), flexible_since=2, api_key=34, response=AlterReplicaLogDirsResponse)
class AlterReplicaLogDirsRequest(Request[AlterReplicaLogDirsResponse]):
    dirs: tuple[AlterReplicaLogDir, ...] = kafka([AlterReplicaLogDir], default=())
