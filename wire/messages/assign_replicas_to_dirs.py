"""AssignReplicasToDirs (73), version 0. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@struct
class ResponsePartitionData(Struct):
    partition_index: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)


@struct
class ResponseTopicData(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[ResponsePartitionData, ...] = kafka([ResponsePartitionData], default=())


@struct
class ResponseDirectoryData(Struct):
    id_: UUID = kafka("uuid", default=ZERO_UUID)
    topics: tuple[ResponseTopicData, ...] = kafka([ResponseTopicData], default=())


@message(versions=(0, 0), flexible_since=0, api_key=73)
class AssignReplicasToDirsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    directories: tuple[ResponseDirectoryData, ...] = kafka([ResponseDirectoryData], default=())


@struct
class RequestPartitionData(Struct):
    partition_index: int = kafka("int32", default=0)


@struct
class RequestTopicData(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[RequestPartitionData, ...] = kafka([RequestPartitionData], default=())


@struct
class RequestDirectoryData(Struct):
    id_: UUID = kafka("uuid", default=ZERO_UUID)
    topics: tuple[RequestTopicData, ...] = kafka([RequestTopicData], default=())


@message(versions=(0, 0), flexible_since=0, api_key=73, response=AssignReplicasToDirsResponse)
class AssignReplicasToDirsRequest(Request[AssignReplicasToDirsResponse]):
    broker_id: int = kafka("int32", default=0)
    broker_epoch: int = kafka("int64", default=-1)
    directories: tuple[RequestDirectoryData, ...] = kafka([RequestDirectoryData], default=())
