"""ShareFetch (78), versions 1 to 2. Written by `make messages`; do not edit."""

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
class LeaderIdAndEpoch(Struct):
    leader_id: int = kafka("int32", default=0)
    leader_epoch: int = kafka("int32", default=0)


@struct
class AcquiredRecords(Struct):
    first_offset: int = kafka("int64", default=0)
    last_offset: int = kafka("int64", default=0)
    delivery_count: int = kafka("int16", default=0)


@struct
class PartitionData(Struct):
    partition_index: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default=None, nullable=True)
    acknowledge_error_code: int = kafka("int16", default=0)
    acknowledge_error_message: str | None = kafka("string", default=None, nullable=True)
    current_leader: LeaderIdAndEpoch = kafka(LeaderIdAndEpoch, default=LeaderIdAndEpoch())
    records: Records = kafka("records", default=b"")
    acquired_records: tuple[AcquiredRecords, ...] = kafka([AcquiredRecords], default=())


@struct
class ShareFetchableTopicResponse(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[PartitionData, ...] = kafka([PartitionData], default=())


@struct
class NodeEndpoint(Struct):
    node_id: int = kafka("int32", default=0)
    host: str = kafka("string", default="")
    port: int = kafka("int32", default=0)
    rack: str | None = kafka("string", default=None, nullable=True)


@message(versions=(1, 2), flexible_since=1, api_key=78)
class ShareFetchResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default=None, nullable=True)
    acquisition_lock_timeout_ms: int = kafka("int32", default=0)
    responses: tuple[ShareFetchableTopicResponse, ...] = kafka([ShareFetchableTopicResponse], default=())
    node_endpoints: tuple[NodeEndpoint, ...] = kafka([NodeEndpoint], default=())


@struct
class AcknowledgementBatch(Struct):
    first_offset: int = kafka("int64", default=0)
    last_offset: int = kafka("int64", default=0)
    acknowledge_types: tuple[int, ...] = kafka("[]int8", default=())


@struct
class FetchPartition(Struct):
    partition_index: int = kafka("int32", default=0)
    acknowledgement_batches: tuple[AcknowledgementBatch, ...] = kafka([AcknowledgementBatch], default=())


@struct
class FetchTopic(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[FetchPartition, ...] = kafka([FetchPartition], default=())


@struct
class ForgottenTopic(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[int, ...] = kafka("[]int32", default=())


@message(versions=(1, 2), flexible_since=1, api_key=78, response=ShareFetchResponse)
class ShareFetchRequest(Request[ShareFetchResponse]):
    group_id: str | None = kafka("string", default=None, nullable=True)
    member_id: str | None = kafka("string", default="", nullable=True)
    share_session_epoch: int = kafka("int32", default=0)
    max_wait_ms: int = kafka("int32", default=0)
    min_bytes: int = kafka("int32", default=0)
    max_bytes: int = kafka("int32", default=2147483647)
    max_records: int = kafka("int32", default=0)
    batch_size: int = kafka("int32", default=0)
    share_acquire_mode: int = kafka("int8", default=0, since=2, is_ignorable=True)
    is_renew_ack: bool = kafka("bool", default=False, since=2)
    topics: tuple[FetchTopic, ...] = kafka([FetchTopic], default=())
    forgotten_topics_data: tuple[ForgottenTopic, ...] = kafka([ForgottenTopic], default=())
