"""A hundred transactional producers in one event loop, as clients of transaction.version 2 (KIP-890) behave: a batch of
one record to one partition, the end of the transaction, the next epoch, and so on.

They speak the protocol themselves: a hundred clients of any library would take more processor time than the brokers.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from kquorum.network.connection import KafkaConnection
from kquorum.wire.data_batch import Record, write_data_batch
from kquorum.wire.messages.end_txn import EndTxnRequest
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.find_coordinator import FindCoordinatorRequest
from kquorum.wire.messages.init_producer_id import InitProducerIdRequest
from kquorum.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kquorum.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

ALL = -1
TIMEOUT_MS = 30_000
PAUSE_S = 0.02
VALUE = b"x" * 100
_TRANSACTIONS = 1
_PRODUCE_VERSION, _END_VERSION = 12, 5
_AGAIN = frozenset(
    {
        ErrorCode.concurrent_transactions,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
        ErrorCode.not_leader_or_follower,
        ErrorCode.not_enough_replicas,
        ErrorCode.unknown_topic_or_partition,
    }
)


class RefusedError(Exception):
    """A broker answered with an error that no client asks again after."""


@dataclass(slots=True)
class Tally:
    """`spent_ms` has the time of each transaction that ended while `is_counting`. `are_going` is set when each producer
    has ended one."""

    waiting: int
    are_going: asyncio.Event = field(default_factory=asyncio.Event)
    is_counting: bool = False
    spent_ms: list[float] = field(default_factory=list)
    again: int = 0


class Cluster:
    """A connection of each producer to each broker, as clients have them."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._partitions = partitions
        self.addresses: dict[int, tuple[str, int]] = {}
        self.leaders: dict[int, int] = {}

    async def learn(self) -> None:
        host, _, port = self._bootstrap.partition(":")
        connection = await KafkaConnection.connect(host, int(port), "bench", TIMEOUT_MS)
        request = MetadataRequest(topics=(MetadataRequestTopic(name=self._topic),))
        found = await connection.call(request, TIMEOUT_MS)
        self.addresses = {each.node_id: (each.host, each.port) for each in found.brokers}
        self.leaders = {each.partition_index: each.leader_id for each in found.topics[0].partitions}
        connection.close()


class Producer:
    def __init__(self, cluster: Cluster, number: int, topic: str, partitions: int) -> None:
        self._cluster = cluster
        self._id = f"bench-{number}"
        self._topic = topic
        self._partition = number % partitions
        self._connections: dict[int, KafkaConnection] = {}

    async def _to(self, broker_id: int) -> KafkaConnection:
        found = self._connections.get(broker_id)
        if found is None:
            found = await KafkaConnection.connect(*self._cluster.addresses[broker_id], self._id, TIMEOUT_MS)
            self._connections[broker_id] = found
        return found

    async def run(self, tally: Tally, stop: asyncio.Event) -> None:
        """Until `stop`. Raises RefusedError."""
        coordinator = await self._coordinator()
        leader = await self._to(self._cluster.leaders[self._partition])
        producer_id, epoch = await self._init(coordinator)
        is_first = True
        while not stop.is_set():
            began_s = time.perf_counter()
            await self._produce(leader, producer_id, epoch, tally)
            producer_id, epoch = await self._end(coordinator, producer_id, epoch)
            if tally.is_counting:
                tally.spent_ms.append((time.perf_counter() - began_s) * 1e3)
            if is_first:
                is_first = False
                tally.waiting -= 1
                if not tally.waiting:
                    tally.are_going.set()
        for each in self._connections.values():
            each.close()

    async def _coordinator(self) -> KafkaConnection:
        anyone = await self._to(next(iter(self._cluster.addresses)))
        while True:
            request = FindCoordinatorRequest(key_type=_TRANSACTIONS, coordinator_keys=(self._id,))
            [found] = (await anyone.call(request, TIMEOUT_MS)).coordinators
            if found.error_code is ErrorCode.none:
                return await self._to(found.node_id)
            await asyncio.sleep(0.2)

    async def _init(self, coordinator: KafkaConnection) -> tuple[int, int]:
        request = InitProducerIdRequest(transactional_id=self._id, transaction_timeout_ms=60_000)
        while True:
            answer = await coordinator.call(request, TIMEOUT_MS)
            if answer.error_code is ErrorCode.none:
                return answer.producer_id, answer.producer_epoch
            await _pause_after(answer.error_code, "InitProducerId")

    async def _produce(self, leader: KafkaConnection, producer_id: int, epoch: int, tally: Tally) -> None:
        records = write_data_batch(
            [Record(0, int(time.time() * 1e3), None, VALUE)],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=0,
            transactional=True,
        )
        data = PartitionProduceData(index=self._partition, records=records)
        request = ProduceRequest(
            transactional_id=self._id,
            acks=ALL,
            timeout_ms=TIMEOUT_MS,
            topic_data=(TopicProduceData(name=self._topic, partition_data=(data,)),),
        )
        while True:
            answer = await leader.send_request(request, _PRODUCE_VERSION)
            error = answer.responses[0].partition_responses[0].error_code
            if error is ErrorCode.none:
                return
            tally.again += 1
            await _pause_after(error, "Produce")

    async def _end(self, coordinator: KafkaConnection, producer_id: int, epoch: int) -> tuple[int, int]:
        request = EndTxnRequest(
            transactional_id=self._id, producer_id=producer_id, producer_epoch=epoch, committed=True
        )
        while True:
            answer = await coordinator.send_request(request, _END_VERSION)
            if answer.error_code is ErrorCode.none:
                return answer.producer_id, answer.producer_epoch
            await _pause_after(answer.error_code, "EndTxn")


async def _pause_after(error: ErrorCode, what: str) -> None:
    if error not in _AGAIN:
        raise RefusedError(f"{what}: {error.name}")
    await asyncio.sleep(PAUSE_S)


async def drive(
    bootstrap: str, topic: str, partitions: int, producers: int, warm_s: float, counted_s: float
) -> Mapping[str, float]:
    """Transactions a second, their times, and how many requests had to be sent again for each. `warm_s` begins when
    each producer has ended a transaction."""
    cluster = Cluster(bootstrap, topic, partitions)
    await cluster.learn()
    tally, stop = Tally(producers), asyncio.Event()
    tasks = [
        asyncio.create_task(Producer(cluster, number, topic, partitions).run(tally, stop))
        for number in range(producers)
    ]
    watch = asyncio.gather(*tasks)
    try:
        going = asyncio.create_task(tally.are_going.wait())
        await asyncio.wait([watch, going], return_when=asyncio.FIRST_COMPLETED)
        await _pass(watch, warm_s)
        tally.is_counting, tally.again = True, 0
        began_s = time.perf_counter()
        await _pass(watch, counted_s)
        elapsed_s = time.perf_counter() - began_s
        tally.is_counting = False
        again = tally.again
        stop.set()
        await watch
    finally:
        for each in tasks:
            each.cancel()
    spent = sorted(tally.spent_ms)
    return {
        "tx/s": len(spent) / elapsed_s,
        "p50_ms": spent[len(spent) // 2],
        "p99_ms": spent[len(spent) * 99 // 100],
        "again/tx": again / len(spent),
        "transactions": len(spent),
    }


async def _pass(watch: asyncio.Future[list[None]], seconds: float) -> None:
    """Raises what a producer raised."""
    done, _ = await asyncio.wait([watch], timeout=seconds)
    if done:
        await watch
