"""EndQuorumEpoch (54), versions 0 to 1. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@struct
class ResponsePartitionData(Struct):
    partition_index: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    leader_id: int = kafka("int32", default=0)
    leader_epoch: int = kafka("int32", default=0)


@struct
class ResponseTopicData(Struct):
    topic_name: str = kafka("string", default="")
    partitions: tuple[ResponsePartitionData, ...] = kafka([ResponsePartitionData], default=())


@struct
class NodeEndpoint(Struct):
    node_id: int = kafka("int32", default=0)
    host: str = kafka("string", default="")
    port: int = kafka("uint16", default=0)


@message(versions=(0, 1), flexible_since=1, api_key=54)
class EndQuorumEpochResponse(Response):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    topics: tuple[ResponseTopicData, ...] = kafka([ResponseTopicData], default=())
    node_endpoints: tuple[NodeEndpoint, ...] = kafka([NodeEndpoint], default=(), since=1, tag=0)


@struct
class ReplicaInfo(Struct):
    candidate_id: int = kafka("int32", default=0)
    candidate_directory_id: UUID = kafka("uuid", default=ZERO_UUID)


@struct
class RequestPartitionData(Struct):
    partition_index: int = kafka("int32", default=0)
    leader_id: int = kafka("int32", default=0)
    leader_epoch: int = kafka("int32", default=0)
    preferred_successors: tuple[int, ...] = kafka("[]int32", default=(), until=0, is_ignorable=True)
    preferred_candidates: tuple[ReplicaInfo, ...] = kafka(
        [ReplicaInfo], default=(), since=1, is_ignorable=True
    )


@struct
class RequestTopicData(Struct):
    topic_name: str = kafka("string", default="")
    partitions: tuple[RequestPartitionData, ...] = kafka([RequestPartitionData], default=())


@struct
class LeaderEndpoint(Struct):
    name: str = kafka("string", default="")
    host: str = kafka("string", default="")
    port: int = kafka("uint16", default=0)


@message(versions=(0, 1), flexible_since=1, api_key=54, response=EndQuorumEpochResponse)
class EndQuorumEpochRequest(Request[EndQuorumEpochResponse]):
    cluster_id: str | None = kafka("string", default=None, nullable=True)
    topics: tuple[RequestTopicData, ...] = kafka([RequestTopicData], default=())
    leader_endpoints: tuple[LeaderEndpoint, ...] = kafka(
        [LeaderEndpoint], default=(), since=1, is_ignorable=True
    )
