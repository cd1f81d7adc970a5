"""Which value counts: a resource's own, or what the node and the cluster say instead, under whichever name.

A topic's `retention.ms` is a broker's `log.retention.ms`, `log.retention.minutes` or `log.retention.hours`
(Kafka's ServerTopicConfigSynonyms); a group's configs have theirs too.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from kquorum.metadata.configs.definition import Synonym
from kquorum.metadata.configs.table import BROKER_CONFIGS, GROUP_CONFIGS, TOPIC_CONFIGS, without_listener
from kquorum.metadata.configs.validators import InvalidConfigError
from kquorum.metadata.image.configs import BROKER, CLUSTER_DEFAULT, ConfigResource
from kquorum.metadata.image.image import MetadataImage

# DescribeConfigsResponse, ConfigSource.
SOURCE_TOPIC = 1
SOURCE_DYNAMIC_BROKER = 2
SOURCE_DYNAMIC_DEFAULT_BROKER = 3
SOURCE_STATIC_BROKER = 4
SOURCE_DEFAULT = 5
SOURCE_CLIENT_METRICS = 7
SOURCE_GROUP = 8


class Found(NamedTuple):
    """A value under one of its names."""

    name: str
    value: str
    source: int


# Keys of a broker that mean the same, the one that counts most first.
_SAME = (
    ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.roll.ms", "log.roll.hours"),
)
_BROKER_SYNONYMS = {
    name: group for group in _SAME for name in group if name != "log.flush.scheduler.interval.ms"
}


def topic_synonyms(name: str) -> tuple[Synonym, ...]:
    """The broker's keys that are the default of a topic's config, the one that counts most first."""
    definition = TOPIC_CONFIGS.get(name)
    return () if definition is None else definition.synonyms


def broker_synonyms(name: str) -> tuple[str, ...]:
    """Under which names a broker's config may stand; that of one listener comes before that of all."""
    base = without_listener(name)
    return (name, base) if base != name else _BROKER_SYNONYMS.get(name, (name,))


def group_synonym(name: str) -> str | None:
    """The broker's key that is the default of a group's config; None if there is none."""
    definition = GROUP_CONFIGS.get(name)
    return definition.synonyms[0].name if definition is not None and definition.synonyms else None


@dataclass(frozen=True, slots=True)
class NodeConfigs:
    """What counts on one node: set for it, set for all brokers, and its config file, in this order."""

    own: Mapping[str, str]
    cluster: Mapping[str, str]
    static: Mapping[str, str]

    @staticmethod
    def of(image: MetadataImage, node_id: int, static: Mapping[str, str]) -> "NodeConfigs":
        resources = image.configs.resources
        return NodeConfigs(
            own=resources.get(ConfigResource(BROKER, str(node_id)), {}),
            cluster=resources.get(ConfigResource(BROKER, CLUSTER_DEFAULT), {}),
            static=static,
        )

    def found(self, names: Iterable[str]) -> list[Found]:
        """Every value that is set under one of the names, the one that counts first; defaults last."""
        names = tuple(names)
        places = (
            (self.own, SOURCE_DYNAMIC_BROKER),
            (self.cluster, SOURCE_DYNAMIC_DEFAULT_BROKER),
            (self.static, SOURCE_STATIC_BROKER),
        )
        found = [
            Found(name, values[name], source) for values, source in places for name in names if name in values
        ]
        defaults = ((name, BROKER_CONFIGS[name].default) for name in names if name in BROKER_CONFIGS)
        return found + [
            Found(name, default, SOURCE_DEFAULT) for name, default in defaults if default is not None
        ]

    def value(self, name: str) -> str | None:
        """Of a broker's config."""
        found = self.found(broker_synonyms(name))
        return found[0].value if found else None

    def number(self, name: str) -> int:
        """Of a broker's config that has a default and is a number; the default for what is none."""
        definition = BROKER_CONFIGS[name]
        for found in self.found((name,)):
            with suppress(InvalidConfigError):
                parsed = definition.parse(found.value)
                assert isinstance(parsed, int)
                return parsed
        raise AssertionError(f"{name} has no default")

    def for_topic(self, name: str, default: str | None) -> tuple[str | None, int]:
        """What a topic's config is when the topic has none of its own, and where that comes from."""
        factors = {synonym.name: synonym.factor for synonym in topic_synonyms(name)}
        for found in self.found(factors):
            if found.source == SOURCE_DEFAULT:
                break
            with suppress(ValueError):
                return _times(found.value, factors[found.name]), found.source
        return default, SOURCE_DEFAULT


def _times(value: str, factor: int) -> str:
    if factor == 1:
        return value
    number = int(value)
    return str(number * factor if number >= 0 else -1)
