"""ListConfigResources (api key 74, KIP-714 and KIP-1142): what can have configs. Version 0 knows of client metrics
subscriptions only, and was named ListClientMetricsResources."""

from collections.abc import Callable, Iterable, Mapping

from kio.schema.errors import ErrorCode

from metadata.describe.describe_request import DescribeRequest
from metadata.image.configs import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from metadata.image.image import MetadataImage
from wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


def list_config_resources(question: DescribeRequest) -> ListConfigResourcesResponse:
    request: ListConfigResourcesRequest = question.body
    supported = (CLIENT_METRICS,) if question.version == 0 else tuple(sorted(_NAMES))
    asked = tuple(dict.fromkeys(request.resource_types))
    types = asked or supported
    if not set(types) <= set(supported):
        return ListConfigResourcesResponse(error_code=ErrorCode.unsupported_version)
    resources = [
        ConfigResource(resource_type=resource_type, resource_name=name)
        for resource_type in types
        for name in _NAMES[resource_type](question.image)
    ]
    return ListConfigResourcesResponse(config_resources=tuple(resources))


def _topics(image: MetadataImage) -> Iterable[str]:
    return sorted(image.topics.by_name)


def _brokers(image: MetadataImage) -> Iterable[str]:
    """Fenced ones too: they are registered, and have their configs."""
    return map(str, sorted(image.cluster.brokers))


def _configured(resource_type: int) -> Callable[[MetadataImage], Iterable[str]]:
    """What is there only by being configured."""
    return lambda image: sorted(each.name for each in image.configs.resources if each.type == resource_type)


_NAMES: Mapping[int, Callable[[MetadataImage], Iterable[str]]] = {
    TOPIC: _topics,
    BROKER: _brokers,
    BROKER_LOGGER: _brokers,
    CLIENT_METRICS: _configured(CLIENT_METRICS),
    GROUP: _configured(GROUP),
}
