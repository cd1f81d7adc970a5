"""TxnOffsetCommit (28), versions 0 to 5. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class TxnOffsetCommitResponsePartition(Struct):
    partition_index: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)


@struct
class TxnOffsetCommitResponseTopic(Struct):
    name: str = kafka("string", default="")
    partitions: tuple[TxnOffsetCommitResponsePartition, ...] = kafka(
        [TxnOffsetCommitResponsePartition], default=()
    )


@message(versions=(0, 5), flexible_since=3, api_key=28)
class TxnOffsetCommitResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = kafka([TxnOffsetCommitResponseTopic], default=())


@struct
class TxnOffsetCommitRequestPartition(Struct):
    partition_index: int = kafka("int32", default=0)
    committed_offset: int = kafka("int64", default=0)
    committed_leader_epoch: int = kafka("int32", default=-1, since=2, is_ignorable=True)
    committed_metadata: str | None = kafka("string", default="", nullable=True)


@struct
class TxnOffsetCommitRequestTopic(Struct):
    name: str = kafka("string", default="")
    partitions: tuple[TxnOffsetCommitRequestPartition, ...] = kafka(
        [TxnOffsetCommitRequestPartition], default=()
    )


@message(versions=(0, 5), flexible_since=3, api_key=28, response=TxnOffsetCommitResponse)
class TxnOffsetCommitRequest(Request[TxnOffsetCommitResponse]):
    transactional_id: str = kafka("string", default="")
    group_id: str = kafka("string", default="")
    producer_id: int = kafka("int64", default=0)
    producer_epoch: int = kafka("int16", default=0)
    generation_id: int = kafka("int32", default=-1, since=3)
    member_id: str = kafka("string", default="", since=3)
    group_instance_id: str | None = kafka("string", default=None, since=3, nullable=True)
    topics: tuple[TxnOffsetCommitRequestTopic, ...] = kafka([TxnOffsetCommitRequestTopic], default=())
