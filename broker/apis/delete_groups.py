"""DeleteGroups (api key 42): groups without members are removed, with all their offsets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kquorum.broker.apis.api import Answer, Authorized, Deferred
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey

Reply = Callable[[Answer], None]


def handle_delete_groups(
    context: RequestContext, request: DeleteGroupsRequest, services: BrokerServices, reply: Reply
) -> None:
    access = services.access(context)
    told: dict[str, ErrorCode] = {}
    asked: list[str] = []
    for group_id in dict.fromkeys(request.groups_names):
        if access.allows(Operation.DELETE, ResourceType.GROUP, group_id):
            asked.append(group_id)
        else:
            told[group_id] = ErrorCode.group_authorization_failed
    served, refused = services.groups.by_shard(asked)
    told.update(refused)
    left = len(served)

    def answer() -> None:
        reply(
            DeleteGroupsResponse(
                results=tuple(
                    [
                        DeletableGroupResult(group_id=group_id, error_code=told[group_id])
                        for group_id in dict.fromkeys(request.groups_names)
                    ]
                )
            )
        )

    def done(errors: Mapping[str, ErrorCode]) -> None:
        nonlocal left
        told.update(errors)
        left -= 1
        if left == 0:
            answer()

    if not served:
        answer()
        return
    now_ms = services.data.now_ms()
    for partition, group_ids in served.items():
        services.groups.shards[partition].delete_groups(now_ms, group_ids, done)
    services.data.settle_soon()


# DELETE on each group.
API: Final = Deferred(ApiKey.DELETE_GROUPS, Authorized.IN_HANDLER, handle=handle_delete_groups)
