"""InitProducerId (22), versions 0 to 6. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, kafka, message
from kquorum.wire.messages.error_codes import ErrorCode


@message(versions=(0, 6), flexible_since=2, api_key=22)
class InitProducerIdResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    producer_id: int = kafka("int64", default=-1)
    producer_epoch: int = kafka("int16", default=0)
    ongoing_txn_producer_id: int = kafka("int64", default=-1, since=6)
    ongoing_txn_producer_epoch: int = kafka("int16", default=-1, since=6)


@message(versions=(0, 6), flexible_since=2, api_key=22, response=InitProducerIdResponse)
class InitProducerIdRequest(Request[InitProducerIdResponse]):
    transactional_id: str | None = kafka("string", default="", nullable=True)
    transaction_timeout_ms: int = kafka("int32", default=0)
    producer_id: int = kafka("int64", default=-1, since=3)
    producer_epoch: int = kafka("int16", default=-1, since=3)
    enable2_pc: bool = kafka("bool", default=False, since=6)
    keep_prepared_txn: bool = kafka("bool", default=False, since=6)
