"""DescribeTransactions (65), version 0. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class TopicData(Struct):
    topic: str = kafka("string", default="")
    partitions: tuple[int, ...] = kafka("[]int32", default=())


@struct
class TransactionState(Struct):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    transactional_id: str = kafka("string", default="")
    transaction_state: str = kafka("string", default="")
    transaction_timeout_ms: int = kafka("int32", default=0)
    transaction_start_time_ms: int = kafka("int64", default=0)
    producer_id: int = kafka("int64", default=0)
    producer_epoch: int = kafka("int16", default=0)
    topics: tuple[TopicData, ...] = kafka([TopicData], default=())


@message(versions=(0, 0), flexible_since=0, api_key=65)
class DescribeTransactionsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    transaction_states: tuple[TransactionState, ...] = kafka([TransactionState], default=())


@message(versions=(0, 0), flexible_since=0, api_key=65, response=DescribeTransactionsResponse)
class DescribeTransactionsRequest(Request[DescribeTransactionsResponse]):
    transactional_ids: tuple[str, ...] = kafka("[]string", default=())
