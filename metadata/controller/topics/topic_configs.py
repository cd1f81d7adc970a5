"""Which configs a topic may have, and its effective configs. A Kafka broker that replays this log fails on a name or
value that it does not know, so no other may be written."""

from collections.abc import Mapping

from kquorum.metadata.configs.resolution import SOURCE_TOPIC, NodeConfigs
from kquorum.metadata.configs.rules import check_topic_configs
from kquorum.metadata.configs.table import TOPIC_CONFIGS
from kquorum.metadata.configs.validators import InvalidConfigError
from kquorum.metadata.controller.requests import ApiError
from kquorum.metadata.image.configs import TOPIC, ConfigResource
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.messages.create_topics import CreatableTopicConfigs
from kquorum.wire.messages.error_codes import ErrorCode


def check_new_topic_configs(
    image: MetadataImage, configs: Mapping[str, str], node_id: int, static: Mapping[str, str]
) -> None:
    """Raises ApiError INVALID_CONFIG for an invalid config of a new topic, alone or together with others."""
    try:
        check_topic_configs(configs, {}, NodeConfigs.of(image, node_id, static))
    except InvalidConfigError as error:
        raise ApiError(ErrorCode.invalid_config, str(error)) from None


def effective_topic_configs(
    image: MetadataImage,
    topic_name: str,
    node_id: int,
    static: Mapping[str, str],
    own: Mapping[str, str] | None = None,
) -> tuple[CreatableTopicConfigs, ...]:
    """Every config of a topic as CreateTopics returns it, sorted by name. `static` are the keys of node `node_id`'s
    config file. `own` are the topic's configs if it is not in the image yet. Precedence: the topic's value, the node's,
    the cluster's, the config file's, the default."""
    node = NodeConfigs.of(image, node_id, static)
    values: Mapping[str, str] = (
        image.configs.resources.get(ConfigResource(TOPIC, topic_name), {}) if own is None else own
    )
    entries: list[CreatableTopicConfigs] = []
    for name, definition in sorted(TOPIC_CONFIGS.items()):
        if definition.is_internal:
            continue
        value, source = node.for_topic(name, definition.default)
        if name in values:
            value, source = values[name], SOURCE_TOPIC
        entries.append(
            CreatableTopicConfigs(
                name=name,
                value=None if definition.is_sensitive else value,
                config_source=source,
                is_sensitive=definition.is_sensitive,
            )
        )
    return tuple(entries)
