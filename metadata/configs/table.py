"""The definitions by kind of resource."""

import re
from collections.abc import Iterable, Mapping

from metadata.configs import (
    broker_cleaner,
    broker_coordinators,
    broker_groups,
    broker_logs,
    broker_network,
    broker_own,
    broker_quorum,
    broker_replication,
    broker_security,
    broker_shares,
    broker_tls,
    broker_topics,
    client_metrics,
    groups,
    topics,
)
from metadata.configs.definition import ConfigDefinition
from metadata.image.configs import BROKER, CLIENT_METRICS, GROUP, TOPIC

Definitions = Mapping[str, ConfigDefinition]
BROKER_PARTS = (
    broker_quorum,
    broker_network,
    broker_logs,
    broker_cleaner,
    broker_replication,
    broker_coordinators,
    broker_groups,
    broker_shares,
    broker_security,
    broker_tls,
    broker_topics,
    broker_own,
)


def _by_name(definitions: Iterable[ConfigDefinition]) -> Definitions:
    return {definition.name: definition for definition in definitions}


TOPIC_CONFIGS = _by_name(topics.DEFINITIONS)
GROUP_CONFIGS = _by_name(groups.DEFINITIONS)
CLIENT_METRICS_CONFIGS = _by_name(client_metrics.DEFINITIONS)
BROKER_CONFIGS = _by_name(definition for part in BROKER_PARTS for definition in part.DEFINITIONS)
DEFINITIONS: Mapping[int, Definitions] = {
    TOPIC: TOPIC_CONFIGS,
    BROKER: BROKER_CONFIGS,
    CLIENT_METRICS: CLIENT_METRICS_CONFIGS,
    GROUP: GROUP_CONFIGS,
}

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
    return definitions.get(without_listener(name) if resource_type == BROKER else name)


def is_sensitive(resource_type: int, name: str) -> bool:
    """By the definition's type; of an unknown key nobody can say, so it is a secret, as it is for Kafka."""
    definition = definition_of(resource_type, name)
    return definition is None or definition.is_sensitive
