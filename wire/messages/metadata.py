"""Metadata (3), versions 0 to 13. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@struct
class MetadataResponseBroker(Struct):
    node_id: int = kafka("int32", default=0)
    host: str = kafka("string", default="")
    port: int = kafka("int32", default=0)
    rack: str | None = kafka("string", default=None, since=1, nullable=True)


@struct
class MetadataResponsePartition(Struct):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    partition_index: int = kafka("int32", default=0)
    leader_id: int = kafka("int32", default=0)
    leader_epoch: int = kafka("int32", default=-1, since=7)
    replica_nodes: tuple[int, ...] = kafka("[]int32", default=())
    isr_nodes: tuple[int, ...] = kafka("[]int32", default=())
    offline_replicas: tuple[int, ...] = kafka("[]int32", default=(), since=5)


@struct
class MetadataResponseTopic(Struct):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    name: str | None = kafka("string", default="", nullable_since=12)
    topic_id: UUID = kafka("uuid", default=ZERO_UUID, since=10)
    is_internal: bool = kafka("bool", default=False, since=1)
    partitions: tuple[MetadataResponsePartition, ...] = kafka([MetadataResponsePartition], default=())
    topic_authorized_operations: int = kafka("int32", default=-2147483648, since=8)


@message(versions=(0, 13), flexible_since=9, api_key=3)
class MetadataResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0, since=3)
    brokers: tuple[MetadataResponseBroker, ...] = kafka([MetadataResponseBroker], default=())
    cluster_id: str | None = kafka("string", default=None, since=2, nullable=True)
    controller_id: int = kafka("int32", default=-1, since=1)
    topics: tuple[MetadataResponseTopic, ...] = kafka([MetadataResponseTopic], default=())
    cluster_authorized_operations: int = kafka("int32", default=-2147483648, since=8, until=10)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none, since=13)


@struct
class MetadataRequestTopic(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID, since=10, is_ignorable=True)
    name: str | None = kafka("string", default="", nullable_since=10)


@message(versions=(0, 13), flexible_since=9, api_key=3, response=MetadataResponse)
class MetadataRequest(Request[MetadataResponse]):
    topics: tuple[MetadataRequestTopic, ...] | None = kafka(
        [MetadataRequestTopic], default=(), nullable_since=1
    )
    allow_auto_topic_creation: bool = kafka("bool", default=True, since=4)
    include_cluster_authorized_operations: bool = kafka("bool", default=False, since=8, until=10)
    include_topic_authorized_operations: bool = kafka("bool", default=False, since=8)
