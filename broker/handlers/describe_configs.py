"""DescribeConfigs (api key 32), answered from the image: exactly the configs that were set at run time.

A default is not listed, for this broker applies none of the topic or broker defaults; saying "retention.ms = 7 days"
would be an invention. Secrets are withheld, as in Kafka.
"""

from collections.abc import Collection, Mapping
from typing import Any

from kio.schema.errors import ErrorCode

from broker.handlers.metadata import Values
from broker.topic_names import is_legal_topic_name
from metadata.image.configs import BROKER, CLUSTER_DEFAULT, TOPIC, ConfigResource
from metadata.image.image import MetadataImage
from wire.sensitive_configs import is_sensitive_config

# DescribeConfigsResponse, ConfigSource.
SOURCE_TOPIC = 1
SOURCE_DYNAMIC_BROKER = 2
SOURCE_DYNAMIC_DEFAULT_BROKER = 3
TYPE_STRING = 2


def handle_describe_configs(request: Any, image: MetadataImage) -> Values:
    return {"results": [_result(image, resource) for resource in request.resources]}


def _result(image: MetadataImage, asked: Any) -> Values:
    resource = ConfigResource(int(asked.resource_type), asked.resource_name)
    refusal = _refusal(image, resource)
    values: Mapping[str, str] = {} if refusal else image.configs.resources.get(resource, {})
    error, message = refusal or (ErrorCode.none, None)
    return {
        "error_code": error,
        "error_message": message,
        "resource_type": resource.type,
        "resource_name": resource.name,
        "configs": [
            _config(resource, key, values[key]) for key in _asked_keys(values, asked.configuration_keys)
        ],
    }


def _asked_keys(values: Mapping[str, str], asked: Collection[str] | None) -> list[str]:
    return sorted(key for key in values if asked is None or key in asked)


def _refusal(image: MetadataImage, resource: ConfigResource) -> tuple[ErrorCode, str] | None:
    if resource.type == TOPIC:
        if not is_legal_topic_name(resource.name):
            return ErrorCode.invalid_topic_exception, f"{resource.name!r} is not a lawful topic name"
        if resource.name not in image.topics.by_name:
            return ErrorCode.unknown_topic_or_partition, f"there is no topic '{resource.name}'"
        return None
    if resource.type == BROKER:
        if resource.name != CLUSTER_DEFAULT and not resource.name.isdecimal():
            return ErrorCode.invalid_request, f"{resource.name!r} is not a broker id"
        return None
    return ErrorCode.invalid_request, f"configs of resource type {resource.type} are not kept here"


def _config(resource: ConfigResource, key: str, value: str) -> Values:
    is_sensitive = is_sensitive_config(key)
    source = _source(resource)
    shown = None if is_sensitive else value
    return {
        "name": key,
        "value": shown,
        "read_only": False,
        "config_source": source,
        "is_sensitive": is_sensitive,
        "synonyms": ({"name": key, "value": shown, "source": source},),
        "config_type": TYPE_STRING,
        "documentation": None,
    }


def _source(resource: ConfigResource) -> int:
    if resource.type == TOPIC:
        return SOURCE_TOPIC
    return SOURCE_DYNAMIC_DEFAULT_BROKER if resource.name == CLUSTER_DEFAULT else SOURCE_DYNAMIC_BROKER
