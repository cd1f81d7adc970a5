"""DeleteGroups (api key 42): groups without members are removed, with all their offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
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
_IN_A_SLICE: Final = 100


def handle_delete_groups(
    context: RequestContext, request: DeleteGroupsRequest, services: BrokerServices, reply: Reply
) -> None:
    """A few bytes of a request name a group, so they are deleted in slices, each of which asks every shard once."""
    access = services.access(context)
    group_ids = tuple(dict.fromkeys(request.groups_names))
    told: dict[str, ErrorCode] = {}

    def note(errors: Mapping[str, ErrorCode]) -> None:
        told.update(errors)
        if len(told) == len(group_ids):
            reply(_response(group_ids, told))

    def steps() -> Iterator[None]:
        for start in range(0, len(group_ids), _IN_A_SLICE):
            part = group_ids[start : start + _IN_A_SLICE]
            asked = [each for each in part if access.allows(Operation.DELETE, ResourceType.GROUP, each)]
            served, refused = services.groups.by_shard(asked)
            denied = dict.fromkeys(set(part).difference(asked), ErrorCode.group_authorization_failed)
            for shard, of_shard in served.items():
                shard.delete_groups(services.data.now_ms(), of_shard, note)
            if denied or refused:
                note({**denied, **refused})
            yield

    if not group_ids:
        reply(_response((), told))
    services.data.slices.run(steps(), services.data.settle_soon, lambda: reply(None))


def _response(group_ids: Iterable[str], told: Mapping[str, ErrorCode]) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=tuple(
            [DeletableGroupResult(group_id=group_id, error_code=told[group_id]) for group_id in group_ids]
        )
    )


# DELETE on each group.
API: Final = Deferred(ApiKey.DELETE_GROUPS, Authorized.IN_HANDLER, handle=handle_delete_groups)
