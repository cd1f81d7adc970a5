"""AlterPartition (56), versions 2 to 3. Written by `make messages`; do not edit."""

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
    isr: tuple[int, ...] = kafka("[]int32", default=())
    leader_recovery_state: int = kafka("int8", default=0)
    partition_epoch: int = kafka("int32", default=0)


@struct
class ResponseTopicData(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[ResponsePartitionData, ...] = kafka([ResponsePartitionData], default=())


@message(versions=(2, 3), flexible_since=2, api_key=56)
class AlterPartitionResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    topics: tuple[ResponseTopicData, ...] = kafka([ResponseTopicData], default=())


@struct
class BrokerState(Struct):
    broker_id: int = kafka("int32", default=0)
    broker_epoch: int = kafka("int64", default=-1)


@struct
class RequestPartitionData(Struct):
    partition_index: int = kafka("int32", default=0)
    leader_epoch: int = kafka("int32", default=0)
    new_isr: tuple[int, ...] = kafka("[]int32", default=(), until=2)
    new_isr_with_epochs: tuple[BrokerState, ...] = kafka([BrokerState], default=(), since=3)
    leader_recovery_state: int = kafka("int8", default=0)
    partition_epoch: int = kafka("int32", default=0)


@struct
class RequestTopicData(Struct):
    topic_id: UUID = kafka("uuid", default=ZERO_UUID)
    partitions: tuple[RequestPartitionData, ...] = kafka([RequestPartitionData], default=())


@message(versions=(2, 3), flexible_since=2, api_key=56, response=AlterPartitionResponse)
class AlterPartitionRequest(Request[AlterPartitionResponse]):
    broker_id: int = kafka("int32", default=0)
    broker_epoch: int = kafka("int64", default=-1)
    topics: tuple[RequestTopicData, ...] = kafka([RequestTopicData], default=())
