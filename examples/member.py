"""A member of the cluster: it registers, follows its partitions, reports who is in sync, and leaves in good order.

.venv/bin/python examples/member.py 127.0.0.1:9291 201        (any node's kquorum.grpc.listener, and an id)
"""

import asyncio
import signal
import sys
import uuid

import grpc

from kquorum.wire.proto import broker_pb2 as pb
from kquorum.wire.proto.broker_pb2_grpc import BrokerStub


async def live(cluster: BrokerStub, me: int) -> None:
    registration = pb.RegisterRequest(broker_id=me, incarnation_id=uuid.uuid4().bytes)
    registration.endpoints.add(name="PLAINTEXT", host="127.0.0.1", port=9000 + me)
    registered = await cluster.Register(registration)
    heartbeat = pb.HeartbeatRequest(broker_id=me, broker_epoch=registered.broker_epoch, applied_offset=-1)
    for stop in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(stop, setattr, heartbeat, "want_shut_down", True)
    watching = asyncio.create_task(watch(cluster, heartbeat))
    answer, was_fenced = pb.HeartbeatResponse(), True
    while not answer.should_shut_down and not watching.done():
        answer = await cluster.Heartbeat(heartbeat)
        if answer.is_fenced != was_fenced:
            print("fenced" if answer.is_fenced else f"active with epoch {heartbeat.broker_epoch}", flush=True)
        was_fenced = answer.is_fenced
        await asyncio.sleep(registered.heartbeat_interval_ms / 1000)
    watching.cancel() or watching.result()
    print("left", flush=True)


async def watch(cluster: BrokerStub, me: pb.HeartbeatRequest) -> None:
    """Keep the picture of the cluster up to date; whenever it is whole, act on it and say so in the heartbeats."""
    serving, partitions = set(), {}
    async for told in cluster.Watch(pb.WatchRequest(broker_id=me.broker_id)):
        serving -= {each.id for each in told.brokers}.union(told.removed_brokers)
        serving |= {each.id for each in told.brokers if not (each.fenced or each.in_controlled_shutdown)}
        for each in told.partitions:
            partitions[each.topic_id, each.partition_id] = each
            print(f"{each.topic}-{each.partition_id} leader={each.leader} isr={each.isr}", flush=True)
        gone = {(each.topic_id, each.partition_id) for each in told.removed_partitions}
        topics = {each.topic_id for each in told.removed_topics}
        partitions = {at: each for at, each in partitions.items() if at not in gone and at[0] not in topics}
        if told.is_complete:
            me.applied_offset = told.offset
            await widen(cluster, me, serving, partitions)


async def widen(cluster: BrokerStub, me: pb.HeartbeatRequest, serving: set, partitions: dict) -> None:
    """Add missing replicas to the in-sync sets that this member leads. A member with data would check first that they
    have caught up."""
    changes = []
    for each in partitions.values():
        in_sync = [replica for replica in each.replicas if replica in each.isr or replica in serving]
        if each.leader == me.broker_id and len(in_sync) > len(each.isr):
            change = pb.PartitionChange(topic_id=each.topic_id, partition_id=each.partition_id)
            change.leader_epoch, change.partition_epoch = each.leader_epoch, each.partition_epoch
            change.isr.extend(pb.InSyncReplica(broker_id=replica) for replica in in_sync)
            changes.append(change)
    for start in range(0, len(changes), 100):  # a request has at most 2,000 partitions and members together
        request = pb.AlterPartitionRequest(broker_id=me.broker_id, broker_epoch=me.broker_epoch)
        request.partitions.extend(changes[start : start + 100])
        for outcome in (await cluster.AlterPartition(request)).partitions:
            print("isr reported:", outcome.error, list(outcome.isr), flush=True)


async def main(address: str, broker_id: str) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        await live(BrokerStub(channel), int(broker_id))


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:]))
    except grpc.aio.AioRpcError as error:
        sys.exit(f"{error.code().name}: {error.details()}")
