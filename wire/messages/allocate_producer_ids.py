"""AllocateProducerIds (67), version 0. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, kafka, message
from kquorum.wire.messages.error_codes import ErrorCode


@message(versions=(0, 0), flexible_since=0, api_key=67)
class AllocateProducerIdsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    producer_id_start: int = kafka("int64", default=0)
    producer_id_len: int = kafka("int32", default=0)


@message(versions=(0, 0), flexible_since=0, api_key=67, response=AllocateProducerIdsResponse)
class AllocateProducerIdsRequest(Request[AllocateProducerIdsResponse]):
    broker_id: int = kafka("int32", default=0)
    broker_epoch: int = kafka("int64", default=-1)
