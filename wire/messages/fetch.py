"""Fetch (1), versions 4 to 18. Written by `make messages`; do not edit."""

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
class EpochEndOffset(Struct):
    epoch: int = kafka("int32", default=-1)
    end_offset: int = kafka("int64", default=-1)


@frozen_struct
class LeaderIdAndEpoch(Struct):
    leader_id: int = kafka("int32", default=-1)
    leader_epoch: int = kafka("int32", default=-1)


@frozen_struct
class SnapshotId(Struct):
    end_offset: int = kafka("int64", default=-1)
    epoch: int = kafka("int32", default=-1)


@struct
class AbortedTransaction(Struct):
    producer_id: int = kafka("int64", default=0)
    first_offset: int = kafka("int64", default=0)


@struct
class PartitionData(Struct):
    partition_index: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    high_watermark: int = kafka("int64", default=0)
    last_stable_offset: int = kafka("int64", default=-1)
    log_start_offset: int = kafka("int64", default=-1, since=5)
    diverging_epoch: EpochEndOffset = kafka(EpochEndOffset, default=EpochEndOffset(), since=12, tag=0)
    current_leader: LeaderIdAndEpoch = kafka(LeaderIdAndEpoch, default=LeaderIdAndEpoch(), since=12, tag=1)
    snapshot_id: SnapshotId = kafka(SnapshotId, default=SnapshotId(), since=12, tag=2)
    aborted_transactions: tuple[AbortedTransaction, ...] | None = kafka(
        [AbortedTransaction], default=(), nullable=True
    )
    preferred_read_replica: int = kafka("int32", default=-1, since=11)
    records: Records | None = kafka("records", default=b"", nullable=True)


@struct
class FetchableTopicResponse(Struct):
    topic: str = kafka("string", default="", until=12)
    topic_id: UUID = kafka("uuid", default=ZERO_UUID, since=13)
    partitions: tuple[PartitionData, ...] = kafka([PartitionData], default=())


@struct
class NodeEndpoint(Struct):
    node_id: int = kafka("int32", default=0)
    host: str = kafka("string", default="")
    port: int = kafka("int32", default=0)
    rack: str | None = kafka("string", default=None, nullable=True)


@message(versions=(4, 18), flexible_since=12, api_key=1)
class FetchResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none, since=7)
    session_id: int = kafka("int32", default=0, since=7)
    responses: tuple[FetchableTopicResponse, ...] = kafka([FetchableTopicResponse], default=())
    node_endpoints: tuple[NodeEndpoint, ...] = kafka([NodeEndpoint], default=(), since=16, tag=0)


@frozen_struct
class ReplicaState(Struct):
    replica_id: int = kafka("int32", default=-1)
    replica_epoch: int = kafka("int64", default=-1)


@struct
class FetchPartition(Struct):
    partition: int = kafka("int32", default=0)
    current_leader_epoch: int = kafka("int32", default=-1, since=9, is_ignorable=True)
    fetch_offset: int = kafka("int64", default=0)
    last_fetched_epoch: int = kafka("int32", default=-1, since=12)
    log_start_offset: int = kafka("int64", default=-1, since=5, is_ignorable=True)
    partition_max_bytes: int = kafka("int32", default=0)
    replica_directory_id: UUID = kafka("uuid", default=ZERO_UUID, since=17, tag=0, is_ignorable=True)
    high_watermark: int = kafka("int64", default=9223372036854775807, since=18, tag=1, is_ignorable=True)


@struct
class FetchTopic(Struct):
    topic: str = kafka("string", default="", until=12, is_ignorable=True)
    topic_id: UUID = kafka("uuid", default=ZERO_UUID, since=13, is_ignorable=True)
    partitions: tuple[FetchPartition, ...] = kafka([FetchPartition], default=())


@struct
class ForgottenTopic(Struct):
    topic: str = kafka("string", default="", until=12, is_ignorable=True)
    topic_id: UUID = kafka("uuid", default=ZERO_UUID, since=13, is_ignorable=True)
    partitions: tuple[int, ...] = kafka("[]int32", default=())


@message(versions=(4, 18), flexible_since=12, api_key=1, response=FetchResponse)
class FetchRequest(Request[FetchResponse]):
    cluster_id: str | None = kafka("string", default=None, since=12, nullable=True, tag=0, is_ignorable=True)
    replica_id: int = kafka("int32", default=-1, until=14)
    replica_state: ReplicaState = kafka(ReplicaState, default=ReplicaState(), since=15, tag=1)
    max_wait_ms: int = kafka("int32", default=0)
    min_bytes: int = kafka("int32", default=0)
    max_bytes: int = kafka("int32", default=2147483647)
    isolation_level: int = kafka("int8", default=0)
    session_id: int = kafka("int32", default=0, since=7, is_ignorable=True)
    session_epoch: int = kafka("int32", default=-1, since=7, is_ignorable=True)
    topics: tuple[FetchTopic, ...] = kafka([FetchTopic], default=())
    forgotten_topics_data: tuple[ForgottenTopic, ...] = kafka([ForgottenTopic], default=(), since=7)
    rack_id: str = kafka("string", default="", since=11, is_ignorable=True)
    annotation: bytes = kafka("bytes", default=b"", since=12, tag=7001, is_ignorable=True)
