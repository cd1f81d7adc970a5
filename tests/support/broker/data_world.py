"""A broker's data plane as its handlers see it, without sockets: logs in memory, time by hand."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kquorum.broker.apis.api import Answer, Sliced
from kquorum.broker.apis.registry import BROKER_APIS
from kquorum.broker.data_plane import DataPlane, DirectoryUsage
from kquorum.broker.fetch.sessions import FetchSessions
from kquorum.broker.log.errors import InconsistentTopicId
from kquorum.broker.producer_ids import ProducerIds
from kquorum.broker.quota.replication import ReplicationThrottle
from kquorum.broker.replica.partition import Partition, TopicPartition
from kquorum.broker.replica.replica_manager import ReplicaManager, ReplicaSettings
from kquorum.network.requests import RequestContext
from kquorum.wire.message_schema import Response
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import RequestHeader
from tests.support.api_calls import as_read, read_answer
from tests.support.broker.disk_logs import data
from tests.support.broker_services import broker_services
from tests.support.images import (
    LISTENER,
    after,
    broker_record,
    image_of,
    partition_record,
    topic_id,
    topic_records,
)
from tests.support.memory_partition_log import MemoryPartitionLog

BROKER = 1
NOW_MS = 1_700_000_000_000
ORDERS, ORDERS_ID = "orders", topic_id(1)
# orders-0 and orders-1 are led here and followed by broker 2; orders-2 is led by broker 2; orders-3 lies elsewhere.
IMAGE = image_of(
    broker_record(1),
    broker_record(2),
    broker_record(3),
    *topic_records(
        1,
        ORDERS,
        partition_record(1, 0, (1, 2)),
        partition_record(1, 1, (1, 2)),
        partition_record(1, 2, (2, 1)),
        partition_record(1, 3, (2, 3)),
    ),
    *topic_records(2, "single", partition_record(2, 0, (1,))),
)


class MemoryLogs:
    """Implements broker.replica.replica_manager.PartitionLogs."""

    def __init__(self) -> None:
        self.logs: dict[TopicPartition, MemoryPartitionLog] = {}
        # The partitions whose files are being made; None: there are no files to be made.
        self.in_making: dict[TopicPartition, UUID] | None = None

    def begin_opening(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID,
        *,
        directory_id: UUID,
        is_new: bool,
        leader_epoch: int | None,
    ) -> bool:
        del directory_id, is_new, leader_epoch
        if self.in_making is None:
            return True
        assert topic_partition not in self.logs
        assert topic_partition not in self.in_making
        self.in_making[topic_partition] = topic_id
        return False

    def make(self, topic_partition: TopicPartition) -> None:
        assert self.in_making is not None
        topic_id = self.in_making.pop(topic_partition)
        self.logs[topic_partition] = MemoryPartitionLog(*topic_partition, topic_id=topic_id)

    def open(
        self, topic_partition: TopicPartition, topic_id: UUID, *, directory_id: UUID, is_new: bool
    ) -> MemoryPartitionLog:
        del is_new
        known = self.logs.get(topic_partition)
        if known is not None and known.topic_id != topic_id:
            raise InconsistentTopicId(f"{topic_partition} is of topic {known.topic_id}")
        opened = MemoryPartitionLog(*topic_partition, topic_id=topic_id, directory_id=directory_id)
        self.logs[topic_partition] = opened
        return opened

    def delete(self, topic_partition: TopicPartition, topic_id: UUID) -> None:
        del topic_id
        del self.logs[topic_partition]

    def write_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """There is no disk."""


class CountingRandomSource:
    """Gives 1, 2, 3 and so on, within the bounds asked for."""

    def __init__(self) -> None:
        self._last = 0

    def randint(self, low: int, high: int) -> int:
        self._last += 1
        return max(low, min(high, self._last))


@dataclass(slots=True)
class Asked:
    """A request: `answers` has what its client got, as it reads it; None ends the connection."""

    context: RequestContext
    api_key: int
    raw: list[Answer] = field(default_factory=list)
    close_calls: list[Any] = field(default_factory=list)

    @property
    def is_waiting(self) -> bool:
        return not self.raw

    @property
    def answer(self) -> Any:
        [only] = self.raw
        if only is None or not isinstance(only, Response):
            return only
        return read_answer(self.api_key, self.context.header.api_version, only)

    def leave(self) -> None:
        """The client closes its connection."""
        for call in self.close_calls:
            call()


class DataWorld:
    def __init__(
        self,
        *,
        min_insync_replicas: int = 1,
        session_slots: int = 10,
        logs: MemoryLogs | None = None,
        throttle: ReplicationThrottle | None = None,
        chooses_replicas: bool = False,
        **services: Any,
    ) -> None:
        self.now_ms = NOW_MS
        self.slices = 0
        self.image = IMAGE
        self.logs = MemoryLogs() if logs is None else logs
        self.replicas = ReplicaManager(
            ReplicaSettings(BROKER, LISTENER),
            self.logs,
            min_insync_replicas=lambda _image, _topic: min_insync_replicas,
        )
        self.replicas.begin(self.now_ms, self.image)
        self.plane = DataPlane(
            partitions=self,
            sessions=FetchSessions(session_slots, CountingRandomSource()),
            producer_ids=ProducerIds(BROKER),
            now_ms=lambda: self.now_ms,
            settle_soon=lambda: None,
            fetch_max_bytes=1 << 20,
            leader_throttle=throttle,
            chooses_replicas=chooses_replicas,
        )
        self.services = broker_services(self.image, data=self.plane, node_id=BROKER, **services)
        self.settle()

    # HostedPartitions

    def online(self, topic_partition: TopicPartition) -> Partition | None:
        return self.replicas.online(topic_partition)

    def is_offline(self, topic_partition: TopicPartition) -> bool:
        return self.replicas.is_offline(topic_partition)

    def all_online(self) -> Any:
        return self.replicas.all_online()

    def directories(self) -> Mapping[UUID, DirectoryUsage]:
        return {}

    # What a test does

    def ask(self, request: Any, version: int | None = None, **context: Any) -> Asked:
        """The request goes through bytes; what its handler moved is not settled yet."""
        api_key = request.api_key
        if version is None:
            version = BROKER_APIS[ApiKey(api_key)].versions[1]
        header = RequestHeader(api_key, version, 1, "a client")
        asked = Asked(RequestContext(1, "127.0.0.1", LISTENER, header, **context), api_key)

        def when_gone(call: Any) -> Any:
            asked.close_calls.append(call)
            return lambda: asked.close_calls.remove(call)

        asked.context.when_gone = when_gone
        body = as_read(api_key, version, request)
        api: Any = BROKER_APIS[ApiKey(api_key)]
        api.handle(asked.context, body, self.services, asked.raw.append)
        return asked

    def ask_now(self, request: Any, version: int | None = None) -> Any:
        """Of a handler that answers at once, or in as many `slices`."""
        api: Any = BROKER_APIS[ApiKey(request.api_key)]
        version = api.versions[1] if version is None else version
        header = RequestHeader(request.api_key, version, 1, "a client")
        body = as_read(request.api_key, version, request)
        context = RequestContext(1, "127.0.0.1", LISTENER, header)
        if isinstance(api, Sliced):
            advance = api.begin(context, body, self.services)
            answer: Any = None
            self.slices = 0
            while answer is None:
                answer = advance()
                self.slices += 1
        else:
            answer = api.handle(context, body, self.services)
        return read_answer(request.api_key, version, answer)

    def settle(self) -> None:
        """What the loop does after the handlers of a turn."""
        self.replicas.submit_isr_changes()
        while woken := self.replicas.outbox.take_woken():
            self.plane.waits.wake(woken)
            self.plane.waits.work(lambda: self.now_ms)

    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        self.plane.waits.work(lambda: self.now_ms)
        self.settle()

    def change(self, *records: Any) -> None:
        delta, self.image = after(self.image, *records)
        self.services.cache.swap(self.image)
        self.replicas.handle_image(self.now_ms, delta, self.image)
        self.settle()

    def partition(self, index: int = 0, topic: str = ORDERS) -> Partition:
        found = self.replicas.online(TopicPartition(topic, index))
        assert found is not None
        return found

    def follower_fetches(self, offset: int, index: int = 0, log_start_offset: int = 0) -> None:
        """Broker 2 has all below `offset`."""
        self.partition(index).read_as_follower(
            self.now_ms, 2, offset, max_bytes=1000, log_start_offset=log_start_offset
        )
        self.settle()

    def append(self, *values: str, index: int = 0, topic: str = ORDERS) -> None:
        """As by a producer with acks=1."""
        self.partition(index, topic).append(self.now_ms, data(*values), required_acks=1)
        self.settle()
