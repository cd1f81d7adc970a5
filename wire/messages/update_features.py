"""UpdateFeatures (57), versions 0 to 2. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class UpdatableFeatureResult(Struct):
    feature: str = kafka("string", default="")
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)


@message(versions=(0, 2), flexible_since=0, api_key=57)
class UpdateFeaturesResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)
    results: tuple[UpdatableFeatureResult, ...] = kafka([UpdatableFeatureResult], default=(), until=1)


@struct
class FeatureUpdateKey(Struct):
    feature: str = kafka("string", default="")
    max_version_level: int = kafka("int16", default=0)
    allow_downgrade: bool = kafka("bool", default=False, until=0)
    upgrade_type: int = kafka("int8", default=1, since=1)


@message(versions=(0, 2), flexible_since=0, api_key=57, response=UpdateFeaturesResponse)
class UpdateFeaturesRequest(Request[UpdateFeaturesResponse]):
    timeout_ms: int = kafka("int32", default=60000)
    feature_updates: tuple[FeatureUpdateKey, ...] = kafka([FeatureUpdateKey], default=())
    validate_only: bool = kafka("bool", default=False, since=1)
