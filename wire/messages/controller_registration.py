"""ControllerRegistration (70), version 0. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@message(versions=(0, 0), flexible_since=0, api_key=70)
class ControllerRegistrationResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)


@struct
class Listener(Struct):
    name: str = kafka("string", default="")
    host: str = kafka("string", default="")
    port: int = kafka("uint16", default=0)
    security_protocol: int = kafka("int16", default=0)


@struct
class Feature(Struct):
    name: str = kafka("string", default="")
    min_supported_version: int = kafka("int16", default=0)
    max_supported_version: int = kafka("int16", default=0)


@message(versions=(0, 0), flexible_since=0, api_key=70, response=ControllerRegistrationResponse)
class ControllerRegistrationRequest(Request[ControllerRegistrationResponse]):
    controller_id: int = kafka("int32", default=0)
    incarnation_id: UUID = kafka("uuid", default=ZERO_UUID)
    zk_migration_ready: bool = kafka("bool", default=False)
    listeners: tuple[Listener, ...] = kafka([Listener], default=())
    features: tuple[Feature, ...] = kafka([Feature], default=())
