"""The `Broker` service: members that speak gRPC, under the rules of Kafka's brokers (see broker.proto).

Every node serves it. A request goes to the active controller as a broker's own does, over a channel that finds it, also
where that is this very node; so there is one place where it is decided, and one line of requests.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import grpc

from kquorum.metadata.adapters.controller_channel import ControllerUnavailable
from kquorum.metadata.grpc.access import BadMessage, Refused, check, refuse
from kquorum.metadata.grpc.access import Context as GateContext
from kquorum.metadata.grpc.broker.requests import (
    Membership,
    alter_partition_message,
    alter_partition_request,
    heartbeat_message,
    heartbeat_request,
    registration_message,
    registration_request,
    unregistration_request,
)
from kquorum.metadata.grpc.broker.watch import watch
from kquorum.metadata.grpc.feed import ChangeFeed
from kquorum.metadata.grpc.sending import Context as StreamContext
from kquorum.metadata.grpc.sending import send_all
from kquorum.metadata.grpc.source import CommittedLog
from kquorum.network.errors import NoCommonVersion
from kquorum.wire.message_schema import ByVersion, R, Request
from kquorum.wire.proto import broker_pb2 as pb
from kquorum.wire.proto.broker_pb2_grpc import BrokerServicer
from kquorum.wire.protocol.api_keys import ApiKey


class ToController(Protocol):
    """A ControllerChannel."""

    async def call(self, request: Request[R] | ByVersion[R]) -> R: ...


class Context(StreamContext, GateContext, Protocol):
    """What is used of gRPC's context of a call."""


@dataclass(frozen=True, slots=True)
class BrokerCalls:
    """How this node reaches the active controller, and what it tells members of itself.

    Heartbeats have a channel of their own: nothing slow may hold them up.
    """

    membership: Membership
    heartbeats: ToController
    others: ToController


class BrokerService(BrokerServicer):
    def __init__(
        self, calls: BrokerCalls, log: CommittedLog, feed: ChangeFeed, watcher_queue_changes: int
    ) -> None:
        self._calls = calls
        self._log = log
        self._feed = feed
        self._watcher_queue_changes = watcher_queue_changes

    async def Register(self, request: pb.RegisterRequest, context: Context) -> pb.RegisterResponse:  # noqa: N802
        membership = self._calls.membership
        response = await self._ask(
            context, ApiKey.BROKER_REGISTRATION, lambda: registration_request(request, membership)
        )
        return registration_message(response, membership)

    async def Heartbeat(self, request: pb.HeartbeatRequest, context: Context) -> pb.HeartbeatResponse:  # noqa: N802
        response = await self._ask(context, ApiKey.BROKER_HEARTBEAT, lambda: heartbeat_request(request))
        return heartbeat_message(response)

    async def AlterPartition(  # noqa: N802
        self, request: pb.AlterPartitionRequest, context: Context
    ) -> pb.AlterPartitionResponse:
        response = await self._ask(context, ApiKey.ALTER_PARTITION, lambda: alter_partition_request(request))
        return alter_partition_message(response)

    async def Unregister(self, request: pb.UnregisterRequest, context: Context) -> pb.UnregisterResponse:  # noqa: N802
        await self._ask(context, ApiKey.UNREGISTER_BROKER, lambda: unregistration_request(request))
        return pb.UnregisterResponse()

    async def Watch(self, request: pb.WatchRequest, context: Context) -> None:  # noqa: N802
        messages = watch(request, self._log, self._feed, self._watcher_queue_changes)
        await send_all(messages, context, self._log.source.node_id, self._log.pieces)

    async def _ask(
        self, context: Context, api_key: ApiKey, make: Callable[[], Request[R] | ByVersion[R]]
    ) -> R:
        """The controller's answer; without one the call ends here."""
        channel = self._calls.heartbeats if api_key is ApiKey.BROKER_HEARTBEAT else self._calls.others
        try:
            response = await channel.call(make())
            check(response)
        except (Refused, BadMessage, ControllerUnavailable, NoCommonVersion) as error:
            await _refuse(context, error)
            raise
        return response


async def _refuse(context: Context, error: Exception) -> None:
    """End the call; always raises."""
    match error:
        case Refused():
            await refuse(context, error)
        case BadMessage():
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        case ControllerUnavailable():
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        case _:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
