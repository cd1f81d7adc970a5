"""DescribeTopicPartitions (api key 75, KIP-966): topics by name, in pages of so many partitions, with their ELR."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from kio.schema.errors import ErrorCode

from kquorum.broker.apis.api import Authorized, Local
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.client_access import UNLIMITED, ClientAccess
from kquorum.broker.metadata_cache.answers import ZERO_UUID
from kquorum.broker.metadata_cache.cache import leader_view, offline_replicas
from kquorum.metadata.controller.requests import Values
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.partition_state import PartitionState
from kquorum.metadata.image.topics import TopicImage
from kquorum.metadata.topic_names import is_internal_topic, is_legal_topic_name
from kquorum.wire.protocol.api_keys import ApiKey

# Default of max.request.partition.size.limit.
MAX_PARTITIONS_PER_RESPONSE = 2000


@dataclass(frozen=True, slots=True)
class _Start:
    """The cursor: topics before `topic_name` were answered, and its partitions before `partition_index`."""

    topic_name: str
    partition_index: int


def _handle(context: RequestContext, request: Any, services: BrokerServices) -> Values:
    most_partitions = services.configs().number("max.request.partition.size.limit")
    image, access = services.cache.image, services.client_access(context)
    return handle_describe_topic_partitions(request, image, context.listener_name, access, most_partitions)


# DESCRIBE on each topic.
API: Final = Local(ApiKey.DESCRIBE_TOPIC_PARTITIONS, Authorized.IN_HANDLER, handle=_handle, is_pure=True)


def handle_describe_topic_partitions(
    request: Any,
    image: MetadataImage,
    listener_name: str,
    access: ClientAccess = UNLIMITED,
    most_partitions: int = MAX_PARTITIONS_PER_RESPONSE,
) -> Values:
    """The cursor of the answer points to the first partition left out, or to the next topic when the page is full."""
    limit = max(1, min(request.response_partition_limit, most_partitions))
    start = _start_of(request)
    lists_all = not request.topics
    names = (
        access.describable(image.topics) if lists_all else sorted({topic.name for topic in request.topics})
    )
    if start is not None:
        if start.partition_index < 0 or (not lists_all and start.topic_name not in names):
            # Kafka's broker answers the whole request with this error, so each entry as often as it came.
            refused = [_without_partitions(topic.name, ErrorCode.invalid_request) for topic in request.topics]
            return {"topics": refused, "next_cursor": None}
        names = [name for name in names if name >= start.topic_name]
    return _page(image, listener_name, names, start, limit, lists_all, access)


def _start_of(request: Any) -> _Start | None:
    cursor = request.cursor
    return None if cursor is None else _Start(cursor.topic_name, cursor.partition_index)


def _page(
    image: MetadataImage,
    listener_name: str,
    names: Sequence[str],
    start: _Start | None,
    limit: int,
    lists_all: bool,
    access: ClientAccess,
) -> Values:
    """Topics that may not be described come last, each with its refusal."""
    topics: list[Values] = []
    refused: list[Values] = []
    remaining = limit
    for name in names:
        if not lists_all and not access.may_describe(name):
            entry = _without_partitions(name, ErrorCode.topic_authorization_failed)
            refused.append({**entry, "is_internal": False})
            continue
        if remaining == 0:
            return _answer(topics + refused, name, 0)
        topic = image.topics.by_name.get(name)
        if topic is None:
            if not lists_all:
                topics.append(
                    {**_unknown(name), "topic_authorized_operations": access.topic_operations(name)}
                )
            continue
        first = start.partition_index if start is not None and start.topic_name == name else 0
        last = min(len(topic.partitions), first + remaining)
        known = _known(image, listener_name, topic, range(first, last))
        topics.append({**known, "topic_authorized_operations": access.topic_operations(name)})
        if last < len(topic.partitions):
            return _answer(topics + refused, name, last)
        remaining -= max(0, last - first)
    return {"topics": topics + refused, "next_cursor": None}


def _answer(topics: Sequence[Values], next_topic: str, next_partition: int) -> Values:
    cursor = {"topic_name": next_topic, "partition_index": next_partition}
    return {"topics": topics, "next_cursor": cursor}


def _unknown(name: str) -> Values:
    is_legal = is_legal_topic_name(name)
    return _without_partitions(
        name, ErrorCode.unknown_topic_or_partition if is_legal else ErrorCode.invalid_topic_exception
    )


def _without_partitions(name: str, error: ErrorCode) -> Values:
    return {
        "error_code": error,
        "name": name,
        "topic_id": ZERO_UUID,
        "is_internal": is_internal_topic(name),
        "partitions": (),
    }


def _known(image: MetadataImage, listener_name: str, topic: TopicImage, indexes: range) -> Values:
    return {
        "error_code": ErrorCode.none,
        "name": topic.name,
        "topic_id": topic.id,
        "is_internal": is_internal_topic(topic.name),
        "partitions": [
            _partition(image, listener_name, index, state)
            for index in indexes
            if (state := topic.partitions.get(index)) is not None
        ],
    }


def _partition(image: MetadataImage, listener_name: str, index: int, state: PartitionState) -> Values:
    """Without an error of its own: leader id -1 says that the leader is missing."""
    return {
        "error_code": ErrorCode.none,
        "partition_index": index,
        "leader_id": leader_view(image, state, listener_name).leader_id,
        "leader_epoch": state.leader_epoch,
        "replica_nodes": state.replicas,
        "isr_nodes": state.isr,
        "eligible_leader_replicas": state.elr,
        "last_known_elr": state.last_known_elr,
        "offline_replicas": offline_replicas(image, state, listener_name),
    }
