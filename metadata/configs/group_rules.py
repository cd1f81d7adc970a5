"""What the configs of a group must fulfil, each and together: the brokers set the limits (Kafka's GroupConfig)."""

from collections.abc import Mapping

from metadata.configs.resolution import NodeConfigs, group_synonym
from metadata.configs.table import BROKER_CONFIGS, GROUP_CONFIGS
from metadata.configs.validators import InvalidConfigError

_KINDS = ("consumer", "share", "streams")
# The brokers have a smallest and a largest value for these.
_LIMITED = (
    *(
        f"{kind}.{what}"
        for kind in _KINDS
        for what in ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")
    ),
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
)


def check_group_configs(configs: Mapping[str, str], node: NodeConfigs) -> None:
    """Raises InvalidConfigError."""
    for name in configs:
        if name not in GROUP_CONFIGS:
            raise InvalidConfigError(f"Unknown group config name: {name}")
    numbers: dict[str, int] = {}
    for name, definition in GROUP_CONFIGS.items():
        if name in configs:
            value = definition.parse(configs[name])
            if isinstance(value, int):
                numbers[name] = value
    for name in _LIMITED:
        if name in numbers:
            _check_limits(name, numbers[name], node)
    standbys = numbers.get("streams.num.standby.replicas", 0)
    if standbys > node.number("group.streams.max.standby.replicas"):
        raise InvalidConfigError(
            "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas"
        )
    for kind in _KINDS:
        _check_session(kind, numbers, node)


def _check_limits(name: str, value: int, node: NodeConfigs) -> None:
    smallest, largest = limit_keys(name)
    if value < node.number(smallest):
        raise InvalidConfigError(f"{name} must be greater than or equal to {smallest}")
    if value > node.number(largest):
        raise InvalidConfigError(f"{name} must be less than or equal to {largest}")


def limit_keys(name: str) -> tuple[str, str]:
    """The broker's keys for the smallest and the largest value."""
    kind, _, what = name.partition(".")
    keys = f"group.{kind}.min.{what}", f"group.{kind}.max.{what}"
    assert all(key in BROKER_CONFIGS for key in keys), keys
    return keys


def _check_session(kind: str, numbers: Mapping[str, int], node: NodeConfigs) -> None:
    session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
    if session not in numbers and heartbeat not in numbers:
        return
    if _number(session, numbers, node) <= _number(heartbeat, numbers, node):
        raise InvalidConfigError(f"{session} must be greater than {heartbeat}")


def _number(name: str, numbers: Mapping[str, int], node: NodeConfigs) -> int:
    if name in numbers:
        return numbers[name]
    synonym = group_synonym(name)
    assert synonym is not None
    return node.number(synonym)
