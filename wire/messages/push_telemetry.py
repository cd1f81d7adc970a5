"""PushTelemetry (72), version 0. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, kafka, message
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@message(versions=(0, 0), flexible_since=0, api_key=72)
class PushTelemetryResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)


@message(versions=(0, 0), flexible_since=0, api_key=72, response=PushTelemetryResponse)
class PushTelemetryRequest(Request[PushTelemetryResponse]):
    client_instance_id: UUID = kafka("uuid", default=ZERO_UUID)
    subscription_id: int = kafka("int32", default=0)
    terminating: bool = kafka("bool", default=False)
    compression_type: int = kafka("int8", default=0)
    metrics: bytes = kafka("bytes", default=b"")
