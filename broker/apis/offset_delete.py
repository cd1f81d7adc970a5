"""OffsetDelete (api key 47): offsets of a group are removed, unless the group is subscribed to their topic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kquorum.broker.apis.api import Answer, Authorized, Deferred
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.groups.offsets import Place
from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kquorum.wire.protocol.api_keys import ApiKey

Reply = Callable[[Answer], None]


def handle_offset_delete(
    context: RequestContext, request: OffsetDeleteRequest, services: BrokerServices, reply: Reply
) -> None:
    access = services.access(context)
    if not access.allows(Operation.DELETE, ResourceType.GROUP, request.group_id):
        reply(OffsetDeleteResponse(error_code=ErrorCode.group_authorization_failed))
        return
    shard = services.groups.shard_of(request.group_id)
    if not request.group_id:
        shard = ErrorCode.invalid_group_id
    if isinstance(shard, ErrorCode):
        reply(OffsetDeleteResponse(error_code=shard))
        return
    told: dict[Place, ErrorCode] = {}
    asked: list[Place] = []
    for topic in request.topics:
        is_allowed = access.allows_on_topic(Operation.READ, topic.name)
        image = services.cache.image.topics.by_name.get(topic.name)
        for partition in topic.partitions:
            place = Place(topic.name, partition.partition_index)
            if not is_allowed:
                told[place] = ErrorCode.topic_authorization_failed
            elif image is None or image.partitions.get(place.partition) is None:
                told[place] = ErrorCode.unknown_topic_or_partition
            elif place not in told:
                told[place] = ErrorCode.none
                asked.append(place)

    def done(error: ErrorCode, errors: Sequence[ErrorCode]) -> None:
        if error is not ErrorCode.none:
            reply(OffsetDeleteResponse(error_code=error))
            return
        told.update(zip(asked, errors, strict=True))
        reply(
            OffsetDeleteResponse(
                topics=tuple(
                    [
                        OffsetDeleteResponseTopic(
                            name=topic.name,
                            partitions=tuple(
                                [
                                    OffsetDeleteResponsePartition(
                                        partition_index=each.partition_index,
                                        error_code=told[Place(topic.name, each.partition_index)],
                                    )
                                    for each in topic.partitions
                                ]
                            ),
                        )
                        for topic in request.topics
                    ]
                )
            )
        )

    shard.delete_offsets(services.data.now_ms(), request.group_id, asked, done)
    services.data.settle_soon()


# DELETE on the group, READ on each topic.
API: Final = Deferred(ApiKey.OFFSET_DELETE, Authorized.IN_HANDLER, handle=handle_offset_delete)
