"""FindCoordinator (api key 10): which broker coordinates a group, or a transactional id: the leader of its partition of
`__consumer_offsets`, or of `__transaction_state`.

Any broker answers. The first request has the topic created; the client asks again until it has a leader (rules G1.6 to
G1.16). Share groups have no coordinator yet.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kquorum.broker.apis.api import Authorized, Local
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.coordinators.partitioning import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.metadata.controller.requests import messages_of_entries
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kquorum.wire.protocol.api_keys import ApiKey

_NO_SUCH_KIND: Final = "there is no coordinator of this kind here"
_GROUP, _TRANSACTION = 0, 1
_FIRST_VERSION_OF_MANY: Final = 4


class _Found(NamedTuple):
    error: ErrorCode
    message: str | None = None
    node_id: int = -1
    host: str = ""
    port: int = -1


_NOT_AVAILABLE: Final = _Found(ErrorCode.coordinator_not_available)


def handle_find_coordinator(
    context: RequestContext, request: FindCoordinatorRequest, services: BrokerServices
) -> FindCoordinatorResponse:
    if context.header.api_version < _FIRST_VERSION_OF_MANY:
        found = _find(context, services, request.key_type, request.key)
        return FindCoordinatorResponse(
            error_code=found.error,
            error_message=found.message,
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )
    all_found = [_find(context, services, request.key_type, key) for key in request.coordinator_keys]
    # A refusal of all has its reason beside the first entries alone: the answer is not to outgrow the request.
    reasons = messages_of_entries("")
    return FindCoordinatorResponse(
        coordinators=tuple(
            [
                Coordinator(
                    key=key,
                    node_id=found.node_id,
                    host=found.host,
                    port=found.port,
                    error_code=found.error,
                    error_message=None if next(reasons) is None else found.message,
                )
                for key, found in zip(request.coordinator_keys, all_found, strict=True)
            ]
        )
    )


# DESCRIBE on each group, or on each transactional id.
API: Final = Local(
    ApiKey.FIND_COORDINATOR, Authorized.IN_HANDLER, handle=handle_find_coordinator, is_pure=True
)


def _find(context: RequestContext, services: BrokerServices, key_type: int, key: str) -> _Found:
    if key_type not in (_GROUP, _TRANSACTION):
        return _Found(ErrorCode.invalid_request, _NO_SUCH_KIND)
    is_group = key_type == _GROUP
    resource = ResourceType.GROUP if is_group else ResourceType.TRANSACTIONAL_ID
    if not services.access(context).allows(Operation.DESCRIBE, resource, key):
        return _Found(
            ErrorCode.group_authorization_failed
            if is_group
            else ErrorCode.transactional_id_authorization_failed
        )
    image = services.cache.image
    name = OFFSETS_TOPIC if is_group else TRANSACTIONS_TOPIC
    topic = image.topics.by_name.get(name)
    if topic is None:
        services.create_internal_topic(name)
        return _NOT_AVAILABLE
    state = topic.partitions.get((services.groups if is_group else services.transactions).partition_of(key))
    broker = None if state is None else image.cluster.brokers.get(state.leader)
    endpoint = None if broker is None or broker.fenced else broker.end_point(context.listener_name)
    if state is None or endpoint is None:
        return _NOT_AVAILABLE
    return _Found(ErrorCode.none, None, state.leader, endpoint.host, endpoint.port)
