"""AddPartitionsToTxn (24), versions 0 to 5. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: int = kafka("int32", default=0)
    partition_error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)


@struct
class AddPartitionsToTxnTopicResult(Struct):
    name: str = kafka("string", default="")
    results_by_partition: tuple[AddPartitionsToTxnPartitionResult, ...] = kafka(
        [AddPartitionsToTxnPartitionResult], default=()
    )


@struct
class AddPartitionsToTxnResult(Struct):
    transactional_id: str = kafka("string", default="")
    topic_results: tuple[AddPartitionsToTxnTopicResult, ...] = kafka(
        [AddPartitionsToTxnTopicResult], default=()
    )


@message(versions=(0, 5), flexible_since=3, api_key=24)
class AddPartitionsToTxnResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    results_by_topic_v3_and_below: tuple[AddPartitionsToTxnTopicResult, ...] = kafka(
        [AddPartitionsToTxnTopicResult], default=(), until=3
    )
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none, since=4)
    results_by_transaction: tuple[AddPartitionsToTxnResult, ...] = kafka(
        [AddPartitionsToTxnResult], default=(), since=4
    )


@struct
class AddPartitionsToTxnTopic(Struct):
    name: str = kafka("string", default="")
    partitions: tuple[int, ...] = kafka("[]int32", default=())


@struct
class AddPartitionsToTxnTransaction(Struct):
    transactional_id: str = kafka("string", default="")
    producer_id: int = kafka("int64", default=0)
    producer_epoch: int = kafka("int16", default=0)
    verify_only: bool = kafka("bool", default=False)
    topics: tuple[AddPartitionsToTxnTopic, ...] = kafka([AddPartitionsToTxnTopic], default=())


@message(versions=(0, 5), flexible_since=3, api_key=24, response=AddPartitionsToTxnResponse)
class AddPartitionsToTxnRequest(Request[AddPartitionsToTxnResponse]):
    v3_and_below_transactional_id: str = kafka("string", default="", until=3)
    v3_and_below_producer_id: int = kafka("int64", default=0, until=3)
    v3_and_below_producer_epoch: int = kafka("int16", default=0, until=3)
    v3_and_below_topics: tuple[AddPartitionsToTxnTopic, ...] = kafka(
        [AddPartitionsToTxnTopic], default=(), until=3
    )
    transactions: tuple[AddPartitionsToTxnTransaction, ...] = kafka(
        [AddPartitionsToTxnTransaction], default=(), since=4
    )
