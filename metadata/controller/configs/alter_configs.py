"""IncrementalAlterConfigs and AlterConfigs: each resource succeeds or fails alone, and what succeeds is one batch."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kio.schema.errors import ErrorCode

from metadata.config_definitions.definition import ConfigType
from metadata.config_definitions.table import definition_of
from metadata.controller.configs.config_checks import (
    check_change,
    check_records,
    check_resource,
    check_resource_type,
)
from metadata.controller.context import DecisionContext
from metadata.controller.partitions.elr import clear_elr_records
from metadata.controller.requests import ApiError, ControllerRequest, Values
from metadata.controller.results import ControllerResult
from metadata.image.configs import BROKER, CLUSTER_DEFAULT, TOPIC, ConfigResource
from wire.metadata_records.configs import ConfigRecord
from wire.schema import MetadataRecord

SET, DELETE, APPEND, SUBTRACT = range(4)
_OPERATIONS = {SET: "SET", DELETE: "DELETE", APPEND: "APPEND", SUBTRACT: "SUBTRACT"}
_RESOURCES_IN_REASON = 10
_KINDS = {2: "topic", 4: "broker", 16: "client metrics", 32: "group"}
# Kafka can take an item off a list of these only: the others' definitions are not known where that is decided.
_WITH_LISTS = (TOPIC, BROKER)


@dataclass(frozen=True, slots=True)
class Change:
    """What one resource's configs become: `explicit` was asked for by name, None takes a key off; `implicit` goes
    because the legacy request leaves it out."""

    explicit: Mapping[str, str | None]
    implicit: tuple[str, ...] = ()

    def merged(self, before: Mapping[str, str]) -> dict[str, str]:
        after = dict(before)
        for name, value in (*self.explicit.items(), *((name, None) for name in self.implicit)):
            if value is None:
                after.pop(name, None)
            else:
                after[name] = value
        return after

    def records(self, resource: ConfigResource) -> list[ConfigRecord]:
        changes = (*self.explicit.items(), *((name, None) for name in self.implicit))
        return [
            ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
            for name, value in changes
        ]


Decide = Callable[[ConfigResource, Any, Mapping[str, str]], Change]


def incremental_alter_configs(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    return _alter(context, request, _incremental)


def alter_configs(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """The older request replaces all configs of a resource (KIP-133)."""
    return _alter(context, request, _replacement)


def config_refusal(request: ControllerRequest, error: ApiError) -> Values:
    return {"responses": [_response(asked, error) for asked in request.body.resources]}


def _response(asked: Any, error: ApiError | None) -> Values:
    return {
        "error_code": ErrorCode.none if error is None else error.code,
        "error_message": None if error is None else error.message,
        "resource_type": asked.resource_type,
        "resource_name": asked.resource_name,
    }


def _alter(context: DecisionContext, request: ControllerRequest, decide: Decide) -> ControllerResult:
    """Raises POLICY_VIOLATION when the whole request makes more records than one batch may hold."""
    mentions = Counter((int(each.resource_type), each.resource_name) for each in request.body.resources)
    responses: list[Values] = []
    changed: dict[ConfigResource, Change] = {}
    records: list[MetadataRecord] = []
    for asked in request.body.resources:
        resource = ConfigResource(int(asked.resource_type), asked.resource_name)
        try:
            if mentions[resource] > 1:
                raise ApiError(ErrorCode.invalid_request, "Each resource must appear at most once.")
            change = _decided(context, resource, asked, decide)
        except ApiError as error:
            responses.append(_response(asked, error))
            continue
        changed[resource] = change
        records += change.records(resource)
        responses.append(_response(asked, None))
    records += clear_elr_records(context, records)
    if len(records) > context.config.max_records_per_batch:
        reason = (
            f"The request would need {len(records)} records, more than one batch holds; ask for less at once."
        )
        raise ApiError(ErrorCode.policy_violation, reason)
    return ControllerResult(
        records=() if request.body.validate_only else tuple(records),
        response={"throttle_time": 0, "responses": responses},
        audit_reason=_reason(changed),
    )


def _decided(context: DecisionContext, resource: ConfigResource, asked: Any, decide: Decide) -> Change:
    check_resource_type(resource)
    names = [each.name for each in asked.configs]
    if len(set(names)) < len(names):
        raise ApiError(ErrorCode.invalid_request, "Error due to duplicate config keys")
    before: Mapping[str, str] = context.image.configs.resources.get(resource, {})
    change = decide(resource, asked, before)
    check_records(context, resource, change.explicit, change.implicit)
    check_change(context, resource, change.explicit, change.merged(before), before)
    check_resource(context, resource)
    return change


def _check_values(without_value: list[str]) -> None:
    if without_value:
        reason = f"Null value not supported for : {', '.join(without_value)}"
        raise ApiError(ErrorCode.invalid_request, reason)


def _incremental(resource: ConfigResource, asked: Any, before: Mapping[str, str]) -> Change:
    operations = {each.name: (int(each.config_operation), each.value) for each in asked.configs}
    for operation, _ in operations.values():
        if operation not in _OPERATIONS:
            raise ApiError(ErrorCode.invalid_request, f"Unknown operations type {operation}")
    _check_values(
        [name for name, (operation, value) in operations.items() if operation != DELETE and value is None]
    )
    wanted = {
        name: _outcome(resource, name, operation, value, before.get(name))
        for name, (operation, value) in operations.items()
    }
    return Change(_worth_writing(resource, wanted, before))


def _outcome(
    resource: ConfigResource, name: str, operation: int, value: str | None, current: str | None
) -> str | None:
    if operation == DELETE:
        return None
    assert value is not None
    if operation == SET:
        return value
    definition = definition_of(resource.type, name) if resource.type in _WITH_LISTS else None
    if definition is None or definition.type is not ConfigType.LIST:
        reason = f"Can't {_OPERATIONS[operation]} to key {name} because its type is not LIST."
        raise ApiError(ErrorCode.invalid_config, reason)
    base = definition.default if current is None else current
    items = [item for item in (base or "").split(",") if item]
    for item in _java_split(value):
        if operation == APPEND and item not in items:
            items.append(item)
        elif operation == SUBTRACT and item in items:
            items.remove(item)
    return ",".join(items)


def _java_split(value: str) -> list[str]:
    """As Kafka splits what is appended or subtracted: empty items at the end do not count, unless there is nothing."""
    return value.rstrip(",").split(",") if value.strip(",") or not value else []


def _replacement(resource: ConfigResource, asked: Any, before: Mapping[str, str]) -> Change:
    _check_values([each.name for each in asked.configs if each.value is None])
    wanted: dict[str, str | None] = {each.name: each.value for each in asked.configs}
    implicit = tuple(sorted(name for name in before if name not in wanted))
    return Change(_worth_writing(resource, wanted, before), implicit)


def _worth_writing(
    resource: ConfigResource, wanted: Mapping[str, str | None], before: Mapping[str, str]
) -> dict[str, str | None]:
    """A broker is told again even of what it has, so that it reads key stores and the like anew (KAFKA-14136)."""
    return {
        name: value for name, value in wanted.items() if resource.type == BROKER or value != before.get(name)
    }


def _reason(changed: Mapping[ConfigResource, Change]) -> str:
    """Names only: a value may be a secret."""
    words = [_words(resource, change) for resource, change in changed.items()]
    more = f" and {len(words) - _RESOURCES_IN_REASON} more" if len(words) > _RESOURCES_IN_REASON else ""
    return f"alter configs: {'; '.join(words[:_RESOURCES_IN_REASON])}{more}"


def _words(resource: ConfigResource, change: Change) -> str:
    name = f"{_KINDS[resource.type]} {resource.name}"
    if resource == ConfigResource(BROKER, CLUSTER_DEFAULT):
        name = "all brokers"
    keys = (*change.explicit, *change.implicit)
    more = f", {len(keys) - _RESOURCES_IN_REASON} more" if len(keys) > _RESOURCES_IN_REASON else ""
    return f"{name} ({', '.join(keys[:_RESOURCES_IN_REASON])}{more})"
