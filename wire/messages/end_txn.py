"""EndTxn (26), versions 0 to 5. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, kafka, message
from kquorum.wire.messages.error_codes import ErrorCode


@message(versions=(0, 5), flexible_since=3, api_key=26)
class EndTxnResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    producer_id: int = kafka("int64", default=-1, since=5)
    producer_epoch: int = kafka("int16", default=-1, since=5)


@message(versions=(0, 5), flexible_since=3, api_key=26, response=EndTxnResponse)
class EndTxnRequest(Request[EndTxnResponse]):
    transactional_id: str = kafka("string", default="")
    producer_id: int = kafka("int64", default=0)
    producer_epoch: int = kafka("int16", default=0)
    committed: bool = kafka("bool", default=False)
