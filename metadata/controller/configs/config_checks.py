"""What a change of configs must fulfil (Kafka's ConfigurationControlManager and ControllerConfigurationValidator)."""

from collections.abc import Mapping

from kio.schema.errors import ErrorCode

from metadata.config_definitions.broker_rules import check_broker_configs
from metadata.config_definitions.client_metrics_rules import check_client_metrics_configs
from metadata.config_definitions.group_rules import check_group_configs
from metadata.config_definitions.resolution import NodeConfigs
from metadata.config_definitions.topic_rules import check_topic_configs
from metadata.config_definitions.validators import InvalidConfigError, InvalidConfigRequestError
from metadata.controller.context import DecisionContext
from metadata.controller.requests import ApiError
from metadata.controller.topics.names import check_topic_name
from metadata.image.configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    CLUSTER_DEFAULT,
    GROUP,
    TOPIC,
    ConfigResource,
)
from metadata.image.metadata_version import CORDONED_DIRECTORIES

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
    """Raises INVALID_CONFIG for what the cluster's state forbids, whatever the value is good for."""
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
    """With eligible leader replicas (KIP-966) all brokers must agree on the value, and it must stand in the log."""
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
    """Raises ApiError for a lawless name of the resource, or configs that it may not have.

    What a broker already has is not looked at again: another version of Kafka may have written it.
    """
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
    except InvalidConfigRequestError as error:
        raise ApiError(ErrorCode.invalid_request, str(error)) from None


def _check_broker(given: Mapping[str, str], *, is_cluster_default: bool) -> None:
    """Kafka says INVALID_REQUEST for everything that a broker's configs may not be (KAFKA-13609)."""
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
    """As Java reads an int; None for what is none."""
    digits = name[1:] if name.startswith(("-", "+")) else name
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 20):
        return None
    number = int(name)
    return number if -_MAX_INT - 1 <= number <= _MAX_INT else None


def check_resource(context: DecisionContext, resource: ConfigResource) -> None:
    """Raises UNKNOWN_TOPIC_OR_PARTITION or BROKER_ID_NOT_REGISTERED for what is not there."""
    if resource.type == TOPIC and resource.name not in context.image.topics.by_name:
        reason = f"The topic '{resource.name}' does not exist."
        raise ApiError(ErrorCode.unknown_topic_or_partition, reason)
    if resource.type != BROKER or resource.name == CLUSTER_DEFAULT:
        return
    node_id = int(resource.name)
    cluster = context.image.cluster
    if node_id not in cluster.brokers and node_id not in cluster.controllers and node_id != context.node_id:
        raise ApiError(ErrorCode.broker_id_not_registered, f"No node with id {node_id} found.")
