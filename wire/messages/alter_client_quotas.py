"""AlterClientQuotas (49), versions 0 to 1. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class ResponseEntityData(Struct):
    entity_type: str = kafka("string", default="")
    entity_name: str | None = kafka("string", default="", nullable=True)


@struct
class ResponseEntryData(Struct):
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)
    entity: tuple[ResponseEntityData, ...] = kafka([ResponseEntityData], default=())


@message(versions=(0, 1), flexible_since=1, api_key=49)
class AlterClientQuotasResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    entries: tuple[ResponseEntryData, ...] = kafka([ResponseEntryData], default=())


@struct
class RequestEntityData(Struct):
    entity_type: str = kafka("string", default="")
    entity_name: str | None = kafka("string", default="", nullable=True)


@struct
class OpData(Struct):
    key: str = kafka("string", default="")
    value: float = kafka("float64", default=0.0)
    remove: bool = kafka("bool", default=False)


@struct
class RequestEntryData(Struct):
    entity: tuple[RequestEntityData, ...] = kafka([RequestEntityData], default=())
    ops: tuple[OpData, ...] = kafka([OpData], default=())


@message(versions=(0, 1), flexible_since=1, api_key=49, response=AlterClientQuotasResponse)
class AlterClientQuotasRequest(Request[AlterClientQuotasResponse]):
    entries: tuple[RequestEntryData, ...] = kafka([RequestEntryData], default=())
    validate_only: bool = kafka("bool", default=False)
