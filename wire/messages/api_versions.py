"""ApiVersions (18), versions 0 to 4. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class ApiVersion(Struct):
    api_key: int = kafka("int16", default=0)
    min_version: int = kafka("int16", default=0)
    max_version: int = kafka("int16", default=0)


@struct
class SupportedFeatureKey(Struct):
    name: str = kafka("string", default="")
    min_version: int = kafka("int16", default=0)
    max_version: int = kafka("int16", default=0)


@struct
class FinalizedFeatureKey(Struct):
    name: str = kafka("string", default="")
    max_version_level: int = kafka("int16", default=0)
    min_version_level: int = kafka("int16", default=0)


@message(versions=(0, 4), flexible_since=3, api_key=18)
class ApiVersionsResponse(Response):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    api_keys: tuple[ApiVersion, ...] = kafka([ApiVersion], default=())
    throttle_time_ms: int = kafka("int32", default=0, since=1)
    supported_features: tuple[SupportedFeatureKey, ...] = kafka(
        [SupportedFeatureKey], default=(), since=3, tag=0
    )
    finalized_features_epoch: int = kafka("int64", default=-1, since=3, tag=1)
    finalized_features: tuple[FinalizedFeatureKey, ...] = kafka(
        [FinalizedFeatureKey], default=(), since=3, tag=2
    )
    zk_migration_ready: bool = kafka("bool", default=False, since=3, tag=3)


@message(versions=(0, 4), flexible_since=3, api_key=18, response=ApiVersionsResponse)
class ApiVersionsRequest(Request[ApiVersionsResponse]):
    client_software_name: str = kafka("string", default="", since=3, is_ignorable=True)
    client_software_version: str = kafka("string", default="", since=3, is_ignorable=True)
