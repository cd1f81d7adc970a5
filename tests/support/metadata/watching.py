"""The service `Broker` over a log in memory, for members that only watch, and what they make of it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc

from kquorum.metadata.grpc.broker.service import BrokerCalls
from kquorum.wire.proto import broker_pb2 as pb
from kquorum.wire.proto.broker_pb2_grpc import BrokerStub
from kquorum.wire.proto.inspect_pb2 import Broker, Partition
from tests.support.grpc_harness import serving
from tests.support.grpc_source import FakeSource
from tests.support.metadata.member_world import MEMBERSHIP


class NoCallsExpected:
    async def call(self, request: object) -> Any:
        raise AssertionError(f"unexpected request {request}")


@asynccontextmanager
async def watching(source: FakeSource, **options: Any) -> AsyncIterator[Any]:
    calls = BrokerCalls(MEMBERSHIP, NoCallsExpected(), NoCallsExpected())
    async with serving(source, broker_calls=calls, **options) as rig:
        make_stub: Callable[[grpc.aio.Channel], Any] = BrokerStub
        yield make_stub(rig.channel)


@dataclass
class Picture:
    """What a member knows, by the rules in broker.proto."""

    offset: int = -1
    brokers: dict[int, Broker] = field(default_factory=dict)
    partitions: dict[tuple[str, int], Partition] = field(default_factory=dict)
    messages: int = 0

    def take(self, told: pb.WatchResponse) -> None:
        self.messages += 1
        self.brokers |= {each.id: each for each in told.brokers}
        for broker_id in told.removed_brokers:
            del self.brokers[broker_id]
        self.partitions |= {(each.topic_id, each.partition_id): each for each in told.partitions}
        for removed in told.removed_partitions:
            self.partitions.pop((removed.topic_id, removed.partition_id), None)
        for gone in told.removed_topics:
            self.partitions = {key: each for key, each in self.partitions.items() if key[0] != gone.topic_id}
        if told.is_complete:
            assert told.offset >= self.offset
            self.offset = told.offset

    def leaders(self) -> dict[str, int]:
        return {f"{each.topic}-{each.partition_id}": each.leader for each in self.partitions.values()}


async def follow(call: Any, picture: Picture, until: Callable[[], bool]) -> Picture:
    while not until():
        picture.take(await call.read())
    return picture


async def up_to(call: Any, offset: int, picture: Picture | None = None) -> Picture:
    found = picture or Picture()
    return await follow(call, found, lambda: found.offset >= offset)
