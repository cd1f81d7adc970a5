"""DescribeClientQuotas (48), versions 0 to 1. Written by `make messages`; do not edit."""

from kquorum.wire.message_schema import Request, Response, Struct, kafka, message, struct
from kquorum.wire.messages.error_codes import ErrorCode


@struct
class EntityData(Struct):
    entity_type: str = kafka("string", default="")
    entity_name: str | None = kafka("string", default="", nullable=True)


@struct
class ValueData(Struct):
    key: str = kafka("string", default="")
    value: float = kafka("float64", default=0.0)


@struct
class EntryData(Struct):
    entity: tuple[EntityData, ...] = kafka([EntityData], default=())
    values: tuple[ValueData, ...] = kafka([ValueData], default=())


@message(versions=(0, 1), flexible_since=1, api_key=48)
class DescribeClientQuotasResponse(Response):
    throttle_time_ms: int = kafka("int32", default=0)
    error_code: ErrorCode = kafka("error_code", default=ErrorCode.none)
    error_message: str | None = kafka("string", default="", nullable=True)
    entries: tuple[EntryData, ...] | None = kafka([EntryData], default=(), nullable=True)


@struct
class ComponentData(Struct):
    entity_type: str = kafka("string", default="")
    match_type: int = kafka("int8", default=0)
    match: str | None = kafka("string", default="", nullable=True)


@message(versions=(0, 1), flexible_since=1, api_key=48, response=DescribeClientQuotasResponse)
class DescribeClientQuotasRequest(Request[DescribeClientQuotasResponse]):
    components: tuple[ComponentData, ...] = kafka([ComponentData], default=())
    strict: bool = kafka("bool", default=False)
