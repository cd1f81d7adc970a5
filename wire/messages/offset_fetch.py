"""OffsetFetch (9), versions 1 to 10. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@struct
class OffsetFetchResponsePartition(Struct):
    partition_index: int = kafka("int32", default=0)
    committed_offset: int = kafka("int64", default=0)
    committed_leader_epoch: int = kafka("int32", default=-1, since=5)
    metadata: str | None = kafka("string", default="", nullable=True)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)


@struct
class OffsetFetchResponseTopic(Struct):
    name: str = kafka("string", default="")
    partitions: tuple[OffsetFetchResponsePartition, ...] = kafka([OffsetFetchResponsePartition], default=())


@struct
class OffsetFetchResponsePartitions(Struct):
    partition_index: int = kafka("int32", default=0)
    committed_offset: int = kafka("int64", default=0)
    committed_leader_epoch: int = kafka("int32", default=-1)
    metadata: str | None = kafka("string", default="", nullable=True)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)


@struct
class OffsetFetchResponseTopics(Struct):
    name: str = kafka("string", default="", until=9)
    topic_id: UUID = kafka("uuid", default=ZERO_UUID, since=10)
    partitions: tuple[OffsetFetchResponsePartitions, ...] = kafka([OffsetFetchResponsePartitions], default=())


@struct
class OffsetFetchResponseGroup(Struct):
    group_id: str = kafka("string", default="")
    topics: tuple[OffsetFetchResponseTopics, ...] = kafka([OffsetFetchResponseTopics], default=())
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)


@message(versions=(1, 10), flexible_since=6, api_key=9)
class OffsetFetchResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0, since=3)
    topics: tuple[OffsetFetchResponseTopic, ...] = kafka([OffsetFetchResponseTopic], default=(), until=7)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none, since=2, until=7)
    groups: tuple[OffsetFetchResponseGroup, ...] = kafka([OffsetFetchResponseGroup], default=(), since=8)


@struct
class OffsetFetchRequestTopic(Struct):
    name: str = kafka("string", default="")
    partition_indexes: tuple[int, ...] = kafka("[]int32", default=())


@struct
class OffsetFetchRequestTopics(Struct):
    name: str = kafka("string", default="", until=9, is_ignorable=True)
    topic_id: UUID = kafka("uuid", default=ZERO_UUID, since=10, is_ignorable=True)
    partition_indexes: tuple[int, ...] = kafka("[]int32", default=())


@struct
class OffsetFetchRequestGroup(Struct):
    group_id: str = kafka("string", default="")
    member_id: str | None = kafka("string", default=None, since=9, nullable=True, is_ignorable=True)
    member_epoch: int = kafka("int32", default=-1, since=9, is_ignorable=True)
    topics: tuple[OffsetFetchRequestTopics, ...] | None = kafka(
        [OffsetFetchRequestTopics], default=(), nullable=True
    )


@message(versions=(1, 10), flexible_since=6, api_key=9, response=OffsetFetchResponse)
class OffsetFetchRequest(Request[OffsetFetchResponse]):
    group_id: str = kafka("string", default="", until=7)
    topics: tuple[OffsetFetchRequestTopic, ...] | None = kafka(
        [OffsetFetchRequestTopic], default=(), until=7, nullable_since=2
    )
    groups: tuple[OffsetFetchRequestGroup, ...] = kafka([OffsetFetchRequestGroup], default=(), since=8)
    require_stable: bool = kafka("bool", default=False, since=7)
