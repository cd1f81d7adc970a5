"""ListOffsets (api key 2): where a partition begins and ends, and which offset was written at a given time.

Consumers see up to the high watermark, or the last stable offset; replicas and debugging tools up to the end of the
log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from kquorum.broker.apis.api import Advance, Authorized, Sliced
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.fetch.reading import bound_of
from kquorum.broker.log.errors import LogError
from kquorum.broker.log.partition_log import Isolation, TimestampedOffset
from kquorum.broker.replica.partition import Partition
from kquorum.wire.messages import list_offsets
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import EncodedBody, encode_body

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)
_DEBUGGING_REPLICA: Final = -2
_CONSUMER: Final = -1
_READ_COMMITTED: Final = 1
# The version from which a request may ask for it (KIP-734, KIP-405, KIP-1005, KIP-1023).
_SINCE: Final = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_FIRST_VERSION_WITH_NOT_AVAILABLE: Final = 5
_NOT_FOUND: Final = TimestampedOffset(timestamp_ms=-1, offset=-1, leader_epoch=-1)
_NO_EPOCH: Final = -1
# The log knows these without a look into its files.
_WITHOUT_SEARCH: Final = frozenset({LATEST, EARLIEST, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD})
_IN_A_SLICE: Final = 500


def begin_list_offsets(
    context: RequestContext, request: ListOffsetsRequest, services: BrokerServices
) -> Advance:
    """In slices: to find a time may take as long as to decompress a batch, or to pass over millions of them, and a few
    bytes of a request ask for it."""
    access = services.client_access(context)
    version = context.header.api_version
    named = Counter(
        (topic.name, each.partition_index) for topic in request.topics for each in topic.partitions
    )
    allowed = {topic.name: access.may_describe(topic.name) for topic in request.topics}
    answers: list[list_offsets.ListOffsetsPartitionResponse] = []

    def listed(
        topic: list_offsets.ListOffsetsTopic, asked: list_offsets.ListOffsetsPartition
    ) -> Iterator[None]:
        """Adds to `answers`; each step is the end of a slice."""
        found = _NOT_FOUND
        error = _refusal(
            asked,
            version,
            is_allowed=allowed[topic.name],
            is_repeated=named[topic.name, asked.partition_index] > 1,
        )
        search_from = 0 if error is ErrorCode.none else None
        while search_from is not None:
            error, found, search_from = _look_up(services, topic.name, asked, request, version, search_from)
            if error is ErrorCode.none and asked.timestamp not in _WITHOUT_SEARCH:
                yield
        answers.append(
            list_offsets.ListOffsetsPartitionResponse(
                partition_index=asked.partition_index,
                error_code=error,
                timestamp=found.timestamp_ms,
                offset=found.offset,
                leader_epoch=found.leader_epoch,
            )
        )

    def slices() -> Iterator[None]:
        for topic in request.topics:
            for asked in topic.partitions:
                yield from listed(topic, asked)
                if len(answers) % _IN_A_SLICE == 0:
                    yield

    left = slices()

    def advance() -> EncodedBody | None:
        for _ in left:
            return None
        return EncodedBody(encode_body(_response(request, answers), version))

    return advance


# DESCRIBE on each topic.
API: Final = Sliced(ApiKey.LIST_OFFSETS, Authorized.IN_HANDLER, begin=begin_list_offsets)


def _refusal(
    asked: list_offsets.ListOffsetsPartition, version: int, *, is_allowed: bool, is_repeated: bool
) -> ErrorCode:
    if not is_allowed:
        return ErrorCode.topic_authorization_failed
    if is_repeated:
        return ErrorCode.invalid_request
    if asked.timestamp < 0 and _SINCE.get(asked.timestamp, version + 1) > version:
        return ErrorCode.unsupported_version
    return ErrorCode.none


def _response(
    request: ListOffsetsRequest, answers: Iterable[list_offsets.ListOffsetsPartitionResponse]
) -> ListOffsetsResponse:
    left = iter(answers)
    return ListOffsetsResponse(
        topics=tuple(
            [
                list_offsets.ListOffsetsTopicResponse(
                    name=topic.name, partitions=tuple(islice(left, len(topic.partitions)))
                )
                for topic in request.topics
            ]
        )
    )


def _look_up(
    services: BrokerServices,
    topic: str,
    asked: list_offsets.ListOffsetsPartition,
    request: ListOffsetsRequest,
    version: int,
    search_from: int,
) -> tuple[ErrorCode, TimestampedOffset, int | None]:
    """The error, what was found, and the offset from which to search on. Between two slices the partition may have gone
    elsewhere, so all is asked again."""
    replica_id = request.replica_id
    isolation = Isolation.LOG_END
    if replica_id == _CONSUMER:
        is_committed = request.isolation_level == _READ_COMMITTED
        isolation = Isolation.COMMITTED if is_committed else Isolation.HIGH_WATERMARK
    try:
        partition = services.data.find(services.cache.image, topic, asked.partition_index)
        partition.check_readable(asked.current_leader_epoch, leader_only=replica_id != _DEBUGGING_REPLICA)
        found = _found(partition, asked.timestamp, bound_of(partition, isolation), search_from)
    except LogError as error:
        return type(error).error_code, _NOT_FOUND, None
    if isinstance(found, int):
        return ErrorCode.none, _NOT_FOUND, found
    if (
        replica_id == _CONSUMER
        and _may_go_back(partition)
        and (asked.timestamp == LATEST or found.offset < 0)
    ):
        if version < _FIRST_VERSION_WITH_NOT_AVAILABLE:
            return ErrorCode.leader_not_available, _NOT_FOUND, None
        return ErrorCode.offset_not_available, _NOT_FOUND, None
    return ErrorCode.none, found, None


def _may_go_back(partition: Partition) -> bool:
    """A new leader's high watermark may be behind that which the former leader told its readers (KIP-207)."""
    start = partition.epoch_start_offset
    return start is not None and start > partition.log.high_watermark


def _found(partition: Partition, timestamp: int, bound: int, search_from: int) -> TimestampedOffset | int:
    """Or the offset from which to search on. Raises LogError."""
    log = partition.log
    if timestamp == LATEST:
        return TimestampedOffset(-1, bound, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return TimestampedOffset(-1, log.log_start_offset, _NO_EPOCH)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        # There is no tiered storage.
        return _NOT_FOUND
    if timestamp == MAX_TIMESTAMP:
        found: TimestampedOffset | int = log.offset_of_max_time()
    else:
        found = log.search_time(timestamp, search_from)
    if isinstance(found, int):
        return found if found < bound else _NOT_FOUND
    return found if 0 <= found.offset < bound else _NOT_FOUND
