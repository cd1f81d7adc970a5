"""OffsetCommit (api key 8): a group remembers how far it has read. The answer waits for the in-sync replicas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

from kquorum.broker.apis.api import Answer, Authorized, Deferred
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.groups.offsets import Place
from kquorum.broker.groups.shard import Commit, OffsetToCommit
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
    # By the place of a partition in the request: what is refused here, and what is asked of the coordinator.
    refused: dict[tuple[int, int], ErrorCode] = {}
    asked: list[tuple[int, int]] = []
    offsets: list[OffsetToCommit] = []
    for number, topic in enumerate(request.topics):
        error, name, topic_id = _topic(context, services, topic)
        image = services.cache.image.topics.by_name.get(name)
        for index, partition in enumerate(topic.partitions):
            found = error
            if found is ErrorCode.none and (
                image is None or image.partitions.get(partition.partition_index) is None
            ):
                found = ErrorCode.unknown_topic_or_partition
            if found is not ErrorCode.none:
                refused[number, index] = found
                continue
            asked.append((number, index))
            offsets.append(
                OffsetToCommit(
                    Place(name, partition.partition_index),
                    topic_id,
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.committed_metadata or "",
                )
            )

    def answer(errors: Sequence[ErrorCode]) -> None:
        told = refused | dict(zip(asked, errors, strict=True))
        reply(_response(request, told.__getitem__))

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


def _topic(
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
    request: OffsetCommitRequest, error_at: Callable[[tuple[int, int]], ErrorCode]
) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=tuple(
            [
                OffsetCommitResponseTopic(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=tuple(
                        [
                            OffsetCommitResponsePartition(
                                partition_index=partition.partition_index,
                                error_code=error_at((number, index)),
                            )
                            for index, partition in enumerate(topic.partitions)
                        ]
                    ),
                )
                for number, topic in enumerate(request.topics)
            ]
        )
    )
