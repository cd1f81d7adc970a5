"""DescribeProducers (61), version 0. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class ProducerState(Struct):
    producer_id: int = kafka("int64", default=0)
    producer_epoch: int = kafka("int32", default=0)
    last_sequence: int = kafka("int32", default=-1)
    last_timestamp: int = kafka("int64", default=-1)
    coordinator_epoch: int = kafka("int32", default=0)
    current_txn_start_offset: int = kafka("int64", default=-1)


@struct
class PartitionResponse(Struct):
    partition_index: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default=None, nullable=True)
    active_producers: tuple[ProducerState, ...] = kafka([ProducerState], default=())


@struct
class TopicResponse(Struct):
    name: str = kafka("string", default="")
    partitions: tuple[PartitionResponse, ...] = kafka([PartitionResponse], default=())


@message(versions=(0, 0), flexible_since=0, api_key=61)
class DescribeProducersResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    topics: tuple[TopicResponse, ...] = kafka([TopicResponse], default=())


@struct
class TopicRequest(Struct):
    name: str = kafka("string", default="")
    partition_indexes: tuple[int, ...] = kafka("[]int32", default=())


@message(versions=(0, 0), flexible_since=0, api_key=61, response=DescribeProducersResponse)
class DescribeProducersRequest(Request[DescribeProducersResponse]):
    topics: tuple[TopicRequest, ...] = kafka([TopicRequest], default=())
