"""ListOffsets (api key 2): every partition is empty, from offset 0 to offset 0, the truth where no records are kept.

To refuse it would be as true, but a client that asks where to begin (aiokafka, without a group) takes any error for one
that passes, and asks for ever. From offset 0 it goes on to Fetch, which every client hears the refusal of.
"""

from typing import Any, Final

from kio.schema.errors import ErrorCode

from broker.client_access import UNLIMITED, ClientAccess
from broker.metadata_cache.answers import Values
from metadata.image.image import MetadataImage

_LATEST, _EARLIEST, _EARLIEST_LOCAL = -1, -2, -4
_ENDS: Final = frozenset({_LATEST, _EARLIEST, _EARLIEST_LOCAL})
_NONE_SUCH = -1


def handle_list_offsets(request: Any, image: MetadataImage, access: ClientAccess = UNLIMITED) -> Values:
    """No record has any timestamp, so all but the ends of the log are answered with offset -1."""
    return {
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    _listed(partition, _error(image, topic.name, partition.partition_index, access))
                    for partition in topic.partitions
                ],
            }
            for topic in request.topics
        ]
    }


def _error(image: MetadataImage, topic_name: str, partition_index: int, access: ClientAccess) -> ErrorCode:
    if not access.may_describe(topic_name):
        return ErrorCode.topic_authorization_failed
    topic = image.topics.by_name.get(topic_name)
    is_there = topic is not None and topic.partitions.get(partition_index) is not None
    return ErrorCode.none if is_there else ErrorCode.unknown_topic_or_partition


def _listed(partition: Any, error: ErrorCode) -> Values:
    is_an_end = error is ErrorCode.none and partition.timestamp in _ENDS
    return {
        "partition_index": partition.partition_index,
        "error_code": error,
        "timestamp": -1,
        "offset": 0 if is_an_end else _NONE_SUCH,
        "leader_epoch": -1,
    }
