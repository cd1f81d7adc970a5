"""What the configs of a topic must fulfil, each and together (Kafka's LogConfig)."""

from collections.abc import Mapping

from metadata.configs.resolution import NodeConfigs
from metadata.configs.table import TOPIC_CONFIGS
from metadata.configs.validators import InvalidConfigError, invalid_value
from metadata.configs.values import ConfigValue

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
    return {name: _number(values, node, name) for name in names}


def _number(values: Mapping[str, ConfigValue], node: NodeConfigs, name: str) -> int:
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
    return _number(values, node, f"retention.{unit}"), _number(values, node, f"local.retention.{unit}")


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
