"""AddOffsetsToTxn (25), versions 0 to 4. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, kafka, message
from kquorum.wire.messages.error_codes import ErrorCode


@message(versions=(0, 4), flexible_since=3, api_key=25)
class AddOffsetsToTxnResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)


@message(versions=(0, 4), flexible_since=3, api_key=25, response=AddOffsetsToTxnResponse)
class AddOffsetsToTxnRequest(Request[AddOffsetsToTxnResponse]):
    transactional_id: str = kafka("string", default="")
    producer_id: int = kafka("int64", default=0)
    producer_epoch: int = kafka("int16", default=0)
    group_id: str = kafka("string", default="")
