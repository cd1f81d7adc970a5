"""GetTelemetrySubscriptions (71), version 0. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, kafka, message
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@message(versions=(0, 0), flexible_since=0, api_key=71)
class GetTelemetrySubscriptionsResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    client_instance_id: UUID = kafka("uuid", default=ZERO_UUID)
    subscription_id: int = kafka("int32", default=0)
    accepted_compression_types: tuple[int, ...] = kafka("[]int8", default=())
    push_interval_ms: int = kafka("int32", default=0)
    telemetry_max_bytes: int = kafka("int32", default=0)
    delta_temporality: bool = kafka("bool", default=False)
    requested_metrics: tuple[str, ...] = kafka("[]string", default=())


@message(versions=(0, 0), flexible_since=0, api_key=71, response=GetTelemetrySubscriptionsResponse)
class GetTelemetrySubscriptionsRequest(Request[GetTelemetrySubscriptionsResponse]):
    client_instance_id: UUID = kafka("uuid", default=ZERO_UUID)
