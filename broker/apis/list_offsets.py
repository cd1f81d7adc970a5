"""ListOffsets (api key 2): every partition is empty, from offset 0 to offset 0, the truth where no records are kept.

A refusal would be as true, but a client that asks where to begin (aiokafka, without a group) takes every error for a
passing one and repeats the request for ever. From offset 0 it goes on to Fetch, and every client obeys the refusal of
that.
"""

from typing import Final

from kquorum.broker.apis.api import Authorized, Local
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.client_access import UNLIMITED, ClientAccess
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.messages import list_offsets
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kquorum.wire.protocol.api_keys import ApiKey

_LATEST, _EARLIEST, _EARLIEST_LOCAL = -1, -2, -4
_ENDS: Final = frozenset({_LATEST, _EARLIEST, _EARLIEST_LOCAL})
_NONE_SUCH = -1


def _handle(
    context: RequestContext, request: ListOffsetsRequest, services: BrokerServices
) -> ListOffsetsResponse:
    return handle_list_offsets(request, services.cache.image, services.client_access(context))


# DESCRIBE on each topic.
API: Final = Local(ApiKey.LIST_OFFSETS, Authorized.IN_HANDLER, handle=_handle, is_pure=True)


def handle_list_offsets(
    request: ListOffsetsRequest, image: MetadataImage, access: ClientAccess = UNLIMITED
) -> ListOffsetsResponse:
    """No record has any timestamp, so all but the ends of the log are answered with offset -1."""
    return ListOffsetsResponse(
        topics=tuple(
            [
                list_offsets.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=tuple(
                        [
                            _listed(partition, _error(image, topic.name, partition.partition_index, access))
                            for partition in topic.partitions
                        ]
                    ),
                )
                for topic in request.topics
            ]
        )
    )


def _error(image: MetadataImage, topic_name: str, partition_index: int, access: ClientAccess) -> ErrorCode:
    if not access.may_describe(topic_name):
        return ErrorCode.topic_authorization_failed
    topic = image.topics.by_name.get(topic_name)
    is_there = topic is not None and topic.partitions.get(partition_index) is not None
    return ErrorCode.none if is_there else ErrorCode.unknown_topic_or_partition


def _listed(
    partition: list_offsets.ListOffsetsPartition, error: ErrorCode
) -> list_offsets.ListOffsetsPartitionResponse:
    is_an_end = error is ErrorCode.none and partition.timestamp in _ENDS
    return list_offsets.ListOffsetsPartitionResponse(
        partition_index=partition.partition_index,
        error_code=error,
        offset=0 if is_an_end else _NONE_SUCH,
    )
