"""DescribeProducers (api key 61, KIP-664): the producers that a partition's log remembers, and their transactions.

kafka-transactions asks for them to find a transaction that hangs. Any replica answers. An answer has MOST_PRODUCERS at
most, those with a transaction first: any client that may produce can make a log remember hundreds of thousands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kquorum.broker.apis.api import Advance, Authorized, Sliced
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.log.errors import LogError
from kquorum.metadata.authorizer.codes import Operation
from kquorum.metadata.topic_names import why_illegal
from kquorum.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import EncodedBody, encode_body

MOST_PRODUCERS: Final = 10_000
# Partitions and producers.
_IN_A_SLICE: Final = 500


def begin_describe_producers(
    context: RequestContext, request: DescribeProducersRequest, services: BrokerServices
) -> Advance:
    """In slices: 19,000 partitions took 65 ms."""
    access, known = services.access(context), services.cache.image.topics.by_name
    topics: list[TopicResponse] = []
    named: set[tuple[str, int]] = set()

    def slices() -> Iterator[None]:
        left, in_slice = MOST_PRODUCERS, 0
        for topic in request.topics:
            error = ErrorCode.none
            if why_illegal(topic.name) is not None:
                error = ErrorCode.invalid_topic_exception
            elif not access.allows_on_topic(Operation.READ, topic.name):
                error = ErrorCode.topic_authorization_failed
            elif topic.name not in known:
                error = ErrorCode.unknown_topic_or_partition
            partitions: list[PartitionResponse] = []
            for index in topic.partition_indexes:
                if error is not ErrorCode.none:
                    answer = PartitionResponse(partition_index=index, error_code=error)
                elif (topic.name, index) in named:
                    answer = PartitionResponse(partition_index=index, error_code=ErrorCode.invalid_request)
                else:
                    named.add((topic.name, index))
                    answer = _described(services, topic.name, index, left)
                partitions.append(answer)
                left -= len(answer.active_producers)
                in_slice += 1 + len(answer.active_producers)
                if in_slice >= _IN_A_SLICE:
                    in_slice = 0
                    yield
            topics.append(TopicResponse(name=topic.name, partitions=tuple(partitions)))

    steps = slices()

    def advance() -> EncodedBody | None:
        for _ in steps:
            return None
        response = DescribeProducersResponse(topics=tuple(topics))
        return EncodedBody(encode_body(response, context.header.api_version))

    return advance


# READ on each topic.
API: Final = Sliced(ApiKey.DESCRIBE_PRODUCERS, Authorized.IN_HANDLER, begin=begin_describe_producers)


def _described(services: BrokerServices, topic: str, index: int, most: int) -> PartitionResponse:
    try:
        producers = services.data.find(services.cache.image, topic, index).log.active_producers(most)
    except LogError as error:
        return PartitionResponse(partition_index=index, error_code=type(error).error_code)
    return PartitionResponse(
        partition_index=index,
        active_producers=tuple(
            [
                ProducerState(
                    producer_id=each.producer_id,
                    producer_epoch=each.epoch,
                    last_sequence=each.last_sequence,
                    last_timestamp=each.last_timestamp_ms,
                    coordinator_epoch=each.coordinator_epoch,
                    current_txn_start_offset=each.transaction_first_offset,
                )
                for each in producers
            ]
        ),
    )
