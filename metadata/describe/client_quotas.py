"""DescribeClientQuotas (KIP-546): the entities that a filter of types and names selects."""

from collections.abc import Iterable, Mapping

from kquorum.metadata.controller.configs.client_quotas import CLIENT_ID, ENTITY_TYPES, IP, USER
from kquorum.metadata.controller.requests import ApiError
from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.metadata.describe.slices import Elements, ordered
from kquorum.metadata.image.quotas import QuotaEntity
from kquorum.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from kquorum.wire.messages.error_codes import ErrorCode

MATCH_EXACT, MATCH_DEFAULT, MATCH_ANY = 0, 1, 2


def describe_client_quotas(question: DescribeRequest) -> DescribeClientQuotasResponse | Elements:
    """Every component must match; `strict` leaves no room for types that no component names."""
    request: DescribeClientQuotasRequest = question.body
    try:
        names, kinds = _filter(request.components)
    except ApiError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message, entries=None)
    entities = question.image.client_quotas.entities
    found = ordered(
        entities,
        key=_order,
        is_wanted=lambda entity: _matches(dict(entity), names, kinds, is_strict=request.strict),
    )
    steps = (None if entity is None else _entry(entity, entities[entity]) for entity in found)
    return Elements(DescribeClientQuotasResponse(error_message=""), "entries", steps)


def _entry(entity: QuotaEntity, quotas: Mapping[str, float]) -> EntryData:
    return EntryData(
        entity=tuple([EntityData(entity_type=kind, entity_name=name) for kind, name in entity]),
        values=tuple([ValueData(key=key, value=value) for key, value in sorted(quotas.items())]),
    )


def _order(entity: QuotaEntity) -> list[tuple[str, bool, str]]:
    return [(kind, name is not None, name or "") for kind, name in entity]


def _filter(components: Iterable[ComponentData]) -> tuple[dict[str, str | None], set[str]]:
    """The names asked for by type (None is the default), and the types that match any name.

    Raises INVALID_REQUEST, or UNSUPPORTED_VERSION for a type that there is not.
    """
    names: dict[str, str | None] = {}
    kinds: set[str] = set()
    for component in components:
        kind, match_type, match = component.entity_type, component.match_type, component.match
        if not kind:
            raise ApiError(ErrorCode.invalid_request, "Invalid empty entity type.")
        if kind in names or kind in kinds:
            raise ApiError(
                ErrorCode.invalid_request, f"Entity type {kind} cannot appear more than once in the filter."
            )
        if kind not in ENTITY_TYPES:
            raise ApiError(ErrorCode.unsupported_version, f"Unsupported entity type {kind}")
        _check_match(match_type, match)
        if match_type == MATCH_ANY:
            kinds.add(kind)
        else:
            names[kind] = match
    asked = kinds | set(names)
    if IP in asked and asked & {USER, CLIENT_ID}:
        reason = (
            "Invalid entity filter component combination. IP filter component should not be used with user or "
            "clientId filter component."
        )
        raise ApiError(ErrorCode.invalid_request, reason)
    return names, kinds


def _check_match(match_type: int, match: str | None) -> None:
    if match_type not in (MATCH_EXACT, MATCH_DEFAULT, MATCH_ANY):
        raise ApiError(ErrorCode.invalid_request, f"Unknown match type {match_type}")
    if match_type == MATCH_EXACT and match is None:
        reason = "Request specified MATCH_TYPE_EXACT, but set match string to null."
        raise ApiError(ErrorCode.invalid_request, reason)
    if match_type != MATCH_EXACT and match is not None:
        name = "MATCH_TYPE_DEFAULT" if match_type == MATCH_DEFAULT else "MATCH_TYPE_SPECIFIED"
        raise ApiError(
            ErrorCode.invalid_request, f"Request specified {name}, but also specified a match string."
        )


def _matches(
    entity: dict[str, str | None], names: dict[str, str | None], kinds: set[str], *, is_strict: bool
) -> bool:
    if is_strict and len(entity) != len(names) + len(kinds):
        return False
    are_named = all(kind in entity and entity[kind] == name for kind, name in names.items())
    return are_named and all(kind in entity for kind in kinds)
