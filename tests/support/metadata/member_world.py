"""The service `Broker` of a node whose controller is real, with a log in memory that is committed at once."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import grpc

from kquorum.metadata.authorizer.gate import RequestAuthorizer
from kquorum.metadata.grpc.access import MemberGate
from kquorum.metadata.grpc.broker.requests import Membership
from kquorum.metadata.grpc.broker.service import BrokerCalls
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.message_schema import ByVersion, R, Request
from kquorum.wire.proto import broker_pb2 as pb
from kquorum.wire.proto.broker_pb2_grpc import BrokerStub
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.apis import supported_versions
from tests.support.api_calls import as_read
from tests.support.controller_world import CLUSTER_ID, World
from tests.support.grpc_harness import serving
from tests.support.grpc_source import FakeSource

MEMBERSHIP = Membership(cluster_id=CLUSTER_ID, heartbeat_interval_ms=300, session_timeout_ms=9_000)


class WorldSource(FakeSource):
    """The node's log and image are the controller's; `publish` tells who watches of what was committed."""

    cluster_id = CLUSTER_ID

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self.batches = world.raft.batches

    def committed_image(self) -> MetadataImage:
        return self._world.controller.committed_image

    def high_watermark(self) -> int:
        count = self._world.raft.committed
        return self.batches[count - 1].next_offset if count else 0

    def publish(self) -> None:
        self._world.commit()
        for callback in tuple(self.callbacks):
            callback(None, self.committed_image())


class ToWorld:
    """In place of a channel to the active controller; `failure` is what comes instead of answers."""

    def __init__(self, world: World, source: WorldSource) -> None:
        self._world = world
        self._source = source
        self.asked: list[ApiKey] = []
        self.failure: Exception | None = None

    async def call(self, request: Request[R] | ByVersion[R]) -> R:
        api_key = ApiKey(request.api_key)
        self.asked.append(api_key)
        if self.failure is not None:
            raise self.failure
        version = supported_versions(api_key)[1]
        message = request.make(version) if isinstance(request, ByVersion) else request
        answers = self._world.send_body(api_key, version, as_read(api_key, version, message))
        self._source.publish()
        answer: R = answers[0]
        return answer


@dataclass(frozen=True)
class MemberRig:
    world: World
    source: WorldSource
    channel: grpc.aio.Channel
    stub: Any
    heartbeats: ToWorld
    others: ToWorld

    async def register(self, broker_id: int, incarnation: int = 1, **fields: Any) -> pb.RegisterResponse:
        incarnation_id = UUID(int=broker_id * 1000 + incarnation).bytes
        request = pb.RegisterRequest(broker_id=broker_id, incarnation_id=incarnation_id, **fields)
        answer: pb.RegisterResponse = await self.stub.Register(request)
        return answer

    async def heartbeat(self, broker_id: int, epoch: int, **fields: Any) -> pb.HeartbeatResponse:
        """Of a member that has applied all there is."""
        values = {"applied_offset": self.source.high_watermark() - 1, **fields}
        request = pb.HeartbeatRequest(broker_id=broker_id, broker_epoch=epoch, **values)
        answer: pb.HeartbeatResponse = await self.stub.Heartbeat(request)
        return answer

    async def join(self, *broker_ids: int) -> list[int]:
        """Registered and not fenced; answers their epochs."""
        epochs = [(await self.register(broker_id)).broker_epoch for broker_id in broker_ids]
        for broker_id, epoch in zip(broker_ids, epochs, strict=True):
            assert not (await self.heartbeat(broker_id, epoch)).is_fenced
        return epochs

    def create(self, *topics: dict[str, Any]) -> None:
        self.world.create(*topics)
        self.source.publish()


@asynccontextmanager
async def member_rig(
    *,
    gate: RequestAuthorizer | None = None,
    principal_of: Callable[[bytes | None], str] = lambda _: "User:ANONYMOUS",
    **options: Any,
) -> AsyncIterator[MemberRig]:
    world = World().lead()
    source = WorldSource(world)
    source.publish()
    heartbeats, others = ToWorld(world, source), ToWorld(world, source)
    member_gate = MemberGate(gate or RequestAuthorizer(None), source.committed_image, principal_of)
    calls = BrokerCalls(MEMBERSHIP, heartbeats, others)
    async with serving(source, broker_calls=calls, gate=member_gate, **options) as rig:
        make_stub: Callable[[grpc.aio.Channel], Any] = BrokerStub
        yield MemberRig(world, source, rig.channel, make_stub(rig.channel), heartbeats, others)
