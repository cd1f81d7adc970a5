"""OffsetCommit (8), versions 2 to 10. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@struct
class OffsetCommitResponsePartition(Struct):
    partition_index: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)


@struct
class OffsetCommitResponseTopic(Struct):
    name: str = kafka("string", default="", until=9)
    topic_id: UUID = kafka("uuid", default=ZERO_UUID, since=10)
    partitions: tuple[OffsetCommitResponsePartition, ...] = kafka([OffsetCommitResponsePartition], default=())


@message(versions=(2, 10), flexible_since=8, api_key=8)
class OffsetCommitResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0, since=3)
    topics: tuple[OffsetCommitResponseTopic, ...] = kafka([OffsetCommitResponseTopic], default=())


@struct
class OffsetCommitRequestPartition(Struct):
    partition_index: int = kafka("int32", default=0)
    committed_offset: int = kafka("int64", default=0)
    committed_leader_epoch: int = kafka("int32", default=-1, since=6, is_ignorable=True)
    committed_metadata: str | None = kafka("string", default="", nullable=True)


@struct
class OffsetCommitRequestTopic(Struct):
    name: str = kafka("string", default="", until=9, is_ignorable=True)
    topic_id: UUID = kafka("uuid", default=ZERO_UUID, since=10, is_ignorable=True)
    partitions: tuple[OffsetCommitRequestPartition, ...] = kafka([OffsetCommitRequestPartition], default=())


@message(versions=(2, 10), flexible_since=8, api_key=8, response=OffsetCommitResponse)
class OffsetCommitRequest(Request[OffsetCommitResponse]):
    group_id: str = kafka("string", default="")
    generation_id_or_member_epoch: int = kafka("int32", default=-1)
    member_id: str = kafka("string", default="")
    retention_time_ms: int = kafka("int64", default=-1, until=4, is_ignorable=True)
    group_instance_id: str | None = kafka("string", default=None, since=7, nullable=True)
    topics: tuple[OffsetCommitRequestTopic, ...] = kafka([OffsetCommitRequestTopic], default=())
