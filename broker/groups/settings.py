"""What a broker's configs say about groups, by Kafka's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from kquorum.metadata.configs.resolution import NodeConfigs, group_synonym
from kquorum.metadata.configs.rules import limit_keys
from kquorum.metadata.configs.table import GROUP_CONFIGS
from kquorum.metadata.configs.validators import InvalidConfigError
from kquorum.metadata.image.configs import GROUP, ConfigResource, ConfigsImage
from kquorum.metadata.image.image import MetadataImage


class MigrationPolicy(Enum):
    """Whether groups may change between the classic and the consumer protocol while they have members."""

    DISABLED = "disabled"
    DOWNGRADE = "downgrade"
    UPGRADE = "upgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def upgrades(self) -> bool:
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def downgrades(self) -> bool:
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """`consumer_assignors` are the names of those that members may ask for, the default first."""

    initial_rebalance_delay_ms: int
    min_session_timeout_ms: int
    max_session_timeout_ms: int
    max_size: int
    metadata_max_bytes: int
    commit_timeout_ms: int
    load_buffer_bytes: int
    retention_ms: int
    retention_check_ms: int
    compression_codec: int
    protocols: frozenset[str]
    consumer_max_size: int
    consumer_assignors: tuple[str, ...]
    consumer_migration: MigrationPolicy
    consumer_regex_refresh_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerTimings:
    """Of one consumer group."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


class ConsumerGroupConfigs:
    """The configs of consumer groups: a group's own, else the broker's defaults (rule G7.51)."""

    def __init__(self, node_configs: Callable[[MetadataImage], NodeConfigs]) -> None:
        self._node_configs = node_configs
        self._configs: ConfigsImage | None = None
        self._known: dict[str | None, ConsumerTimings] = {}

    def timings(self, image: MetadataImage, group_id: str) -> ConsumerTimings:
        if image.configs is not self._configs:
            self._configs = image.configs
            self._known.clear()
        own = image.configs.resources.get(ConfigResource(GROUP, group_id))
        key = None if own is None else group_id
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _timings(own or {}, self._node_configs(image))
        return found


def _timings(own: Mapping[str, str], node: NodeConfigs) -> ConsumerTimings:
    return ConsumerTimings(
        session_timeout_ms=_number("consumer.session.timeout.ms", own, node),
        heartbeat_interval_ms=_number("consumer.heartbeat.interval.ms", own, node),
        assignment_interval_ms=_number("consumer.assignment.interval.ms", own, node),
    )


def _number(name: str, own: Mapping[str, str], node: NodeConfigs) -> int:
    """A value that the broker's limits came to exclude later counts as the limit."""
    if name in own:
        with suppress(InvalidConfigError):
            parsed = GROUP_CONFIGS[name].parse(own[name])
            assert isinstance(parsed, int)
            smallest, largest = limit_keys(name)
            return max(node.number(smallest), min(parsed, node.number(largest)))
    default = group_synonym(name)
    assert default is not None
    return node.number(default)
