"""A member of the cluster: it registers, follows its partitions, reports who is in sync, and leaves in good order.

python examples/member.py 127.0.0.1:9291 201        (any node's kquorum.grpc.listener, and an id)
"""

import asyncio
import signal
import sys
import uuid

import grpc

from wire.proto import broker_pb2 as pb
from wire.proto.broker_pb2_grpc import BrokerStub
from wire.proto.inspect_pb2 import Partition


class Member:
    def __init__(self, channel: grpc.aio.Channel, broker_id: int) -> None:
        self.cluster = BrokerStub(channel)  # type: ignore[no-untyped-call]
        self.id, self.epoch, self.applied_offset = broker_id, -1, -1
        self.serving: dict[int, bool] = {}
        self.partitions: dict[tuple[str, int], Partition] = {}
        self.leaving = asyncio.Event()

    async def live(self) -> None:
        me = pb.RegisterRequest(broker_id=self.id, incarnation_id=uuid.uuid4().bytes)
        me.endpoints.add(name="PLAINTEXT", host="127.0.0.1", port=9000 + self.id)
        registered = await self.cluster.Register(me)
        self.epoch = registered.broker_epoch
        watching = asyncio.create_task(self.watch())
        answer, was_fenced = pb.HeartbeatResponse(), True
        while not answer.should_shut_down and not watching.done():
            heartbeat = pb.HeartbeatRequest(broker_id=self.id, broker_epoch=self.epoch)
            heartbeat.applied_offset, heartbeat.want_shut_down = self.applied_offset, self.leaving.is_set()
            answer = await self.cluster.Heartbeat(heartbeat)
            if answer.is_fenced != was_fenced:
                print("fenced" if answer.is_fenced else f"active with epoch {self.epoch}", flush=True)
            was_fenced = answer.is_fenced
            await asyncio.sleep(registered.heartbeat_interval_ms / 1000)
        watching.cancel() or watching.result()
        print("left", flush=True)

    async def watch(self) -> None:
        """Keep the picture of the cluster up to date; whenever it is whole, act on it."""
        async for told in self.cluster.Watch(pb.WatchRequest(broker_id=self.id)):
            for broker in told.brokers:
                self.serving[broker.id] = not (broker.fenced or broker.in_controlled_shutdown)
            for each in told.partitions:
                self.partitions[each.topic_id, each.partition_id] = each
                print(f"{each.topic}-{each.partition_id} leader={each.leader} isr={each.isr}", flush=True)
            gone = {(each.topic_id, each.partition_id) for each in told.removed_partitions}
            topics = {topic.topic_id for topic in told.removed_topics}
            for key in [key for key in self.partitions if key in gone or key[0] in topics]:
                del self.partitions[key]
            if told.is_complete:
                self.applied_offset = told.offset
                await self.widen_in_sync_sets()

    async def widen_in_sync_sets(self) -> None:
        """A member with data would ask first whether the follower has caught up; this one has none."""
        request = pb.AlterPartitionRequest(broker_id=self.id, broker_epoch=self.epoch)
        for (topic_id, partition_id), each in self.partitions.items():
            in_sync = [
                replica for replica in each.replicas if replica in each.isr or self.serving.get(replica)
            ]
            if each.leader == self.id and len(in_sync) > len(each.isr):
                change = request.partitions.add(topic_id=topic_id, partition_id=partition_id)
                change.leader_epoch, change.partition_epoch = each.leader_epoch, each.partition_epoch
                change.isr.extend(pb.InSyncReplica(broker_id=replica) for replica in in_sync)
        for outcome in (await self.cluster.AlterPartition(request)).partitions if request.partitions else ():
            print("isr reported:", outcome.error, list(outcome.isr), flush=True)


async def main(address: str, broker_id: int) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        member = Member(channel, broker_id)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, member.leaving.set)
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, member.leaving.set)
        await member.live()


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1], int(sys.argv[2])))
    except grpc.aio.AioRpcError as error:
        sys.exit(f"{error.code().name}: {error.details()}")
