"""OffsetCommit (api key 8): a group remembers how far it has read. The answer waits for the in-sync replicas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

from kquorum.broker.apis.api import Answer, Authorized, Deferred
from kquorum.broker.apis.commits import PlaceInRequest, answered_topics, sort_commit
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.groups.shard import Commit
from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kquorum.wire.protocol.api_keys import ApiKey

Reply = Callable[[Answer], None]
_FIRST_VERSION_WITH_IDS: Final = 10


def handle_offset_commit(
    context: RequestContext, request: OffsetCommitRequest, services: BrokerServices, reply: Reply
) -> None:
    if not request.topics:
        reply(OffsetCommitResponse())
        return
    if not services.access(context).allows(Operation.READ, ResourceType.GROUP, request.group_id):
        reply(_response(request, lambda _at: ErrorCode.group_authorization_failed))
        return
    judged = sort_commit(services.cache.image, request.topics, lambda topic: _judge(context, services, topic))

    def answer(errors: Sequence[ErrorCode]) -> None:
        reply(_response(request, judged.outcomes(errors).__getitem__))

    offsets = judged.offsets
    if not offsets:
        answer(())
        return
    shard = services.groups.shard_of(request.group_id)
    if isinstance(shard, ErrorCode):
        answer([shard] * len(offsets))
        return
    shard.commit_offsets(
        services.data.now_ms(),
        Commit(
            group_id=request.group_id,
            generation=request.generation_id_or_member_epoch,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            retention_ms=request.retention_time_ms,
            version=context.header.api_version,
            offsets=offsets,
        ),
        answer,
    )
    services.data.settle_soon()


# READ on the group and on each topic.
API: Final = Deferred(ApiKey.OFFSET_COMMIT, Authorized.IN_HANDLER, handle=handle_offset_commit)


def _judge(
    context: RequestContext, services: BrokerServices, topic: OffsetCommitRequestTopic
) -> tuple[ErrorCode, str, UUID]:
    topics = services.cache.image.topics
    name = topic.name
    if context.header.api_version >= _FIRST_VERSION_WITH_IDS:
        known = topics.by_id.get(topic.topic_id)
        if known is None:
            return ErrorCode.unknown_topic_id, "", topic.topic_id
        name = known.name
    if not services.access(context).allows_on_topic(Operation.READ, name):
        return ErrorCode.topic_authorization_failed, name, topic.topic_id
    image = topics.by_name.get(name)
    return ErrorCode.none, name, topic.topic_id if image is None else image.id


def _response(
    request: OffsetCommitRequest, error_at: Callable[[PlaceInRequest], ErrorCode]
) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=answered_topics(
            request.topics,
            error_at,
            lambda index, error: OffsetCommitResponsePartition(partition_index=index, error_code=error),
            lambda topic, partitions: OffsetCommitResponseTopic(
                name=topic.name, topic_id=topic.topic_id, partitions=partitions
            ),
        )
    )
