"""Vote (52), versions 0 to 2. Written by `make messages`; do not edit."""

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
    vote_granted: bool = kafka("bool", default=False)


@struct
class ResponseTopicData(Struct):
    topic_name: str = kafka("string", default="")
    partitions: tuple[ResponsePartitionData, ...] = kafka([ResponsePartitionData], default=())


@struct
class NodeEndpoint(Struct):
    node_id: int = kafka("int32", default=0)
    host: str = kafka("string", default="")
    port: int = kafka("uint16", default=0)


@message(versions=(0, 2), flexible_since=0, api_key=52)
class VoteResponse(Response):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    topics: tuple[ResponseTopicData, ...] = kafka([ResponseTopicData], default=())
    node_endpoints: tuple[NodeEndpoint, ...] = kafka([NodeEndpoint], default=(), since=1, tag=0)


@struct
class RequestPartitionData(Struct):
    partition_index: int = kafka("int32", default=0)
    replica_epoch: int = kafka("int32", default=0)
    replica_id: int = kafka("int32", default=0)
    replica_directory_id: UUID = kafka("uuid", default=ZERO_UUID, since=1, is_ignorable=True)
    voter_directory_id: UUID = kafka("uuid", default=ZERO_UUID, since=1, is_ignorable=True)
    last_offset_epoch: int = kafka("int32", default=0)
    last_offset: int = kafka("int64", default=0)
    pre_vote: bool = kafka("bool", default=False, since=2)


@struct
class RequestTopicData(Struct):
    topic_name: str = kafka("string", default="")
    partitions: tuple[RequestPartitionData, ...] = kafka([RequestPartitionData], default=())


@message(versions=(0, 2), flexible_since=0, api_key=52, response=VoteResponse)
class VoteRequest(Request[VoteResponse]):
    cluster_id: str | None = kafka("string", default=None, nullable=True)
    voter_id: int = kafka("int32", default=-1, since=1, is_ignorable=True)
    topics: tuple[RequestTopicData, ...] = kafka([RequestTopicData], default=())
