"""Which broker configs may be changed while brokers run, and to what (KIP-226, Kafka's DynamicBrokerConfig).

Keys that nobody knows may be those of plugins, so they are taken as they are.
"""

from collections.abc import Iterable, Mapping

from metadata.configs.broker_rest import READ_ONLY_KEYS
from metadata.configs.definition import ConfigDefinition, Update
from metadata.configs.table import BROKER_CONFIGS, without_listener
from metadata.configs.validators import InvalidConfigRequestError

# Each listener has its own keys and certificates, so a change names the listener.
_LISTENER_PREFIXES = ("ssl.key.", "ssl.keystore.", "ssl.truststore.")


def check_broker_configs(configs: Mapping[str, str], *, is_cluster_default: bool) -> None:
    """Raises InvalidConfigRequestError (KAFKA-13609: not InvalidConfigError) or InvalidConfigError."""
    known = {name: BROKER_CONFIGS.get(name) for name in configs}
    _refuse(
        "Cannot update these configs dynamically",
        (name for name, one in known.items() if _is_read_only(name, one)),
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


def _is_read_only(name: str, definition: ConfigDefinition | None) -> bool:
    return name in READ_ONLY_KEYS or (definition is not None and definition.update is Update.READ_ONLY)


def _is_per_broker(name: str, definition: ConfigDefinition | None) -> bool:
    return without_listener(name) != name or (
        definition is not None and definition.update is Update.PER_BROKER
    )


def _refuse(words: str, names: Iterable[str]) -> None:
    refused = sorted(names)
    if refused:
        raise InvalidConfigRequestError(f"{words}: [{', '.join(refused)}]")
