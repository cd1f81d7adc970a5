"""AlterClientQuotas (KIP-546; rule C18): entity by entity, and one atomic batch of what succeeds."""

import math
from collections.abc import Mapping
from ipaddress import ip_address

from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.requests import ApiError, ControllerRequest, messages_of_entries
from kquorum.metadata.controller.results import ControllerResult
from kquorum.metadata.image.quotas import QuotaEntity
from kquorum.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    RequestEntryData,
    ResponseEntityData,
    ResponseEntryData,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.configs import ClientQuotaRecord, EntityData
from kquorum.wire.schema import MetadataRecord

USER, CLIENT_ID, IP = "user", "client-id", "ip"
ENTITY_TYPES = (USER, CLIENT_ID, IP)

# The largest value of a key that takes whole numbers only; None where it takes fractions.
_INT32, _INT64 = 2.0**31 - 1, 2.0**63
_USER_KEYS: Mapping[str, float | None] = {
    "producer_byte_rate": _INT64,
    "consumer_byte_rate": _INT64,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
_IP_KEYS: Mapping[str, float | None] = {"connection_creation_rate": _INT32}
_TYPE_OF_LIMIT = {_INT32: "an INT", _INT64: "a LONG"}
_FRACTION = 1e-6
_NAMES_IN_REASON = 10


def alter_client_quotas(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """If an entity is named twice, the first mention counts, and the response has one entry for it."""
    body: AlterClientQuotasRequest = request.body
    results: dict[QuotaEntity, ResponseEntryData] = {}
    records: list[MetadataRecord] = []
    altered: list[QuotaEntity] = []
    for entry in body.entries:
        entity = _entity(entry)
        try:
            if entity in results:
                raise _refused(f"Ignoring duplicate entity {describe(entity)}")
            changes = _records(context, entity, entry)
        except ApiError as error:
            results[entity] = _result(entity, error.code, error.message)
            continue
        results[entity] = _result(entity, ErrorCode.none, None)
        records += changes
        altered += [entity] if changes else []
    return ControllerResult(
        records=() if body.validate_only else tuple(records),
        response=AlterClientQuotasResponse(entries=tuple(results.values())),
        audit_reason=_reason(altered),
    )


def refusals(request: ControllerRequest, error: ApiError) -> AlterClientQuotasResponse:
    """Refuses every entity of the request."""
    body: AlterClientQuotasRequest = request.body
    entities = dict.fromkeys(map(_entity, body.entries))
    messages = messages_of_entries(error.message)
    entries = [_result(entity, error.code, next(messages)) for entity in entities]
    return AlterClientQuotasResponse(entries=tuple(entries))


def describe(entity: QuotaEntity) -> str:
    """`user alice, client-id <default>`."""
    return ", ".join(f"{kind} {'<default>' if name is None else name}" for kind, name in entity)


def _entity(entry: RequestEntryData) -> QuotaEntity:
    return tuple(
        sorted(
            ((each.entity_type, each.entity_name) for each in entry.entity),
            key=lambda each: (each[0], each[1] is not None, each[1] or ""),
        )
    )


def _records(context: DecisionContext, entity: QuotaEntity, entry: RequestEntryData) -> list[MetadataRecord]:
    """Only for what changes; raises INVALID_REQUEST, with nothing changed, for the first that cannot be."""
    values: dict[str, float | None] = {}
    for operation in entry.ops:
        if operation.key in values:
            raise _refused(
                f"Duplicate quota key {operation.key} not updating quota for this entity {describe(entity)}"
            )
        values[operation.key] = None if operation.remove else operation.value
    keys = _keys(entity)
    current: Mapping[str, float] = context.image.client_quotas.entities.get(entity, {})
    records: list[MetadataRecord] = []
    for key, value in values.items():
        if value is not None:
            _check_value(keys, key, value)
        if value != current.get(key):
            records.append(_record(entity, key, value))
    return records


def _record(entity: QuotaEntity, key: str, value: float | None) -> ClientQuotaRecord:
    named = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in entity)
    return ClientQuotaRecord(
        entity=named, key=key, value=0.0 if value is None else value, remove=value is None
    )


def _keys(entity: QuotaEntity) -> Mapping[str, float | None]:
    """The quota keys that this entity may have. Raises INVALID_REQUEST for an invalid entity."""
    names: dict[str, str | None] = {}
    for kind, name in entity:
        if kind in names:
            raise _refused(f"Invalid client quota entity, duplicate entity entry {kind}")
        if kind not in ENTITY_TYPES:
            raise _refused(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _refused(f"Empty {kind} not supported")
        names[kind] = name
    if not names:
        raise _refused("Invalid empty client quota entity")
    if IP not in names:
        return _USER_KEYS
    if len(names) > 1:
        raise _refused(
            "Invalid quota entity combination, IP entity should not be combined with User or ClientId"
        )
    _check_address(names[IP])
    return _IP_KEYS


def _check_address(text: str | None) -> None:
    """Addresses only: resolving a host name would block the controller while it waits for a name server."""
    try:
        if text is not None:
            ip_address(text)
    except ValueError:
        reason = f"{text} is not a valid IP; name the address, host names are not looked up."
        raise _refused(reason) from None


def _check_value(keys: Mapping[str, float | None], key: str, value: float) -> None:
    if key not in keys:
        raise _refused(f"Invalid configuration key {key}")
    if not math.isfinite(value):
        raise _refused(f"Quota {key} must be a finite number")
    if value <= 0.0:
        raise _refused(f"Quota {key} must be greater than 0")
    limit = keys[key]
    if limit is None:
        return
    if value > limit:
        raise _refused(f"Proposed value for {key} is too large for {_TYPE_OF_LIMIT[limit]}.")
    if value % 1.0 > _FRACTION:
        raise _refused(f"{key} cannot be a fractional value.")


def _result(entity: QuotaEntity, code: ErrorCode, message: str | None) -> ResponseEntryData:
    named = [ResponseEntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    return ResponseEntryData(error_code=code, error_message=message, entity=tuple(named))


def _reason(altered: list[QuotaEntity]) -> str:
    more = f" and {len(altered) - _NAMES_IN_REASON} more" if len(altered) > _NAMES_IN_REASON else ""
    return f"alter client quotas: {'; '.join(map(describe, altered[:_NAMES_IN_REASON]))}{more}"


def _refused(reason: str) -> ApiError:
    return ApiError(ErrorCode.invalid_request, reason)
