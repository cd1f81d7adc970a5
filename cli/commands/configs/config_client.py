"""Configs as a client of the cluster sees and changes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kquorum.cli.clients.cluster_client import ClusterClient, PendingRequest, check_change, check_error
from kquorum.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from kquorum.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

SET, DELETE, APPEND, SUBTRACT = range(4)
# DescribeConfigsResponse, ConfigSource and ConfigType.
SOURCES = {
    1: "topic",
    2: "broker",
    3: "cluster",
    4: "config file",
    5: "default",
    6: "broker logger",
    7: "client metrics",
    8: "group",
}
DEFAULT_SOURCE = SOURCES[5]
_TYPES = {
    1: "boolean",
    2: "string",
    3: "int",
    4: "short",
    5: "long",
    6: "double",
    7: "list",
    8: "class",
    9: "password",
}


@dataclass(frozen=True, slots=True)
class Resource:
    """Whose configs are meant: `type` is Kafka's number; a broker without a name is all brokers."""

    type: int
    name: str
    words: str


def topic_resource(name: str) -> Resource:
    return Resource(2, name, f"topic {name}")


def broker_resource(node_id: int) -> Resource:
    return Resource(4, str(node_id), f"broker {node_id}")


ALL_BROKERS = Resource(4, "", "all brokers")


def client_metrics_resource(name: str) -> Resource:
    return Resource(16, name, f"client metrics {name}")


def group_resource(name: str) -> Resource:
    return Resource(32, name, f"group {name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigView:
    """One config; the value of a sensitive one is not told."""

    name: str
    value: str | None
    source: str
    type: str
    is_sensitive: bool
    read_only: bool
    documentation: str | None
    synonyms: tuple[Mapping[str, object], ...]


async def describe_configs(client: ClusterClient, resource: Resource) -> tuple[ConfigView, ...]:
    """By name. Raises CliError for a refusal."""
    asked = DescribeConfigsRequest(
        resources=(
            DescribeConfigsResource(
                resource_type=resource.type, resource_name=resource.name, configuration_keys=None
            ),
        ),
        include_synonyms=True,
        include_documentation=True,
    )
    result = (await client.ask(asked)).results[0]
    what = f"configs of {resource.words} cannot be described"
    check_error(int(result.error_code), result.error_message, what)
    return tuple(sorted((_view(config) for config in result.configs), key=lambda config: config.name))


def _view(config: DescribeConfigsResourceResult) -> ConfigView:
    source = config.config_source
    return ConfigView(
        name=config.name,
        value=config.value,
        source=SOURCES.get(source, f"source {source}"),
        type=_TYPES.get(config.config_type, "unknown"),
        is_sensitive=config.is_sensitive,
        read_only=config.read_only,
        documentation=config.documentation,
        synonyms=tuple(
            {"name": each.name, "value": each.value, "source": SOURCES.get(each.source, "unknown")}
            for each in config.synonyms
        ),
    )


@dataclass(frozen=True, slots=True)
class Operation:
    """`kind` is SET, DELETE, APPEND or SUBTRACT; a DELETE has no value."""

    kind: int
    key: str
    value: str | None = None


async def alter_configs(
    client: ClusterClient, resource: Resource, operations: Sequence[Operation], *, validate_only: bool
) -> None:
    """Raises CliError for a refusal."""
    altered = AlterConfigsResource(
        resource_type=resource.type,
        resource_name=resource.name,
        configs=tuple(
            AlterableConfig(name=each.key, config_operation=each.kind, value=each.value)
            for each in operations
        ),
    )
    request = IncrementalAlterConfigsRequest(resources=(altered,), validate_only=validate_only)
    doubt = f"the configs of {resource.words} may have been altered all the same: look with `kquorum configs describe`"
    pending = PendingRequest(request=request, doubt=None if validate_only else doubt)
    result = (await client.ask(pending)).responses[0]
    kind = "would not be altered" if validate_only else "were not altered"
    what = f"configs of {resource.words} {kind}"
    if validate_only:
        check_error(int(result.error_code), result.error_message, what)
    else:
        check_change(int(result.error_code), result.error_message, what, doubt)
