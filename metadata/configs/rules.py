"""What configs must fulfil, each and together: of topics (Kafka's LogConfig), of groups (GroupConfig), of brokers
(DynamicBrokerConfig, KIP-226) and of client metrics subscriptions (ClientMetricsConfigs, KIP-714)."""

import re
from collections.abc import Iterable, Mapping
from re import _parser  # type: ignore[attr-defined]

from kquorum.metadata.configs.definition import ConfigDefinition, Update
from kquorum.metadata.configs.resolution import NodeConfigs, group_synonym
from kquorum.metadata.configs.table import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    without_listener,
)
from kquorum.metadata.configs.validators import (
    ConfigValue,
    InvalidConfigError,
    InvalidConfigRequestError,
    invalid_value,
)

_REMOTE = "remote.storage.enable"
_COPY_DISABLE = "remote.log.copy.disable"
_DELETE_ON_DISABLE = "remote.log.delete.on.disable"
_AS_RETENTION = -2


def check_topic_configs(configs: Mapping[str, str], previous: Mapping[str, str], node: NodeConfigs) -> None:
    """Raises InvalidConfigError. `previous` are those before the change; `node` says what the topic leaves open."""
    for name in configs:
        if name not in TOPIC_CONFIGS:
            raise InvalidConfigError(f"Unknown topic config name: {name}")
    values = {
        name: definition.parse(configs[name]) for name, definition in TOPIC_CONFIGS.items() if name in configs
    }
    _check_lags(_with_defaults(values, node, ("min.compaction.lag.ms", "max.compaction.lag.ms")))
    if values.get(_REMOTE):
        _check_tiered(values, node)
    else:
        was_tiered = previous.get(_REMOTE, "false").strip().lower() == "true"
        if was_tiered and not values.get(_DELETE_ON_DISABLE):
            raise InvalidConfigError(
                "It is invalid to disable remote storage without deleting remote data. If you want to keep the remote "
                "data and turn to read only, please set `remote.storage.enable=true,remote.log.copy.disable=true`. If "
                "you want to disable remote storage and delete all remote data, please set "
                "`remote.storage.enable=false,remote.log.delete.on.disable=true`."
            )


def _with_defaults(
    values: Mapping[str, ConfigValue], node: NodeConfigs, names: tuple[str, ...]
) -> dict[str, int]:
    """Numbers; what the topic leaves open is as the node has it."""
    return {name: _topic_number(values, node, name) for name in names}


def _topic_number(values: Mapping[str, ConfigValue], node: NodeConfigs, name: str) -> int:
    definition = TOPIC_CONFIGS[name]
    value = values.get(name)
    if value is None:
        inherited, _ = node.for_topic(name, definition.default)
        assert inherited is not None
        value = definition.parse(inherited)
    assert isinstance(value, int)
    return value


def _check_lags(lags: Mapping[str, int]) -> None:
    low, high = lags["min.compaction.lag.ms"], lags["max.compaction.lag.ms"]
    if low > high:
        raise InvalidConfigError(
            f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})"
        )


def _check_tiered(values: Mapping[str, ConfigValue], node: NodeConfigs) -> None:
    if node.value("remote.log.storage.system.enable") != "true":
        raise InvalidConfigError(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    definition = TOPIC_CONFIGS["cleanup.policy"]
    policy = values.get("cleanup.policy")
    if policy is None:
        policy = definition.parse(node.for_topic("cleanup.policy", definition.default)[0] or "")
    if policy not in ((), ("delete",)):
        raise InvalidConfigError(
            "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being an empty list."
        )
    for unit in ("bytes", "ms"):
        _check_local(values, node, unit)
    if values.get(_COPY_DISABLE):
        for unit in ("bytes", "ms"):
            _check_read_only(values, node, unit)


def _retentions(values: Mapping[str, ConfigValue], node: NodeConfigs, unit: str) -> tuple[int, int]:
    return _topic_number(values, node, f"retention.{unit}"), _topic_number(
        values, node, f"local.retention.{unit}"
    )


def _check_local(values: Mapping[str, ConfigValue], node: NodeConfigs, unit: str) -> None:
    """What stays on the broker is part of what is kept at all."""
    name = f"retention.{unit}"
    kept, local = _retentions(values, node, unit)
    is_unlimited = kept == -1 if unit == "ms" else kept <= -1
    if is_unlimited or local == _AS_RETENTION:
        return
    if local == -1:
        problem = f"Value must not be -1 as {name} value is set as {kept}."
        raise invalid_value(f"local.{name}", str(local), problem)
    if local > kept:
        raise invalid_value(
            f"local.{name}", str(local), f"Value must not be more than {name} property value: {kept}"
        )


def _check_read_only(values: Mapping[str, ConfigValue], node: NodeConfigs, unit: str) -> None:
    kept, local = _retentions(values, node, unit)
    if local not in (_AS_RETENTION, kept):
        raise InvalidConfigError(
            f"When `remote.log.copy.disable` is set to true, the `local.retention.{unit}` and `retention.{unit}` must "
            "be set to the identical value because there will be no more logs copied to the remote storage."
        )


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
    if _group_number(session, numbers, node) <= _group_number(heartbeat, numbers, node):
        raise InvalidConfigError(f"{session} must be greater than {heartbeat}")


def _group_number(name: str, numbers: Mapping[str, int], node: NodeConfigs) -> int:
    if name in numbers:
        return numbers[name]
    synonym = group_synonym(name)
    assert synonym is not None
    return node.number(synonym)


# Each listener has its own keys and certificates, so a change names the listener.
_LISTENER_PREFIXES = ("ssl.key.", "ssl.keystore.", "ssl.truststore.")


def check_broker_configs(configs: Mapping[str, str], *, is_cluster_default: bool) -> None:
    """Raises InvalidConfigRequestError (KAFKA-13609: not InvalidConfigError) or InvalidConfigError.

    A key that is not in the table may be a plugin's, so the broker takes it as it is.
    """
    known = {name: BROKER_CONFIGS.get(name) for name in configs}
    _refuse(
        "Cannot update these configs dynamically",
        (name for name, one in known.items() if one is not None and one.update is Update.READ_ONLY),
    )
    _refuse(
        "These security configs can be dynamically updated only per-listener using the listener prefix",
        (name for name, one in known.items() if one is not None and name.startswith(_LISTENER_PREFIXES)),
    )
    for name, text in configs.items():
        definition = BROKER_CONFIGS.get(without_listener(name))
        if definition is not None and definition.update is not Update.READ_ONLY:
            definition.parse(text)
    if is_cluster_default:
        _refuse(
            "Cannot update these configs at default cluster level, broker id must be specified",
            (name for name, one in known.items() if _is_per_broker(name, one)),
        )


def _is_per_broker(name: str, definition: ConfigDefinition | None) -> bool:
    return without_listener(name) != name or (
        definition is not None and definition.update is Update.PER_BROKER
    )


def _refuse(words: str, names: Iterable[str]) -> None:
    refused = sorted(names)
    if refused:
        raise InvalidConfigRequestError(f"{words}: [{', '.join(refused)}]")


INTERVAL_MS = (100, 3_600_000)
_MATCH_KEYS = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


def check_client_metrics_configs(name: str, configs: Mapping[str, str]) -> None:
    """Raises InvalidConfigError, or InvalidConfigRequestError where Kafka calls the request wrong."""
    if not name:
        raise InvalidConfigRequestError("Subscription name can't be empty")
    for key in configs:
        if key not in CLIENT_METRICS_CONFIGS:
            raise InvalidConfigRequestError(f"Unknown client metrics configuration: {key}")
    values = {key: CLIENT_METRICS_CONFIGS[key].parse(text) for key, text in configs.items()}
    interval = values.get("interval.ms")
    if isinstance(interval, int) and not INTERVAL_MS[0] <= interval <= INTERVAL_MS[1]:
        raise InvalidConfigRequestError(
            f"Invalid value {interval} for interval.ms, interval must be between 100 and 3600000 (1 hour)"
        )
    match = values.get("match", ())
    assert isinstance(match, tuple)
    for pattern in match:
        _check_pattern(pattern)


def _check_pattern(pattern: str) -> None:
    parts = pattern.split("=")
    if len(parts) == 2 and parts[0].strip() in _MATCH_KEYS:
        try:
            # To compile it takes a second for 200 characters, and nothing is ever matched with it here.
            _parser.parse(parts[1].strip())
        except (
            re.error,
            RecursionError,
            OverflowError,
            ValueError,
        ):  # ValueError: a number of too many digits
            pass
        else:
            return
    raise InvalidConfigError(f"Illegal client matching pattern: {pattern}")
