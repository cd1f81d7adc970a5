"""DescribeTopicPartitions (api key 75, KIP-966): topics by name, in pages of so many partitions, with their ELR."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kquorum.broker.apis.api import Authorized, Local
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.client_access import UNLIMITED, ClientAccess
from kquorum.broker.metadata_cache.cache import leader_view, offline_replicas
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.partition_state import PartitionState
from kquorum.metadata.image.topics import TopicImage
from kquorum.metadata.topic_names import is_internal_topic, is_legal_topic_name
from kquorum.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    RequestCursor,
    ResponseCursor,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey

# Default of max.request.partition.size.limit.
MAX_PARTITIONS_PER_RESPONSE = 2000


def _handle(
    context: RequestContext, request: DescribeTopicPartitionsRequest, services: BrokerServices
) -> DescribeTopicPartitionsResponse:
    most_partitions = services.configs().number("max.request.partition.size.limit")
    image, access = services.cache.image, services.client_access(context)
    return handle_describe_topic_partitions(request, image, context.listener_name, access, most_partitions)


# DESCRIBE on each topic.
API: Final = Local(ApiKey.DESCRIBE_TOPIC_PARTITIONS, Authorized.IN_HANDLER, handle=_handle, is_pure=True)


def handle_describe_topic_partitions(
    request: DescribeTopicPartitionsRequest,
    image: MetadataImage,
    listener_name: str,
    access: ClientAccess = UNLIMITED,
    most_partitions: int = MAX_PARTITIONS_PER_RESPONSE,
) -> DescribeTopicPartitionsResponse:
    """The cursor of the answer points to the first partition left out, or to the next topic when the page is full."""
    limit = max(1, min(request.response_partition_limit, most_partitions))
    # Topics before the cursor were answered, and the partitions before it of the topic that it names.
    start = request.cursor
    lists_all = not request.topics
    names = (
        access.describable(image.topics) if lists_all else sorted({topic.name for topic in request.topics})
    )
    if start is not None:
        if start.partition_index < 0 or (not lists_all and start.topic_name not in names):
            # Kafka's broker answers the whole request with this error, so each entry as often as it came.
            return DescribeTopicPartitionsResponse(
                topics=tuple(
                    _without_partitions(topic.name, ErrorCode.invalid_request) for topic in request.topics
                )
            )
        names = [name for name in names if name >= start.topic_name]
    return _page(image, listener_name, names, start, limit, lists_all, access)


def _page(
    image: MetadataImage,
    listener_name: str,
    names: Sequence[str],
    start: RequestCursor | None,
    limit: int,
    lists_all: bool,
    access: ClientAccess,
) -> DescribeTopicPartitionsResponse:
    """Topics that may not be described come last, each with its refusal."""
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    refused: list[DescribeTopicPartitionsResponseTopic] = []
    remaining = limit
    for name in names:
        if not lists_all and not access.may_describe(name):
            # Nothing in it says whether there is such a topic.
            refused.append(
                DescribeTopicPartitionsResponseTopic(
                    error_code=ErrorCode.topic_authorization_failed, name=name
                )
            )
            continue
        if remaining == 0:
            return _answer(topics + refused, name, 0)
        topic = image.topics.by_name.get(name)
        if topic is None:
            if not lists_all:
                topics.append(_unknown(name, access.topic_operations(name)))
            continue
        first = start.partition_index if start is not None and start.topic_name == name else 0
        last = min(len(topic.partitions), first + remaining)
        topics.append(_known(image, listener_name, topic, range(first, last), access.topic_operations(name)))
        if last < len(topic.partitions):
            return _answer(topics + refused, name, last)
        remaining -= max(0, last - first)
    return DescribeTopicPartitionsResponse(topics=tuple(topics + refused))


def _answer(
    topics: Sequence[DescribeTopicPartitionsResponseTopic], next_topic: str, next_partition: int
) -> DescribeTopicPartitionsResponse:
    cursor = ResponseCursor(topic_name=next_topic, partition_index=next_partition)
    return DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=cursor)


def _unknown(name: str, operations: int) -> DescribeTopicPartitionsResponseTopic:
    is_legal = is_legal_topic_name(name)
    error = ErrorCode.unknown_topic_or_partition if is_legal else ErrorCode.invalid_topic_exception
    return replace(_without_partitions(name, error), topic_authorized_operations=operations)


def _without_partitions(name: str, error: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=error, name=name, is_internal=is_internal_topic(name)
    )


def _known(
    image: MetadataImage, listener_name: str, topic: TopicImage, indexes: range, operations: int
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal_topic(topic.name),
        partitions=tuple(
            _partition(image, listener_name, index, state)
            for index in indexes
            if (state := topic.partitions.get(index)) is not None
        ),
        topic_authorized_operations=operations,
    )


def _partition(
    image: MetadataImage, listener_name: str, index: int, state: PartitionState
) -> DescribeTopicPartitionsResponsePartition:
    """Without an error of its own: leader id -1 says that the leader is missing."""
    return DescribeTopicPartitionsResponsePartition(
        partition_index=index,
        leader_id=leader_view(image, state, listener_name).leader_id,
        leader_epoch=state.leader_epoch,
        replica_nodes=state.replicas,
        isr_nodes=state.isr,
        eligible_leader_replicas=state.elr,
        last_known_elr=state.last_known_elr,
        offline_replicas=offline_replicas(image, state, listener_name),
    )
