"""DescribeConfigs (api key 32) and ListConfigResources (api key 74, KIP-714 and KIP-1142).

DescribeConfigs answers every config of a topic, broker, group or client metrics subscription, and where its value comes
from (Kafka's ConfigHelper); the value of a secret is left out. A topic's configs take a millisecond, so a request for
many resources is answered in slices. Version 0 of ListConfigResources knows of client metrics subscriptions only, and
was named ListClientMetricsResources.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

from kquorum.metadata.configs.definition import ConfigDefinition, ConfigType, Update
from kquorum.metadata.configs.resolution import (
    SOURCE_CLIENT_METRICS,
    SOURCE_DEFAULT,
    SOURCE_DYNAMIC_DEFAULT_BROKER,
    SOURCE_GROUP,
    SOURCE_TOPIC,
    Found,
    NodeConfigs,
    broker_synonyms,
    group_synonym,
    topic_synonyms,
)
from kquorum.metadata.configs.table import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    definition_of,
    is_sensitive,
)
from kquorum.metadata.configs.validators import ConfigValue, InvalidConfigError
from kquorum.metadata.controller.configs.alter_configs import node_id_of
from kquorum.metadata.controller.requests import ApiError
from kquorum.metadata.controller.topics.names import check_topic_name
from kquorum.metadata.describe.describe_request import DescribeRequest
from kquorum.metadata.describe.slices import Elements, Steps, ordered
from kquorum.metadata.image.configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    CLUSTER_DEFAULT,
    GROUP,
    TOPIC,
    ConfigResource,
)
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.message_codec import encode
from kquorum.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.list_config_resources import ConfigResource as ListedConfigResource
from kquorum.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from kquorum.wire.protocol.arrays import array_length
from kquorum.wire.protocol.headers import EncodedBody


def list_config_resources(question: DescribeRequest) -> ListConfigResourcesResponse | Elements:
    request: ListConfigResourcesRequest = question.body
    supported = (CLIENT_METRICS,) if question.version == 0 else tuple(sorted(_NAMES))
    asked = tuple(dict.fromkeys(request.resource_types))
    types = asked or supported
    if not set(types) <= set(supported):
        return ListConfigResourcesResponse(error_code=ErrorCode.unsupported_version)
    return Elements(ListConfigResourcesResponse(), "config_resources", _listed(question.image, types))


def _listed(image: MetadataImage, types: Iterable[int]) -> Steps[ListedConfigResource]:
    for resource_type in types:
        for name in ordered(_NAMES[resource_type](image), key=_NAME_ORDER.get(resource_type, str)):
            if name is None:
                yield None
            else:
                yield ListedConfigResource(resource_type=resource_type, resource_name=name)


def _topics(image: MetadataImage) -> Iterable[str]:
    return image.topics.by_name


def _brokers(image: MetadataImage) -> Iterable[str]:
    """Fenced ones too: they are registered, and have their configs."""
    return map(str, image.cluster.brokers)


def _configured(resource_type: int) -> Callable[[MetadataImage], Iterable[str]]:
    """What is there only by being configured."""
    return lambda image: (each.name for each in image.configs.resources if each.type == resource_type)


_NAMES: Mapping[int, Callable[[MetadataImage], Iterable[str]]] = {
    TOPIC: _topics,
    BROKER: _brokers,
    BROKER_LOGGER: _brokers,
    CLIENT_METRICS: _configured(CLIENT_METRICS),
    GROUP: _configured(GROUP),
}


# Others by name.
_NAME_ORDER: Mapping[int, Callable[[str], Any]] = {BROKER: int, BROKER_LOGGER: int}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the request wants to be told besides the values."""

    synonyms: bool
    documentation: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """`value` counts; `found` is under which names and where values are set, the one that counts first."""

    resource_type: int
    name: str
    value: str | None
    found: Sequence[Found]
    read_only: bool = False

    def described(self, wanted: Wanted) -> DescribeConfigsResourceResult:
        definition = definition_of(self.resource_type, self.name)
        is_secret = is_sensitive(self.resource_type, self.name)
        source = self.found[0].source if self.found else SOURCE_DEFAULT
        shown = None if is_secret else shown_value(definition, self.value)
        synonyms = [
            DescribeConfigsSynonym(
                name=each.name, value=None if is_secret else each.value, source=each.source
            )
            for each in self.found
            if wanted.synonyms
        ]
        return DescribeConfigsResourceResult(
            name=self.name,
            value=shown,
            read_only=self.read_only,
            config_source=source,
            is_sensitive=is_secret,
            synonyms=tuple(synonyms),
            config_type=ConfigType.UNKNOWN if definition is None else definition.type,
            documentation=definition.documentation if definition and wanted.documentation else None,
        )

    def described_bytes(self, wanted: Wanted) -> int:
        """About what `described` takes in the answer."""
        size = _ENTRY_BYTES + len(self.name)
        definition = definition_of(self.resource_type, self.name)
        if definition and wanted.documentation:
            size += len(definition.documentation or "")
        if is_sensitive(self.resource_type, self.name):
            return size
        size += _text_bytes(self.value)
        if wanted.synonyms:
            size += sum(_SYNONYM_BYTES + len(each.name) + _text_bytes(each.value) for each in self.found)
        return size


def _text_bytes(text: str | None) -> int:
    if text is None:
        return 0
    return len(text) if text.isascii() else len(text.encode())


def shown_value(definition: ConfigDefinition | None, value: str | None) -> str | None:
    """As Kafka writes what it understood: `TRUE` is true, ` 5 ` is 5; anything else as it is."""
    if definition is None or value is None:
        return value
    try:
        return _text(definition.parse(value))
    except InvalidConfigError:
        return value


def _text(value: ConfigValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


# Of all resources of a request together: some 3,000 topics with all their configs. A resource may be named more than
# once, so a short request could otherwise ask for an answer without bound.
MOST_ENTRIES: Final = 100_000
# Of the answer. A value may have 32 KB, and stands in the answer a second time as a synonym, so the number of configs
# does not bound the bytes.
MOST_BYTES: Final = 20_000_000
# What an entry and a synonym take besides their texts, at most: numbers, flags, and the lengths of the texts.
_ENTRY_BYTES: Final = 24
_SYNONYM_BYTES: Final = 8
# A resource makes all its entries, also where the request asks for some of them only.
_ENTRIES_OF: Final = {
    TOPIC: len(TOPIC_CONFIGS),
    BROKER: len(BROKER_CONFIGS),
    CLIENT_METRICS: len(CLIENT_METRICS_CONFIGS),
    GROUP: len(GROUP_CONFIGS),
}


@dataclass(frozen=True, slots=True)
class Made:
    """`entries` are all that were made for the result, `size` about its bytes in the answer."""

    result: DescribeConfigsResult
    entries: int = 1
    size: int = 0


def _results(question: DescribeRequest, request: DescribeConfigsRequest) -> Iterator[Made]:
    """Each resource's result, made when it is asked for. Where `MOST_ENTRIES` or
    `MOST_BYTES` is exceeded, the resource that exceeds it and all resources behind it are refused."""
    wanted = Wanted(synonyms=request.include_synonyms, documentation=request.include_documentation)
    resources = iter(request.resources)
    total, left_bytes = 0, MOST_BYTES
    excess = ""
    for asked in resources:
        entries = _ENTRIES_OF.get(asked.resource_type, 1)
        total += entries
        if total > MOST_ENTRIES:
            excess = f"one answer has at most {MOST_ENTRIES} configs"
        else:
            result = _result(question, asked, wanted, left_bytes)
            if result is not None:
                left_bytes -= result.size
                yield replace(result, entries=entries)
                continue
            excess = f"one answer has at most {MOST_BYTES} bytes of configs"
        yield Made(_excessive(asked, excess), entries)
        break
    for asked in resources:
        yield Made(_excessive(asked, excess))


def _excessive(asked: DescribeConfigsResource, excess: str) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=ErrorCode.policy_violation,
        error_message=f"{excess}; ask for fewer resources",
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
    )


def _result(
    question: DescribeRequest, asked: DescribeConfigsResource, wanted: Wanted, most_bytes: int
) -> Made | None:
    """None if the result has more than `most_bytes`: it is measured before any of it is made."""
    resource = ConfigResource(asked.resource_type, asked.resource_name)
    error = ApiError(ErrorCode.none)
    entries: list[Entry] = []
    # No keys asked for are all of them, as null is.
    keys = frozenset(asked.configuration_keys or ())
    try:
        entries = [entry for entry in _entries(question, resource) if not keys or entry.name in keys]
    except ApiError as refused:
        error = refused
    size = sum(entry.described_bytes(wanted) for entry in entries)
    if size > most_bytes:
        return None
    result = DescribeConfigsResult(
        error_code=error.code,
        error_message=error.message or "",
        resource_type=resource.type,
        resource_name=resource.name,
        configs=tuple(entry.described(wanted) for entry in entries),
    )
    return Made(result, size=size)


def _entries(question: DescribeRequest, resource: ConfigResource) -> list[Entry]:
    describe = _DESCRIBERS.get(resource.type)
    if describe is None:
        raise ApiError(ErrorCode.invalid_request, f"Unsupported resource type: {resource.type}")
    own: Mapping[str, str] = question.image.configs.resources.get(resource, {})
    node = NodeConfigs.of(question.image, question.node_id, question.node_configs)
    return describe(question, resource, own, node)


def _topic(
    question: DescribeRequest, resource: ConfigResource, own: Mapping[str, str], node: NodeConfigs
) -> list[Entry]:
    check_topic_name(resource.name)
    if resource.name not in question.image.topics.by_name:
        raise ApiError(ErrorCode.unknown_topic_or_partition)
    entries: list[Entry] = []
    for name in _names(TOPIC_CONFIGS, own):
        definition = TOPIC_CONFIGS.get(name)
        value, _ = node.for_topic(name, definition.default if definition else None)
        synonyms = topic_synonyms(name)
        found = _of_base(synonyms[0].name, node.found(broker_synonyms(synonyms[0].name))) if synonyms else []
        if name in own:
            value = own[name]
            found = [Found(name, value, SOURCE_TOPIC), *found]
        entries.append(Entry(resource_type=TOPIC, name=name, value=value, found=found))
    return entries


def _names(definitions: Mapping[str, Any], *more: Mapping[str, str]) -> list[str]:
    """Keys that are not internal, and keys that are set but unknown to this version."""
    listed = {name for name, definition in definitions.items() if not definition.is_internal}
    return sorted(listed.union(*more))


def _of_base(name: str, found: list[Found]) -> list[Found]:
    """Kafka leaves out what stands before the config itself: the override of a listener, the older key."""
    first = next((index for index, each in enumerate(found) if each.name == name), len(found))
    return found[first:]


def _broker(
    question: DescribeRequest, resource: ConfigResource, own: Mapping[str, str], node: NodeConfigs
) -> list[Entry]:
    if resource.name == CLUSTER_DEFAULT:
        return [_cluster_entry(name, node) for name in sorted(own)]
    asked_id = _node_id(resource.name)
    if asked_id != question.node_id:
        reason = f"Unexpected broker id, expected {question.node_id} or empty string, but received {asked_id}"
        raise ApiError(ErrorCode.invalid_request, reason)
    return [_broker_entry(name, node) for name in _names(BROKER_CONFIGS, node.static, node.cluster, own)]


def _node_id(name: str) -> int:
    node_id = node_id_of(name)
    if node_id is None:
        raise ApiError(ErrorCode.invalid_request, f"Broker id must be an integer, but it is: {name}")
    return node_id


def _cluster_entry(name: str, node: NodeConfigs) -> Entry:
    found = _of_base(name, node.found(broker_synonyms(name)))
    found = [each for each in found if each.source == SOURCE_DYNAMIC_DEFAULT_BROKER]
    return Entry(
        resource_type=BROKER,
        name=name,
        value=node.cluster[name],
        found=found,
        read_only=_is_read_only(name),
    )


def _broker_entry(name: str, node: NodeConfigs) -> Entry:
    found = node.found((name,))
    synonyms = _of_base(name, node.found(broker_synonyms(name)))
    return Entry(
        resource_type=BROKER,
        name=name,
        value=found[0].value if found else None,
        found=synonyms,
        read_only=_is_read_only(name),
    )


def _is_read_only(name: str) -> bool:
    """A key with a listener's prefix is shown as read-only, as by Kafka, even if the key itself is not."""
    definition = BROKER_CONFIGS.get(name)
    return definition is None or definition.update is Update.READ_ONLY


def _group(
    _question: DescribeRequest, resource: ConfigResource, own: Mapping[str, str], node: NodeConfigs
) -> list[Entry]:
    if not resource.name:
        raise ApiError(ErrorCode.invalid_request, "Group name must not be empty")
    entries: list[Entry] = []
    for name in _names(GROUP_CONFIGS, own):
        synonym = group_synonym(name)
        definition = GROUP_CONFIGS.get(name)
        default = definition.default if definition else None
        found = node.found((synonym,)) if synonym else []
        if not found and default is not None:
            found = [Found(name, default, SOURCE_DEFAULT)]
        if name in own:
            found = [Found(name, own[name], SOURCE_GROUP), *found]
        value = found[0].value if found else None
        entries.append(Entry(resource_type=GROUP, name=name, value=value, found=found))
    return entries


def _client_metrics(
    _question: DescribeRequest, resource: ConfigResource, own: Mapping[str, str], _node: NodeConfigs
) -> list[Entry]:
    if not resource.name:
        raise ApiError(ErrorCode.invalid_request, "Client metrics subscription name must not be empty")
    entries: list[Entry] = []
    for name in _names(CLIENT_METRICS_CONFIGS, own):
        definition = CLIENT_METRICS_CONFIGS.get(name)
        default = definition.default if definition else None
        # Unlike a group's, a default has no synonym (as in Kafka 4.3).
        found = [Found(name, own[name], SOURCE_CLIENT_METRICS)] if name in own else []
        entries.append(
            Entry(resource_type=CLIENT_METRICS, name=name, value=own.get(name, default), found=found)
        )
    return entries


def _logger(
    question: DescribeRequest, resource: ConfigResource, _own: Mapping[str, str], _node: NodeConfigs
) -> list[Entry]:
    """Log levels are not configs here, so a node has none to tell."""
    if not resource.name:
        raise ApiError(ErrorCode.invalid_request, "Broker id must not be empty")
    asked_id = _node_id(resource.name)
    if asked_id != question.node_id:
        reason = f"Unexpected broker id, expected {question.node_id} but received {asked_id}"
        raise ApiError(ErrorCode.invalid_request, reason)
    return []


_DESCRIBERS: Mapping[
    int, Callable[[DescribeRequest, ConfigResource, Mapping[str, str], NodeConfigs], list[Entry]]
] = {
    TOPIC: _topic,
    BROKER: _broker,
    BROKER_LOGGER: _logger,
    CLIENT_METRICS: _client_metrics,
    GROUP: _group,
}


# Of a slice: some 5 ms. A slice has a whole resource at least.
ENTRIES_AT_ONCE: Final = 300
BYTES_AT_ONCE: Final = 262_144
_THROTTLE_TIME_BYTES: Final = 4


def describe_configs(
    question: DescribeRequest, refused: Sequence[DescribeConfigsResult] = ()
) -> Iterator[EncodedBody | None]:
    """None after each slice, and last the response. All of it is of the question's one image. The results of `refused`
    follow those of the request's resources."""
    request: DescribeConfigsRequest = question.body
    version = question.version
    is_flexible = DescribeConfigsResponse.is_flexible(version)
    start, end = _around_results(version, is_flexible=is_flexible)
    parts: list[bytes] = []
    part: list[DescribeConfigsResult] = []
    entries, size, total = 0, 0, len(request.resources) + len(refused)
    for number, made in enumerate(chain(_results(question, request), map(Made, refused)), 1):
        part.append(made.result)
        entries += made.entries
        size += made.size
        if (entries >= ENTRIES_AT_ONCE or size >= BYTES_AT_ONCE) and number < total:
            parts.append(_encoded_results(part, version, is_flexible=is_flexible))
            question.note_made(len(parts[-1]))
            part, entries, size = [], 0, 0
            yield None
    parts.append(_encoded_results(part, version, is_flexible=is_flexible))
    count = array_length(total, is_flexible=is_flexible)
    yield EncodedBody(b"".join((start, count, *parts, end)))


def _around_results(version: int, *, is_flexible: bool) -> tuple[bytes, bytes]:
    """What stands before the array of the results, and behind it."""
    encoded = encode(DescribeConfigsResponse(), version)
    return encoded[:_THROTTLE_TIME_BYTES], encoded[len(encoded) - (1 if is_flexible else 0) :]


def _encoded_results(results: Sequence[DescribeConfigsResult], version: int, *, is_flexible: bool) -> bytes:
    encoded = encode(DescribeConfigsResponse(results=tuple(results)), version)
    begin = _THROTTLE_TIME_BYTES + len(array_length(len(results), is_flexible=is_flexible))
    return encoded[begin : len(encoded) - (1 if is_flexible else 0)]
