"""The one table of configs: every key that a node of kquorum knows is defined once, in a module of this package.

`python -m tools.render_configs` writes docs/configs.md from it. To add a key see docs/contributing.md.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import chain

from kquorum.metadata.configs import (
    client_metrics,
    coordinators,
    groups,
    logs,
    network,
    quorum,
    remote_storage,
    replication,
    security,
    share_groups,
    topics,
)
from kquorum.metadata.configs.definition import ConfigDefinition

Definitions = Mapping[str, ConfigDefinition]


class Scope(StrEnum):
    """Whose config a key is. Kafka hands the keys of its authorizer to it unread: they are no configs of a broker."""

    TOPIC = "topic"
    GROUP = "group"
    CLIENT_METRICS = "client metrics"
    BROKER = "broker"
    AUTHORIZER = "authorizer"


# The resource types of DescribeConfigs that have definitions; metadata.image.configs has all of them.
RESOURCE_TYPES: Mapping[Scope, int] = {
    Scope.TOPIC: 2,
    Scope.BROKER: 4,
    Scope.CLIENT_METRICS: 16,
    Scope.GROUP: 32,
}
_BROKER = RESOURCE_TYPES[Scope.BROKER]

# Each with its title in the docs.
BROKER_PARTS: Mapping[str, tuple[ConfigDefinition, ...]] = {
    "The node itself, the quorum and the metadata log": quorum.DEFINITIONS,
    "Listeners, connections, limits, threads and metrics": network.DEFINITIONS,
    "Replication, leaders and quotas": replication.DEFINITIONS,
    "Partition logs, their directories, and the topics that are created": logs.LOGS,
    "Log compaction": logs.LOG_CLEANER_DEFINITIONS,
    "Tiered storage": remote_storage.DEFINITIONS,
    "Offsets, transactions and classic groups": coordinators.OFFSETS_TRANSACTIONS_CLASSIC_GROUPS,
    "Consumer groups and streams groups": coordinators.CONSUMER_AND_STREAMS_GROUPS,
    "Share groups": share_groups.DEFINITIONS,
    "TLS": security.TLS,
    "SASL": security.SASL,
    "Delegation tokens, authorization and policies": security.TOKENS_AND_CLASSES,
}


def _by_name(definitions: Iterable[ConfigDefinition]) -> Definitions:
    return {definition.name: definition for definition in definitions}


TOPIC_CONFIGS = _by_name(topics.DEFINITIONS)
GROUP_CONFIGS = _by_name(groups.DEFINITIONS)
CLIENT_METRICS_CONFIGS = _by_name(client_metrics.DEFINITIONS)
BROKER_CONFIGS = _by_name(chain.from_iterable(BROKER_PARTS.values()))
AUTHORIZER_CONFIGS = _by_name(security.AUTHORIZER_DEFINITIONS)
# What may stand in a node's config file.
FILE_CONFIGS: Definitions = {**BROKER_CONFIGS, **AUTHORIZER_CONFIGS}
BY_SCOPE: Mapping[Scope, Definitions] = {
    Scope.TOPIC: TOPIC_CONFIGS,
    Scope.GROUP: GROUP_CONFIGS,
    Scope.CLIENT_METRICS: CLIENT_METRICS_CONFIGS,
    Scope.BROKER: BROKER_CONFIGS,
    Scope.AUTHORIZER: AUTHORIZER_CONFIGS,
}
DEFINITIONS: Mapping[int, Definitions] = {
    resource_type: BY_SCOPE[scope] for scope, resource_type in RESOURCE_TYPES.items()
}

# Other names for a broker's key; the key itself wins where a file has both.
ALIASES: Mapping[str, str] = {"log.dir": "log.dirs"}
# One listener may have a limit of its own, as `listener.name.<listener in lower case>.<key>`.
LISTENER_LIMITS = ("max.connections", "max.connection.creation.rate")

_LISTENER_KEY = re.compile(r"listener\.name\.[^.]*\.(.*)")
# `listener.name.x.<mechanism>.sasl.jaas.config`: one login for each mechanism of the listener.
_JAAS = "sasl.jaas.config"
_WITH_MECHANISM = (
    _JAAS,
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)


def without_listener(name: str) -> str:
    """The broker config that a key of one listener (`listener.name.<name>.<key>`) overrides, else the key itself."""
    found = _LISTENER_KEY.fullmatch(name)
    if found is None:
        return name
    base = found.group(1)
    return next((key for key in _WITH_MECHANISM if base.endswith(key)), base)


def definition_of(resource_type: int, name: str) -> ConfigDefinition | None:
    """A broker's key may carry a listener's prefix. None: a plugin's key, or a mistake."""
    definitions = DEFINITIONS.get(resource_type, {})
    return definitions.get(without_listener(name) if resource_type == _BROKER else name)


def is_sensitive(resource_type: int, name: str) -> bool:
    """By the definition's type. An unknown key may hold a secret, so it counts as one, as it does for Kafka."""
    definition = definition_of(resource_type, name)
    return definition is None or definition.is_sensitive


def default_number(name: str) -> int:
    """Of a key that has a number as its default."""
    value = _default(name)
    assert isinstance(value, int), name
    assert not isinstance(value, bool), name
    return value


def default_flag(name: str) -> bool:
    """Of a key that is true or false."""
    value = _default(name)
    assert isinstance(value, bool), name
    return value


def _default(name: str) -> object:
    definition = FILE_CONFIGS[name]
    assert definition.default is not None, name
    return definition.parse(definition.default)
