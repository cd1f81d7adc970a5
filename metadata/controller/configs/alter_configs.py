"""IncrementalAlterConfigs and AlterConfigs (rule C15): the checks of a change and its records.

The checks are those of Kafka's ConfigurationControlManager and ControllerConfigurationValidator. Each resource succeeds
or fails alone. What succeeds is one batch; a long request is decided in parts, with a batch for each
(`metadata.controller.divided_requests`).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from kquorum.metadata.configs.definition import ConfigType
from kquorum.metadata.configs.resolution import NodeConfigs
from kquorum.metadata.configs.rules import (
    check_broker_configs,
    check_client_metrics_configs,
    check_group_configs,
    check_topic_configs,
)
from kquorum.metadata.configs.table import definition_of
from kquorum.metadata.configs.validators import InvalidConfigError, InvalidConfigRequestError
from kquorum.metadata.controller.context import DecisionContext
from kquorum.metadata.controller.partitions.elr import clear_elr_records
from kquorum.metadata.controller.requests import ApiError, ControllerRequest, messages_of_entries
from kquorum.metadata.controller.results import ControllerResult
from kquorum.metadata.controller.topics.names import check_topic_name
from kquorum.metadata.image.configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    CLUSTER_DEFAULT,
    GROUP,
    TOPIC,
    ConfigResource,
)
from kquorum.metadata.image.metadata_version import CORDONED_DIRECTORIES
from kquorum.wire.messages import alter_configs as legacy
from kquorum.wire.messages import incremental_alter_configs as incremental
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.schema import MetadataRecord

# A string in a record has a length of two bytes.
MAX_VALUE_BYTES = 32_767
_MAX_INT = 2**31 - 1
_MIN_ISR = "min.insync.replicas"


def check_resource_type(resource: ConfigResource) -> None:
    if resource.type == BROKER_LOGGER:
        reason = "The log levels of this program cannot be altered while it runs."
        raise ApiError(ErrorCode.invalid_request, reason)
    if resource.type not in (TOPIC, BROKER, CLIENT_METRICS, GROUP):
        raise ApiError(ErrorCode.unsupported_version, f"Unknown resource type {resource.type}.")


def check_records(
    context: DecisionContext,
    resource: ConfigResource,
    explicit: Mapping[str, str | None],
    implicit: tuple[str, ...],
) -> None:
    """Raises INVALID_CONFIG for changes that the cluster's state forbids, even if the value is valid."""
    changes = {**explicit, **dict.fromkeys(implicit)}
    if resource.type == BROKER:
        _check_min_isr(context, resource, changes)
        if "cordoned.log.dirs" in changes and context.metadata_version < CORDONED_DIRECTORIES:
            raise ApiError(
                ErrorCode.invalid_config,
                "The cordoned.log.dirs configuration value cannot be set because it requires metadata.version >= "
                "4.3-IV0",
            )
    if any(value is not None and len(value.encode()) > MAX_VALUE_BYTES for value in explicit.values()):
        raise ApiError(
            ErrorCode.invalid_config,
            "The configuration value cannot be added because it exceeds the maximum value size of "
            f"{MAX_VALUE_BYTES} bytes.",
        )


def _check_min_isr(
    context: DecisionContext, resource: ConfigResource, changes: Mapping[str, str | None]
) -> None:
    """With eligible leader replicas (KIP-966) all brokers must agree on the value, so it must be in the log."""
    if _MIN_ISR not in changes or not context.is_elr_enabled:
        return
    if resource.name != CLUSTER_DEFAULT:
        reason = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
        raise ApiError(ErrorCode.invalid_config, reason)
    if changes[_MIN_ISR] is None:
        reason = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
        raise ApiError(ErrorCode.invalid_config, reason)


def check_change(
    context: DecisionContext,
    resource: ConfigResource,
    explicit: Mapping[str, str | None],
    merged: Mapping[str, str],
    before: Mapping[str, str],
) -> None:
    """Raises ApiError for an invalid resource name, or configs that the resource may not have. Existing configs of a
    broker are not validated again: another version of Kafka may have written them."""
    check_resource_name(resource)
    node = NodeConfigs.of(context.image, context.node_id, context.config.node_configs)
    try:
        if resource.type == TOPIC:
            check_topic_configs(merged, before, node)
        elif resource.type == GROUP:
            check_group_configs(merged, node)
        elif resource.type == CLIENT_METRICS:
            check_client_metrics_configs(resource.name, merged)
        else:
            given = {name: value for name, value in explicit.items() if value is not None}
            _check_broker(given, is_cluster_default=resource.name == CLUSTER_DEFAULT)
    except InvalidConfigError as error:
        raise ApiError(ErrorCode.invalid_config, str(error)) from None
    except InvalidConfigRequestError as refused:
        raise ApiError(ErrorCode.invalid_request, str(refused)) from None


def _check_broker(given: Mapping[str, str], *, is_cluster_default: bool) -> None:
    """As Kafka, INVALID_REQUEST for every invalid config of a broker (KAFKA-13609)."""
    try:
        check_broker_configs(given, is_cluster_default=is_cluster_default)
    except InvalidConfigError as error:
        raise InvalidConfigRequestError(str(error)) from None


def check_resource_name(resource: ConfigResource) -> None:
    if resource.type == TOPIC:
        if not resource.name:
            raise ApiError(ErrorCode.invalid_request, "Default topic resources are not allowed.")
        check_topic_name(resource.name)
    elif resource.type == BROKER and resource.name != CLUSTER_DEFAULT:
        if node_id_of(resource.name) is None:
            reason = "Unable to parse broker name as a base 10 number."
            raise ApiError(ErrorCode.invalid_request, reason)
        if int(resource.name) < 0:
            raise ApiError(ErrorCode.invalid_request, "Invalid negative broker ID.")
    elif resource.type == GROUP and not resource.name:
        raise ApiError(ErrorCode.invalid_request, "Default group resources are not allowed.")


def node_id_of(name: str) -> int | None:
    """Parsed as Java parses an int; None if it is not one."""
    digits = name[1:] if name.startswith(("-", "+")) else name
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 20):
        return None
    number = int(name)
    return number if -_MAX_INT - 1 <= number <= _MAX_INT else None


def check_resource(context: DecisionContext, resource: ConfigResource) -> None:
    """Raises UNKNOWN_TOPIC_OR_PARTITION or BROKER_ID_NOT_REGISTERED if the resource does not exist."""
    if resource.type == TOPIC and resource.name not in context.image.topics.by_name:
        reason = f"The topic '{resource.name}' does not exist."
        raise ApiError(ErrorCode.unknown_topic_or_partition, reason)
    if resource.type != BROKER or resource.name == CLUSTER_DEFAULT:
        return
    node_id = int(resource.name)
    cluster = context.image.cluster
    if node_id not in cluster.brokers and node_id not in cluster.controllers and node_id != context.node_id:
        raise ApiError(ErrorCode.broker_id_not_registered, f"No node with id {node_id} found.")


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


class AskedResource(Protocol):
    """A resource of either request."""

    resource_type: int
    resource_name: str


Asked = TypeVar("Asked", legacy.AlterConfigsResource, incremental.AlterConfigsResource)
Decide = Callable[[ConfigResource, Asked, Mapping[str, str]], Change]


def incremental_alter_configs(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    body: incremental.IncrementalAlterConfigsRequest = request.body
    altered = _altered(context, body.resources, _incremental)
    return ControllerResult(
        records=() if body.validate_only else altered.records,
        response=_incremental_response(body.resources, altered.errors),
        audit_reason=altered.reason,
    )


def alter_configs(context: DecisionContext, request: ControllerRequest) -> ControllerResult:
    """The older request replaces all configs of a resource (KIP-133)."""
    body: legacy.AlterConfigsRequest = request.body
    altered = _altered(context, body.resources, _replacement)
    return ControllerResult(
        records=() if body.validate_only else altered.records,
        response=_legacy_response(body.resources, altered.errors),
        audit_reason=altered.reason,
    )


def incremental_config_refusal(
    request: ControllerRequest, error: ApiError
) -> incremental.IncrementalAlterConfigsResponse:
    body: incremental.IncrementalAlterConfigsRequest = request.body
    return _incremental_response(body.resources, _errors_of_all(body.resources, error))


def config_refusal(request: ControllerRequest, error: ApiError) -> legacy.AlterConfigsResponse:
    body: legacy.AlterConfigsRequest = request.body
    return _legacy_response(body.resources, _errors_of_all(body.resources, error))


def _errors_of_all(resources: Sequence[AskedResource], error: ApiError) -> list[ApiError]:
    with_message, without = error, ApiError(error.code)
    messages = messages_of_entries(error.message)
    return [without if next(messages) is None else with_message for _ in resources]


def _incremental_response(
    resources: Sequence[AskedResource], errors: Sequence[ApiError | None]
) -> incremental.IncrementalAlterConfigsResponse:
    """An error, or None, for each resource."""
    responses = [
        incremental.AlterConfigsResourceResponse(
            error_code=_code(error),
            error_message=_message(error),
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
        )
        for asked, error in zip(resources, errors, strict=True)
    ]
    return incremental.IncrementalAlterConfigsResponse(responses=tuple(responses))


def _legacy_response(
    resources: Sequence[AskedResource], errors: Sequence[ApiError | None]
) -> legacy.AlterConfigsResponse:
    """As `_incremental_response`."""
    responses = [
        legacy.AlterConfigsResourceResponse(
            error_code=_code(error),
            error_message=_message(error),
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
        )
        for asked, error in zip(resources, errors, strict=True)
    ]
    return legacy.AlterConfigsResponse(responses=tuple(responses))


def _code(error: ApiError | None) -> ErrorCode:
    return ErrorCode.none if error is None else error.code


def _message(error: ApiError | None) -> str | None:
    return None if error is None else error.message


@dataclass(frozen=True, slots=True)
class _Altered:
    """`errors` has one, or None, for each resource of the request."""

    records: tuple[MetadataRecord, ...]
    errors: list[ApiError | None]
    reason: str


def _altered(context: DecisionContext, resources: Sequence[Asked], decide: Decide[Asked]) -> _Altered:
    """Raises POLICY_VIOLATION when the whole request makes more records than one batch may hold."""
    mentions = Counter([(each.resource_type, each.resource_name) for each in resources])
    errors: list[ApiError | None] = []
    changed: dict[ConfigResource, Change] = {}
    records: list[MetadataRecord] = []
    for asked in resources:
        resource = ConfigResource(asked.resource_type, asked.resource_name)
        try:
            if mentions[resource] > 1:
                raise ApiError(ErrorCode.invalid_request, "Each resource must appear at most once.")
            change = _decided(context, resource, asked, decide)
        except ApiError as error:
            errors.append(error)
            continue
        changed[resource] = change
        records += change.records(resource)
        errors.append(None)
    records += clear_elr_records(context, records)
    if len(records) > context.config.max_records_per_batch:
        reason = (
            f"The request would need {len(records)} records, more than one batch holds; ask for less at once."
        )
        raise ApiError(ErrorCode.policy_violation, reason)
    return _Altered(tuple(records), errors, _reason(changed))


def _decided(
    context: DecisionContext, resource: ConfigResource, asked: Asked, decide: Decide[Asked]
) -> Change:
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


def _incremental(
    resource: ConfigResource, asked: incremental.AlterConfigsResource, before: Mapping[str, str]
) -> Change:
    operations = {each.name: (each.config_operation, each.value) for each in asked.configs}
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


def _replacement(
    resource: ConfigResource, asked: legacy.AlterConfigsResource, before: Mapping[str, str]
) -> Change:
    _check_values([each.name for each in asked.configs if each.value is None])
    wanted: dict[str, str | None] = {each.name: each.value for each in asked.configs}
    implicit = tuple(sorted(name for name in before if name not in wanted))
    return Change(_worth_writing(resource, wanted, before), implicit)


def _worth_writing(
    resource: ConfigResource, wanted: Mapping[str, str | None], before: Mapping[str, str]
) -> dict[str, str | None]:
    """A broker's value is written even if it is unchanged, so that the broker reloads key stores and the like
    (KAFKA-14136)."""
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
