"""A client of partitions: each request goes to the partition's leader, which is looked up again when it has moved."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self, TypeVar
from uuid import UUID

from kquorum.cli.clients.cluster_client import CLIENT_ID, ClusterClient
from kquorum.cli.clients.security import security_for
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.network.connection import KafkaConnection
from kquorum.network.errors import NetworkError
from kquorum.node.config.addresses import HostPort
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.data_batch import (
    check_data_batch,
    data_headers,
    read_data_records,
    write_data_batch,
)
from kquorum.wire.message_schema import ByVersion, R, Request
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from kquorum.wire.messages.init_producer_id import InitProducerIdRequest
from kquorum.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kquorum.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kquorum.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from kquorum.wire.record_parsing import Record

# What passes when the client asks for the leader again.
PASSING: Final = frozenset(
    {
        ErrorCode.not_leader_or_follower,
        ErrorCode.leader_not_available,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_id,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.unknown_leader_epoch,
        ErrorCode.not_enough_replicas,
        ErrorCode.not_enough_replicas_after_append,
        ErrorCode.request_timed_out,
        ErrorCode.kafka_storage_error,
        ErrorCode.offset_not_available,
        ErrorCode.coordinator_load_in_progress,
    }
)
_PAUSE_S: Final = 0.1
# A broker that does not answer may have lost its partitions to another, which is looked up after a part of the time.
_ATTEMPTS: Final = 3
_MIN_ATTEMPT_MS: Final = 1_000
_PROPAGATION_S: Final = 1.0
_CONSUMER: Final = -1
_FETCH_MAX_WAIT_MS: Final = 500
_FETCH_BYTES: Final = 1_048_576

Found = TypeVar("Found")


class Passing(Exception):
    """The request may succeed at another attempt."""


@dataclass(frozen=True, slots=True)
class TopicPlace:
    """A topic: its id, and the leader of each partition (-1: none at the moment)."""

    name: str
    id: UUID
    leaders: dict[int, int]


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one fetch of a partition found. `next_offset` is behind the last batch, which may have no records."""

    records: Sequence[Record]
    next_offset: int
    high_watermark: int


@dataclass(slots=True)
class Producer:
    """Sequence numbers of one producer, by which brokers know a batch that is sent again; -1 without an id."""

    id: int = -1
    epoch: int = -1
    next_sequence: int = 0

    def take(self, count: int) -> int:
        if self.id < 0:
            return -1
        sequence = self.next_sequence
        self.next_sequence = (sequence + count) & 0x7FFF_FFFF
        return sequence


class PartitionClient:
    """`timeout_ms` bounds each call, whose last attempt may end a third later. Used within `async with`."""

    def __init__(self, addresses: Iterable[HostPort], timeout_ms: int) -> None:
        self._addresses = tuple(addresses)
        self._timeout_ms = timeout_ms
        self._attempt_ms = min(timeout_ms, max(_MIN_ATTEMPT_MS, timeout_ms // _ATTEMPTS))
        self._brokers: dict[int, HostPort] = {}
        self._connections: dict[int, KafkaConnection] = {}
        self._connecting = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._connections.values():
            connection.close()

    async def topic(self, name: str) -> TopicPlace:
        """Raises CliError for a topic that is not there, and has not come for a second: brokers learn of a new one each
        in its own time."""
        loop = asyncio.get_running_loop()
        may_come_until_s = loop.time() + _PROPAGATION_S

        async def ask() -> TopicPlace:
            # A client of its own each time: its time limit is that of all its requests together.
            async with ClusterClient(self._addresses, self._timeout_ms) as cluster:
                found = await cluster.ask(
                    MetadataRequest(
                        topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=False
                    )
                )
            if found.topics[0].error_code is ErrorCode.unknown_topic_or_partition:
                if loop.time() < may_come_until_s:
                    raise Passing("unknown topic")
                raise CliError(f"there is no topic {name}: create it with `kquorum topics create {name}`")
            return self._take(name, found)

        return await self._until_it_passes(ask, f"looking up topic {name}")

    def _take(self, name: str, found: MetadataResponse) -> TopicPlace:
        self._brokers = {broker.node_id: HostPort(broker.host, broker.port) for broker in found.brokers}
        [topic] = found.topics
        if topic.error_code in PASSING:
            raise Passing(topic.error_code.name)
        if topic.error_code is not ErrorCode.none:
            raise CliError(f"topic {name}: {topic.error_code.name.upper()}")
        leaders = {each.partition_index: each.leader_id for each in topic.partitions}
        return TopicPlace(name, topic.topic_id, dict(sorted(leaders.items())))

    async def new_producer_id(self) -> tuple[int, int]:
        """Id and epoch of an idempotent producer; -1 and -1 where the client may have none."""

        async def ask() -> tuple[int, int]:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
            async with ClusterClient(self._addresses, self._timeout_ms) as cluster:
                found = await cluster.ask(request)
            if found.error_code in PASSING:
                raise Passing(found.error_code.name)
            if found.error_code is not ErrorCode.none:
                return -1, -1
            return found.producer_id, found.producer_epoch

        return await self._until_it_passes(ask, "asking for a producer id")

    async def produce(
        self,
        topic: TopicPlace,
        partition: int,
        records: Sequence[Record],
        *,
        acks: int,
        producer: Producer,
        codec: CompressionCodec = CompressionCodec.NONE,
    ) -> int:
        """Append records, whose offsets count from 0, as one batch; the offset of the first. Raises CliError."""
        batch = write_data_batch(
            records,
            codec=codec,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=producer.take(len(records)),
        )

        async def ask() -> int:
            leader = await self._leader(topic, partition)
            request = ProduceRequest(
                acks=acks,
                timeout_ms=self._attempt_ms,
                topic_data=(
                    TopicProduceData(
                        name=topic.name,
                        topic_id=topic.id,
                        partition_data=(PartitionProduceData(index=partition, records=batch),),
                    ),
                ),
            )
            answer = await self._call(leader, request)
            return _appended(answer.responses[0].partition_responses[0], topic.name)

        what = f"appending to {topic.name}-{partition}"
        return await self._until_it_passes(ask, what, lambda: self._look_again(topic))

    async def offset(self, topic: TopicPlace, partition: int, timestamp: int) -> int:
        """By ListOffsets: -1 the end, -2 the start, else the first offset at or after that time; -1 for none."""

        async def ask() -> int:
            leader = await self._leader(topic, partition)
            asked = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
            request = ListOffsetsRequest(
                replica_id=_CONSUMER, topics=(ListOffsetsTopic(name=topic.name, partitions=(asked,)),)
            )
            answer = await self._call(leader, request)
            found: ListOffsetsPartitionResponse = answer.topics[0].partitions[0]
            _check(found.error_code, f"{topic.name}-{partition}")
            return found.offset

        what = f"looking up an offset of {topic.name}-{partition}"
        return await self._until_it_passes(ask, what, lambda: self._look_again(topic))

    async def fetch(self, topic: TopicPlace, partition: int, offset: int) -> Fetched:
        """Waits up to half a second for records."""

        async def ask() -> Fetched:
            leader = await self._leader(topic, partition)
            asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES)
            request = FetchRequest(
                max_wait_ms=_FETCH_MAX_WAIT_MS,
                min_bytes=1,
                max_bytes=_FETCH_BYTES,
                topics=(FetchTopic(topic=topic.name, topic_id=topic.id, partitions=(asked,)),),
            )
            answer = await self._call(leader, request)
            _check(answer.error_code, f"{topic.name}-{partition}")
            found = answer.responses[0].partitions[0]
            _check(found.error_code, f"{topic.name}-{partition} at offset {offset}")
            return _read(found, offset)

        what = f"reading {topic.name}-{partition}"
        return await self._until_it_passes(ask, what, lambda: self._look_again(topic))

    # Parts

    async def _look_again(self, topic: TopicPlace) -> None:
        topic.leaders.update((await self.topic(topic.name)).leaders)

    async def _leader(self, topic: TopicPlace, partition: int) -> KafkaConnection:
        return await self._connection(topic.leaders[partition])

    async def _connection(self, broker_id: int) -> KafkaConnection:
        address = self._brokers.get(broker_id)
        if address is None:
            raise Passing("it has no leader")
        async with self._connecting:
            connection = self._connections.get(broker_id)
            if connection is None or connection.is_lost or (connection.host, connection.port) != address:
                connection = await KafkaConnection.connect(
                    *address, CLIENT_ID, self._attempt_ms, security=security_for(address)
                )
                self._connections[broker_id] = connection
            return connection

    async def _call(self, connection: KafkaConnection, request: Request[R] | ByVersion[R]) -> R:
        try:
            return await connection.call(request, self._attempt_ms)
        except NetworkError:
            # A late answer would be taken for that to the next request.
            connection.close()
            raise

    async def _until_it_passes(
        self,
        ask: Callable[[], Awaitable[Found]],
        what: str,
        look_again: Callable[[], Awaitable[None]] | None = None,
    ) -> Found:
        loop = asyncio.get_running_loop()
        give_up_at_s = loop.time() + self._timeout_ms / 1000
        while True:
            try:
                return await ask()
            except (Passing, NetworkError) as error:
                if loop.time() >= give_up_at_s:
                    raise CliError(
                        f"{what} failed for {self._timeout_ms} ms: {error}", status=ExitStatus.UNREACHABLE
                    ) from None
            await asyncio.sleep(_PAUSE_S)
            if look_again is not None:
                await look_again()


def _check(error: ErrorCode, what: str) -> None:
    if error in PASSING:
        raise Passing(error.name)
    if error is not ErrorCode.none:
        raise CliError(f"{what}: {error.name.upper()}")


def _appended(answer: PartitionProduceResponse, topic: str) -> int:
    if answer.error_code is not ErrorCode.none and answer.error_message and answer.error_code not in PASSING:
        raise CliError(f"{topic}-{answer.index}: {answer.error_message} ({answer.error_code.name.upper()})")
    _check(answer.error_code, f"{topic}-{answer.index}")
    return answer.base_offset


def _read(found: PartitionData, offset: int) -> Fetched:
    """The first batch may begin below the offset asked for; markers of transactions are no records. Raises
    DecodeError."""
    data = bytes(found.records or b"")
    records: list[Record] = []
    next_offset = offset
    for position, _ in data_headers(data):
        header = check_data_batch(data, position)
        next_offset = max(next_offset, header.next_offset)
        if not header.is_control:
            found_here = read_data_records(data, position, header)
            records += [each for each in found_here if each.offset >= offset]
    return Fetched(records, next_offset, found.high_watermark)
