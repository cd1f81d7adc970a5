"""BrokerRegistration (62), versions 0 to 4. Written by `make messages`; do not edit."""

from uuid import UUID

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.uuids import ZERO_UUID


@message(versions=(0, 4), flexible_since=0, api_key=62)
class BrokerRegistrationResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    broker_epoch: int = kafka("int64", default=-1)
    session_ends_in_ms: int = kafka("int32", default=-1, tag=7002)


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


@message(versions=(0, 4), flexible_since=0, api_key=62, response=BrokerRegistrationResponse)
class BrokerRegistrationRequest(Request[BrokerRegistrationResponse]):
    broker_id: int = kafka("int32", default=0)
    cluster_id: str = kafka("string", default="")
    incarnation_id: UUID = kafka("uuid", default=ZERO_UUID)
    listeners: tuple[Listener, ...] = kafka([Listener], default=())
    features: tuple[Feature, ...] = kafka([Feature], default=())
    rack: str | None = kafka("string", default="", nullable=True)
    is_migrating_zk_broker: bool = kafka("bool", default=False, since=1)
    log_dirs: tuple[UUID, ...] = kafka("[]uuid", default=(), since=2, is_ignorable=True)
    previous_broker_epoch: int = kafka("int64", default=-1, since=3, is_ignorable=True)
