"""ConsumerGroupHeartbeat (api key 68): members of the consumer protocol (KIP-848) join, live and leave.

`broker.groups.consumer_protocol` decides. The answer waits for the in-sync replicas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kquorum.broker.apis.api import Answer, Authorized, Deferred
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.groups.classic_protocol import Client
from kquorum.metadata.authorizer.access import Access
from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey

Reply = Callable[[Answer], None]
_NOT_OFFERED: Final = (
    "the consumer protocol is off: group.version is below 1, or group.coordinator.rebalance.protocols lacks "
    "consumer"
)


def handle_consumer_group_heartbeat(
    context: RequestContext,
    request: ConsumerGroupHeartbeatRequest,
    services: BrokerServices,
    reply: Reply,
) -> None:
    def refuse(error: ErrorCode, message: str | None = None) -> None:
        reply(ConsumerGroupHeartbeatResponse(error_code=error, error_message=message))

    if not services.offers_consumer_groups:
        refuse(ErrorCode.unsupported_version, _NOT_OFFERED)
        return
    access = services.access(context)
    if not access.allows(Operation.READ, ResourceType.GROUP, request.group_id):
        refuse(ErrorCode.group_authorization_failed)
        return
    if not all(
        access.allows_on_topic(Operation.DESCRIBE, name)
        for name in dict.fromkeys(request.subscribed_topic_names or ())
    ):
        refuse(ErrorCode.topic_authorization_failed)
        return
    shard = services.groups.shard_of(request.group_id)
    if isinstance(shard, ErrorCode):
        refuse(shard)
        return
    # Java's form of an address.
    client = Client(context.header.api_version, context.header.client_id or "", f"/{context.peer_host}")

    def answer(response: ConsumerGroupHeartbeatResponse) -> None:
        services.data.settle_soon()
        reply(response)

    shard.consumer.heartbeat(services.data.now_ms(), request, client, _may_describe(access), answer)
    services.data.settle_soon()


def _may_describe(access: Access) -> Callable[[str], bool]:
    def may_describe(topic: str) -> bool:
        return access.allows_on_topic(Operation.DESCRIBE, topic, is_asked=False)

    return may_describe


# READ on the group, DESCRIBE on each topic that is named.
API: Final = Deferred(
    ApiKey.CONSUMER_GROUP_HEARTBEAT, Authorized.IN_HANDLER, handle=handle_consumer_group_heartbeat
)
