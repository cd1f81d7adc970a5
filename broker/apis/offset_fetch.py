"""OffsetFetch (api key 9): the offsets that groups committed, of one group, or since version 8 of many.

A group that is not there has committed nothing, which is no error (rules G5.15 to G5.23).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple
from uuid import UUID

from kquorum.broker.apis.api import Answer, Authorized, Deferred
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.groups.offsets import CommittedOffset, Place
from kquorum.broker.groups.shard import is_same_topic
from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.uuids import ZERO_UUID

Reply = Callable[[Answer], None]
GroupDone = Callable[[OffsetFetchResponseGroup], None]
_FIRST_VERSION_OF_MANY: Final = 8
_FIRST_VERSION_WITH_IDS: Final = 10
_ONLY_VERSION_WITH_ERRORS_IN_PARTITIONS: Final = 1
_NOTHING: Final = -1


class _Topic(NamedTuple):
    """A topic as the request has it. `name` is empty for an id that is not known."""

    name: str
    topic_id: UUID
    indexes: Sequence[int]


def handle_offset_fetch(
    context: RequestContext, request: OffsetFetchRequest, services: BrokerServices, reply: Reply
) -> None:
    if context.header.api_version < _FIRST_VERSION_OF_MANY:
        topics = None
        if request.topics is not None:
            topics = [_Topic(each.name, ZERO_UUID, each.partition_indexes) for each in request.topics]

        def answer_one(group: OffsetFetchResponseGroup) -> None:
            reply(_response_of_one(context, request, group))

        asked_group = OffsetFetchRequestGroup(group_id=request.group_id)
        _fetch(context, services, asked_group, topics, request.require_stable, answer_one)
        services.data.settle_soon()
        return
    answers: dict[int, OffsetFetchResponseGroup] = {}
    # A group that is named often is answered once: a few bytes of a request ask for all that it committed.
    groups = list({each.group_id: each for each in reversed(request.groups)}.values())[::-1]

    def answered(number: int, group: OffsetFetchResponseGroup) -> None:
        answers[number] = group
        if len(answers) == len(groups):
            reply(OffsetFetchResponse(groups=tuple(answers[each] for each in range(len(answers)))))

    def steps() -> Iterator[None]:
        for number, asked in enumerate(groups):
            topics = None
            if asked.topics is not None:
                topics = [_resolved(context, services, each) for each in asked.topics]
            _fetch(context, services, asked, topics, request.require_stable, partial(answered, number))
            yield

    if not groups:
        reply(OffsetFetchResponse())
    # A few bytes of a request name a group.
    services.data.slices.run(steps(), services.data.settle_soon, lambda: reply(None))


# DESCRIBE on the group and on each topic.
API: Final = Deferred(ApiKey.OFFSET_FETCH, Authorized.IN_HANDLER, handle=handle_offset_fetch)


def _resolved(context: RequestContext, services: BrokerServices, topic: OffsetFetchRequestTopics) -> _Topic:
    name, topic_id, indexes = topic.name, topic.topic_id, topic.partition_indexes
    topics = services.cache.image.topics
    if context.header.api_version >= _FIRST_VERSION_WITH_IDS:
        known = topics.by_id.get(topic_id)
        return _Topic("" if known is None else known.name, topic_id, indexes)
    image = topics.by_name.get(name)
    return _Topic(name, ZERO_UUID if image is None else image.id, indexes)


def _fetch(
    context: RequestContext,
    services: BrokerServices,
    group: OffsetFetchRequestGroup,
    topics: Sequence[_Topic] | None,
    is_stable: bool,
    done: GroupDone,
) -> None:
    group_id = group.group_id

    def refuse(error: ErrorCode) -> None:
        # A member takes COORDINATOR_NOT_AVAILABLE for the end here, in old clients (rule G2.26).
        if error is ErrorCode.coordinator_not_available:
            error = ErrorCode.not_coordinator
        done(OffsetFetchResponseGroup(group_id=group_id, error_code=error))

    if not services.access(context).allows(Operation.DESCRIBE, ResourceType.GROUP, group_id):
        refuse(ErrorCode.group_authorization_failed)
        return
    shard = services.groups.shard_of(group_id)
    if isinstance(shard, ErrorCode):
        refuse(shard)
        return
    error = shard.may_fetch(group_id, group.member_id, group.member_epoch, is_stable=is_stable)
    if error is not ErrorCode.none:
        refuse(error)
        return

    def found(
        error: ErrorCode, offsets: Mapping[Place, CommittedOffset], unstable: Collection[Place]
    ) -> None:
        if error is not ErrorCode.none:
            refuse(error)
            return
        asked = _all_topics(context, services, offsets) if topics is None else topics
        done(
            OffsetFetchResponseGroup(
                group_id=group_id,
                topics=tuple([_answer(context, services, each, offsets, unstable) for each in asked]),
            )
        )

    shard.fetch_offsets(services.data.now_ms(), group_id, is_stable=is_stable, done=found)


def _all_topics(
    context: RequestContext, services: BrokerServices, offsets: Mapping[Place, CommittedOffset]
) -> list[_Topic]:
    """Those that the client may see. Where topics go by id, one without an id is left out."""
    places: dict[str, list[int]] = {}
    for place in offsets:
        places.setdefault(place.topic, []).append(place.partition)
    access = services.access(context)
    by_name = services.cache.image.topics.by_name
    goes_by_id = context.header.api_version >= _FIRST_VERSION_WITH_IDS
    found = []
    for name, indexes in sorted(places.items()):
        image = by_name.get(name)
        if not access.allows_on_topic(Operation.DESCRIBE, name, is_asked=False):
            continue
        if image is None and goes_by_id:
            continue
        found.append(_Topic(name, ZERO_UUID if image is None else image.id, sorted(indexes)))
    return found


def _answer(
    context: RequestContext,
    services: BrokerServices,
    topic: _Topic,
    offsets: Mapping[Place, CommittedOffset],
    unstable: Collection[Place],
) -> OffsetFetchResponseTopics:
    refusal = ErrorCode.none
    if not topic.name and context.header.api_version >= _FIRST_VERSION_WITH_IDS:
        refusal = ErrorCode.unknown_topic_id
    elif not services.access(context).allows_on_topic(Operation.DESCRIBE, topic.name):
        refusal = ErrorCode.topic_authorization_failed

    def partition(index: int) -> OffsetFetchResponsePartitions:
        error = refusal
        place = Place(topic.name, index)
        if error is ErrorCode.none and place in unstable:
            error = ErrorCode.unstable_offset_commit
        kept = offsets.get(place)
        if error is not ErrorCode.none or kept is None or not is_same_topic(kept.topic_id, topic.topic_id):
            return OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=_NOTHING, error_code=error
            )
        return OffsetFetchResponsePartitions(
            partition_index=index,
            committed_offset=kept.offset,
            committed_leader_epoch=kept.leader_epoch,
            metadata=kept.metadata,
        )

    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        # Each once: what was committed may have a long metadata.
        partitions=tuple([partition(index) for index in dict.fromkeys(topic.indexes)]),
    )


def _response_of_one(
    context: RequestContext, request: OffsetFetchRequest, group: OffsetFetchResponseGroup
) -> OffsetFetchResponse:
    topics = group.topics
    is_first = context.header.api_version == _ONLY_VERSION_WITH_ERRORS_IN_PARTITIONS
    if group.error_code is not ErrorCode.none and is_first:
        topics = tuple(
            [
                OffsetFetchResponseTopics(
                    name=topic.name,
                    partitions=tuple(
                        [
                            OffsetFetchResponsePartitions(
                                partition_index=index, committed_offset=_NOTHING, error_code=group.error_code
                            )
                            for index in topic.partition_indexes
                        ]
                    ),
                )
                for topic in request.topics or ()
            ]
        )
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=tuple(
            [
                OffsetFetchResponseTopic(
                    name=topic.name,
                    partitions=tuple(
                        [
                            OffsetFetchResponsePartition(
                                partition_index=each.partition_index,
                                committed_offset=each.committed_offset,
                                committed_leader_epoch=each.committed_leader_epoch,
                                metadata=each.metadata,
                                error_code=each.error_code,
                            )
                            for each in topic.partitions
                        ]
                    ),
                )
                for topic in topics
            ]
        ),
    )
