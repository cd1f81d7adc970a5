"""DescribeQuorum (55), versions 0 to 2. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@struct
class ReplicaState(Struct):
    replica_id: int = kafka("int32", default=0)
    replica_directory_id: UUID = kafka("uuid", default=ZERO_UUID, since=2)
    log_end_offset: int = kafka("int64", default=0)
    last_fetch_timestamp: int = kafka("int64", default=-1, since=1)
    last_caught_up_timestamp: int = kafka("int64", default=-1, since=1)


@struct
class ResponsePartitionData(Struct):
    partition_index: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", since=2, nullable=True)
    leader_id: int = kafka("int32", default=0)
    leader_epoch: int = kafka("int32", default=0)
    high_watermark: int = kafka("int64", default=0)
    current_voters: tuple[ReplicaState, ...] = kafka([ReplicaState], default=())
    observers: tuple[ReplicaState, ...] = kafka([ReplicaState], default=())


@struct
class ResponseTopicData(Struct):
    topic_name: str = kafka("string", default="")
    partitions: tuple[ResponsePartitionData, ...] = kafka([ResponsePartitionData], default=())


@struct
class Listener(Struct):
    name: str = kafka("string", default="")
    host: str = kafka("string", default="")
    port: int = kafka("uint16", default=0)


@struct
class Node(Struct):
    node_id: int = kafka("int32", default=0)
    listeners: tuple[Listener, ...] = kafka([Listener], default=())


@message(versions=(0, 2), flexible_since=0, api_key=55)
class DescribeQuorumResponse(Response):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", since=2, nullable=True)
    topics: tuple[ResponseTopicData, ...] = kafka([ResponseTopicData], default=())
    nodes: tuple[Node, ...] = kafka([Node], default=(), since=2)
    annotation: bytes = kafka("bytes", default=b"", tag=7001)


@struct
class RequestPartitionData(Struct):
    partition_index: int = kafka("int32", default=0)


@struct
class RequestTopicData(Struct):
    topic_name: str = kafka("string", default="")
    partitions: tuple[RequestPartitionData, ...] = kafka([RequestPartitionData], default=())


@message(versions=(0, 2), flexible_since=0, api_key=55, response=DescribeQuorumResponse)
class DescribeQuorumRequest(Request[DescribeQuorumResponse]):
    topics: tuple[RequestTopicData, ...] = kafka([RequestTopicData], default=())
