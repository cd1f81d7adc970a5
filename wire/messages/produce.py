"""Produce (0), versions 3 to 13. Written by `make messages`; do not edit."""

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


@struct
class BatchIndexAndErrorMessage(Struct):
    batch_index: int = kafka("int32", default=0)
    batch_index_error_message: str | None = kafka("string", default=None, nullable=True)


@frozen_struct
class LeaderIdAndEpoch(Struct):
    leader_id: int = kafka("int32", default=-1)
    leader_epoch: int = kafka("int32", default=-1)


@struct
class PartitionProduceResponse(Struct):
    index: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    base_offset: int = kafka("int64", default=0)
    log_append_time_ms: int = kafka("int64", default=-1)
    log_start_offset: int = kafka("int64", default=-1, since=5)
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = kafka(
        [BatchIndexAndErrorMessage], default=(), since=8
    )
    error_message: str | None = kafka("string", default=None, since=8, nullable=True)
    current_leader: LeaderIdAndEpoch = kafka(LeaderIdAndEpoch, default=LeaderIdAndEpoch(), since=10, tag=0)


@struct
class TopicProduceResponse(Struct):
    name: str = kafka("string", default="", until=12)
    topic_id: UUID = kafka("uuid", default=ZERO_UUID, since=13)
    partition_responses: tuple[PartitionProduceResponse, ...] = kafka([PartitionProduceResponse], default=())


@struct
class NodeEndpoint(Struct):
    node_id: int = kafka("int32", default=0)
    host: str = kafka("string", default="")
    port: int = kafka("int32", default=0)
    rack: str | None = kafka("string", default=None, nullable=True)


@message(versions=(3, 13), flexible_since=9, api_key=0)
class ProduceResponse(Response):
    responses: tuple[TopicProduceResponse, ...] = kafka([TopicProduceResponse], default=())
    throttle_time_ms: int = kafka("int32", default=0)
    node_endpoints: tuple[NodeEndpoint, ...] = kafka([NodeEndpoint], default=(), since=10, tag=0)


@struct
class PartitionProduceData(Struct):
    index: int = kafka("int32", default=0)
    records: Records | None = kafka("records", default=b"", nullable=True)


@struct
class TopicProduceData(Struct):
    name: str = kafka("string", default="", until=12, is_ignorable=True)
    topic_id: UUID = kafka("uuid", default=ZERO_UUID, since=13, is_ignorable=True)
    partition_data: tuple[PartitionProduceData, ...] = kafka([PartitionProduceData], default=())


@message(versions=(3, 13), flexible_since=9, api_key=0, response=ProduceResponse)
class ProduceRequest(Request[ProduceResponse]):
    transactional_id: str | None = kafka("string", default=None, nullable=True)
    acks: int = kafka("int16", default=0)
    timeout_ms: int = kafka("int32", default=0)
    topic_data: tuple[TopicProduceData, ...] = kafka([TopicProduceData], default=())
