"""FetchSnapshot (59), versions 0 to 1. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import (
    Records,
    Request,
    Response,
    Struct,
    frozen_struct,
    kafka,
    message,
    struct,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@frozen_struct
class ResponseSnapshotId(Struct):
    end_offset: int = kafka("int64", default=0)
    epoch: int = kafka("int32", default=0)


@frozen_struct
class LeaderIdAndEpoch(Struct):
    leader_id: int = kafka("int32", default=0)
    leader_epoch: int = kafka("int32", default=0)


@struct
class ResponsePartitionSnapshot(Struct):
    index: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    snapshot_id: ResponseSnapshotId = kafka(ResponseSnapshotId, default=ResponseSnapshotId())
    current_leader: LeaderIdAndEpoch = kafka(LeaderIdAndEpoch, default=LeaderIdAndEpoch(), tag=0)
    size: int = kafka("int64", default=0)
    position: int = kafka("int64", default=0)
    unaligned_records: Records = kafka("records", default=b"")


@struct
class ResponseTopicSnapshot(Struct):
    name: str = kafka("string", default="")
    partitions: tuple[ResponsePartitionSnapshot, ...] = kafka([ResponsePartitionSnapshot], default=())


@struct
class NodeEndpoint(Struct):
    node_id: int = kafka("int32", default=0)
    host: str = kafka("string", default="")
    port: int = kafka("uint16", default=0)


@message(versions=(0, 1), flexible_since=0, api_key=59)
class FetchSnapshotResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    topics: tuple[ResponseTopicSnapshot, ...] = kafka([ResponseTopicSnapshot], default=())
    node_endpoints: tuple[NodeEndpoint, ...] = kafka([NodeEndpoint], default=(), since=1, tag=0)


@frozen_struct
class RequestSnapshotId(Struct):
    end_offset: int = kafka("int64", default=0)
    epoch: int = kafka("int32", default=0)


@struct
class RequestPartitionSnapshot(Struct):
    partition: int = kafka("int32", default=0)
    current_leader_epoch: int = kafka("int32", default=0)
    snapshot_id: RequestSnapshotId = kafka(RequestSnapshotId, default=RequestSnapshotId())
    position: int = kafka("int64", default=0)
    replica_directory_id: UUID = kafka("uuid", default=ZERO_UUID, since=1, tag=0, is_ignorable=True)


@struct
class RequestTopicSnapshot(Struct):
    name: str = kafka("string", default="")
    partitions: tuple[RequestPartitionSnapshot, ...] = kafka([RequestPartitionSnapshot], default=())


@message(versions=(0, 1), flexible_since=0, api_key=59, response=FetchSnapshotResponse)
class FetchSnapshotRequest(Request[FetchSnapshotResponse]):
    cluster_id: str | None = kafka("string", default=None, nullable=True, tag=0)
    replica_id: int = kafka("int32", default=-1)
    max_bytes: int = kafka("int32", default=2147483647)
    topics: tuple[RequestTopicSnapshot, ...] = kafka([RequestTopicSnapshot], default=())
