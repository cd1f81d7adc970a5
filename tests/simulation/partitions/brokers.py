"""A broker in the simulator: the real replica manager on logs in memory, with the parts of a node that serve it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kquorum.broker.log.errors import LogError, NotLeaderOrFollower
from kquorum.broker.log.partition_log import PartitionLog
from kquorum.broker.replica.fetcher import Fetcher, FetcherSettings
from kquorum.broker.replica.partition import Partition, TopicPartition, Wake, error_code_of
from kquorum.broker.replica.replica_manager import ReplicaManager, ReplicaSettings, strays
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.message_schema import Response
from kquorum.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kquorum.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kquorum.wire.schema import MetadataRecord
from tests.simulation.partitions.controller import (
    CONTROLLER,
    LISTENER,
    TOPIC,
    TOPIC_ID,
    directory_of,
    image_after,
    incarnation_of,
)
from tests.support.memory_partition_log import MemoryPartitionLog

if TYPE_CHECKING:
    from tests.simulation.partitions.world import PartitionWorld

FETCH_VERSION = 17
Answered = Callable[[Any], None]


class WatchedLog(MemoryPartitionLog):
    """Tells the checks what happens to it. It outlives the process of its broker."""

    def __init__(self, broker: SimulatedBroker, index: int) -> None:
        super().__init__(TOPIC, index, topic_id=TOPIC_ID, directory_id=directory_of(broker.broker_id))
        self.broker = broker
        self.verified = 0
        """Up to where it was compared with what is committed."""

    def update_high_watermark(self, offset: int) -> int:
        before = self.high_watermark
        after = super().update_high_watermark(offset)
        self.broker.world.checks.high_watermark_moved(self, before)
        return after

    def reopen(self, checkpointed: int) -> None:
        """By another process. Before it truncates, a log may have records and a watermark of an ISR that was lost."""
        super().update_high_watermark(checkpointed)

    def truncate_to(self, offset: int) -> bool:
        self.broker.world.checks.before_truncation(self, offset)
        return super().truncate_to(offset)

    def truncate_fully_and_start_at(self, offset: int, *, log_start_offset: int | None = None) -> None:
        self.broker.world.checks.before_truncation(self, self.log_start_offset)
        super().truncate_fully_and_start_at(offset, log_start_offset=log_start_offset)

    def lose_power(self) -> None:
        super().truncate_to(self.flushed_offset)
        self.verified = min(self.verified, self.flushed_offset)


@dataclass(slots=True)
class ParkedFetch:
    request: FetchRequest
    asked: dict[TopicPartition, FetchPartition]
    session_id: int
    answered: Answered
    is_done: bool = False


@dataclass(slots=True)
class ProduceWait:
    topic_partition: TopicPartition
    required_offset: int
    answered: Answered
    is_done: bool = False


class LeaderSession:
    """What a leader keeps of a follower's fetch session (KIP-227)."""

    def __init__(self) -> None:
        self.expected_epoch = 1
        self.partitions: dict[TopicPartition, FetchPartition] = {}
        self.told: dict[TopicPartition, tuple[int, int]] = {}


class SimulatedBroker:
    def __init__(self, world: PartitionWorld, broker_id: int) -> None:
        self.world = world
        self.broker_id = broker_id
        self.life = 0
        self.paused_until_ms = 0
        self.metadata_held_until_ms = 0
        """Until then the broker hears answers of the controller, but no metadata."""
        self.logs: dict[int, WatchedLog] = {}
        self.checkpoint: dict[TopicPartition, int] = {}
        self.lost_power = False
        """Its logs lost their tails, and the controller has not heard of that yet."""
        self.manager: ReplicaManager | None = None
        self._forget_process()

    def _forget_process(self) -> None:
        self.epoch = -1
        self.image = MetadataImage.empty()
        self.applied = 0
        self.sessions: dict[int, LeaderSession] = {}
        self.parked: list[ParkedFetch] = []
        self.waits: list[ProduceWait] = []
        self.outstanding: dict[int, int] = {}
        self.correlation = 0
        self.altering: int | None = None
        self.is_settling = False
        self.wants_to_stop = False
        self.stays_down_ms = 0
        self.has_looked_for_strays = False
        self.polls: set[int] = set()

    @property
    def is_running(self) -> bool:
        return self.manager is not None

    @property
    def now_ms(self) -> int:
        return self.world.now_ms

    # The process

    def start(self) -> None:
        world, options = self.world, self.world.options
        self.life += 1
        self._forget_process()
        self.manager = ReplicaManager(
            ReplicaSettings(
                self.broker_id,
                LISTENER,
                incarnation_of(self.broker_id, self.life),
                replica_lag_time_max_ms=options.lag_time_ms,
                checkpoint_interval_ms=options.checkpoint_ms,
            ),
            self,
            fetcher_settings=FetcherSettings(
                self.broker_id,
                wait_max_ms=options.fetch_wait_ms,
                max_partition_bytes=options.partition_bytes,
                max_response_bytes=2 * options.partition_bytes,
                backoff_ms=options.backoff_ms,
            ),
            min_insync_replicas=lambda _image, _topic: options.min_isr,
        )
        for index, log in self.logs.items():
            log.reopen(self.checkpoint.get(TopicPartition(TOPIC, index), 0))
        world.note("broker %d starts", self.broker_id)
        self._register()
        self.later(1, self._tick)

    def _register(self) -> None:
        """Again until the controller heard it."""
        if self.epoch >= 0:
            return
        self.later(self.world.options.session_ms // 3, self._register)
        life = self.life

        def registered(epoch: int) -> None:
            if self.life == life and self.epoch < 0:
                self.epoch = epoch
                self._heartbeat()

        def arrived() -> None:
            if self.epoch < 0 and self.life == life:
                epoch = self.world.controller.register(
                    self.broker_id, incarnation_of(self.broker_id, self.life), clean=not self.lost_power
                )
                self.lost_power = False
                self.world.send(CONTROLLER, self.broker_id, self.deliver, self.life, registered, epoch)

        self.world.send(self.broker_id, CONTROLLER, arrived)

    def kill(self, *, power: bool = False) -> None:
        if not self.is_running:
            return
        self.world.note("broker %d %s", self.broker_id, "loses power" if power else "is killed")
        self.world.tally["power cuts" if power else "kills"] += 1
        self.life += 1
        self.manager = None
        self._forget_process()
        if power:
            self.lost_power = True
            for log in self.logs.values():
                log.lose_power()

    def shut_down(self, stays_down_ms: int) -> None:
        """In order: others lead before the process ends, which may be long after its time, if it is paused."""
        if self.manager is None or self.wants_to_stop:
            return
        self.world.note("broker %d wants to stop", self.broker_id)
        self.wants_to_stop = True
        self.manager.begin_controlled_shutdown()
        self.stays_down_ms = stays_down_ms
        self.later(self.world.options.stop_within_ms, self._stop)

    def _stop(self) -> None:
        if self.manager is None:
            return
        self.world.note("broker %d stops", self.broker_id)
        self.manager.checkpoint_high_watermarks()
        for log in self.logs.values():
            log.flush()
        self.life += 1
        self.manager = None
        self.world.at(self.stays_down_ms, self.world.revive, self)
        self._forget_process()

    def later(self, delay_ms: int, action: Callable[..., None], *arguments: Any) -> None:
        self.world.at(delay_ms, self.deliver, self.life, action, *arguments)

    def deliver(self, life: int, action: Callable[..., None], *arguments: Any) -> None:
        """Run something in this process, later if it is paused, never in another life of it."""
        if self.life != life or self.manager is None:
            return
        if self.paused_until_ms > self.now_ms:
            self.world.at(self.paused_until_ms - self.now_ms, self.deliver, life, action, *arguments)
            return
        action(*arguments)
        self.settle()

    # The logs: broker.replica.replica_manager.PartitionLogs

    def begin_opening(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID,
        *,
        directory_id: UUID,
        is_new: bool,
        leader_epoch: int | None,
    ) -> bool:
        return True

    def open(
        self, topic_partition: TopicPartition, topic_id: UUID, *, directory_id: UUID, is_new: bool
    ) -> PartitionLog:
        index = topic_partition.partition
        if index not in self.logs:
            self.logs[index] = WatchedLog(self, index)
        return self.logs[index]

    def delete(self, topic_partition: TopicPartition, topic_id: UUID) -> None:
        del self.logs[topic_partition.partition]

    def write_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        self.checkpoint = dict(high_watermarks)
        for log in self.logs.values():
            log.flush()

    # Metadata

    def _heartbeat(self) -> None:
        self.later(self.world.options.session_ms // 5, self._heartbeat)
        self.world.send(
            self.broker_id,
            CONTROLLER,
            self._heartbeat_arrives,
            self.life,
            self.epoch,
            self.applied,
            self.wants_to_stop,
        )

    def _heartbeat_arrives(self, life: int, epoch: int, applied: int, wants_to_stop: bool) -> None:
        error, may_stop = self.world.controller.heartbeat(
            self.broker_id, epoch, applied, wants_to_stop=wants_to_stop
        )
        if error is ErrorCode.none:
            self._send_from(life, applied)
        if may_stop:
            self.world.send(CONTROLLER, self.broker_id, self.deliver, life, self._stop)

    def send_metadata(self) -> None:
        """What the controller wrote, as soon as the network brings it."""
        if self.is_running:
            self._send_from(self.life, self.applied)

    def _send_from(self, life: int, applied: int) -> None:
        records = self.world.controller.log[applied:]
        if records and self.now_ms >= self.metadata_held_until_ms:
            self.world.send(
                CONTROLLER, self.broker_id, self.deliver, life, self._metadata_arrives, applied, records
            )

    def _metadata_arrives(self, start: int, records: list[MetadataRecord]) -> None:
        """Brokers apply what they do not have yet."""
        fresh = records[self.applied - start :] if start <= self.applied else []
        if not fresh:
            return
        assert self.manager is not None
        delta, self.image = image_after(self.image, fresh)
        self.applied += len(fresh)
        self._set_strays_aside()
        self.manager.handle_image(self.now_ms, delta, self.image)

    def _set_strays_aside(self) -> None:
        """Once in each life, when the metadata have its registration: logs of partitions that moved away meanwhile."""
        broker = self.image.cluster.brokers.get(self.broker_id)
        if self.has_looked_for_strays or broker is None:
            return
        if broker.incarnation_id != incarnation_of(self.broker_id, self.life):
            return
        self.has_looked_for_strays = True
        found = [(TopicPartition(TOPIC, index), log.topic_id) for index, log in self.logs.items()]
        for stray in strays(self.image, self.broker_id, found):
            self.world.tally["strays"] += 1
            del self.logs[stray.partition]

    # The end of a turn

    def _tick(self) -> None:
        assert self.manager is not None
        self.manager.tick(self.now_ms)
        deadline_ms = self.manager.next_deadline_ms()
        self.later(max(1, (deadline_ms or 0) - self.now_ms), self._tick)

    def settle(self) -> None:
        """What the partitions noted: requests wake, fetchers and the channel to the controller go on."""
        manager = self.manager
        if manager is None or self.is_settling:
            return
        self.is_settling = True
        manager.fetcher_answered()
        woken = manager.outbox.take_woken()
        if woken:
            self._wake(woken)
        manager.submit_isr_changes()
        for running in list(manager.fetchers.values()):
            self._poke(running.fetcher)
        self._maybe_alter()
        self.is_settling = False

    def _wake(self, woken: Mapping[TopicPartition, Wake]) -> None:
        for wait in self.waits:
            if wait.topic_partition in woken:
                self._look_at(wait)
        self.waits = [wait for wait in self.waits if not wait.is_done]
        readable = {key for key, why in woken.items() if why & (Wake.LOG_END | Wake.ROLE)}
        for parked in list(self.parked):
            if not readable.isdisjoint(parked.asked):
                self._answer_fetch(parked, counts=False)
        self.parked = [parked for parked in self.parked if not parked.is_done]

    # The channel to the controller

    def _maybe_alter(self) -> None:
        assert self.manager is not None
        channel = self.manager.alter_partitions
        request = channel.maybe_next_request(self.now_ms, self.epoch)
        if request is None:
            deadline_ms = channel.next_deadline_ms()
            if deadline_ms is not None and -1 not in self.polls:
                self.polls.add(-1)
                self.later(max(1, deadline_ms - self.now_ms), self.polls.discard, -1)
            return
        message = request.make(3)
        assert isinstance(message, AlterPartitionRequest)
        self.correlation += 1
        self.altering = correlation = self.correlation
        life = self.life
        self.later(self.world.options.timeout_ms, self._altered, correlation, None)

        def arrived() -> None:
            answer = self.world.controller.alter_partition(message)
            self.world.send(
                CONTROLLER, self.broker_id, self.deliver, life, self._altered, correlation, answer
            )

        self.world.send(self.broker_id, CONTROLLER, arrived)

    def _altered(self, correlation: int, answer: AlterPartitionResponse | None) -> None:
        if self.altering != correlation:
            return
        self.altering = None
        assert self.manager is not None
        if answer is None:
            self.manager.alter_partitions.handle_failure(self.now_ms)
        else:
            self.manager.alter_partitions.handle_reply(self.now_ms, answer)

    # Fetching

    def _poke(self, fetcher: Fetcher) -> None:
        if id(fetcher) in self.outstanding:
            return
        request = fetcher.next_request(self.now_ms, self.epoch)
        if request is None:
            deadline_ms = fetcher.next_deadline_ms()
            if deadline_ms is not None and id(fetcher) not in self.polls:
                self.polls.add(id(fetcher))
                self.later(max(1, deadline_ms - self.now_ms), self.polls.discard, id(fetcher))
            return
        message: Any = request.make(FETCH_VERSION if request.type is FetchRequest else 9)
        self.correlation += 1
        correlation = self.outstanding[id(fetcher)] = self.correlation
        source, life = self.world.brokers[fetcher.source_id], self.life
        self.later(self.world.options.timeout_ms, self._fetched, fetcher, correlation, None)

        def answered(response: Response | None) -> None:
            self.world.send(
                source.broker_id,
                self.broker_id,
                self.deliver,
                life,
                self._fetched,
                fetcher,
                correlation,
                response,
            )

        def arrived() -> None:
            if source.is_running:
                source.deliver(source.life, source.serve, message, answered)
            else:
                answered(None)

        self.world.send(self.broker_id, source.broker_id, arrived)

    def _fetched(self, fetcher: Fetcher, correlation: int, response: Response | None) -> None:
        if self.outstanding.get(id(fetcher)) != correlation:
            return
        del self.outstanding[id(fetcher)]
        if response is None:
            fetcher.handle_failure(self.now_ms)
        else:
            fetcher.handle_reply(self.now_ms, response)

    # Serving followers

    def serve(self, request: FetchRequest | ListOffsetsRequest, answered: Answered) -> None:
        if isinstance(request, ListOffsetsRequest):
            answered(self._offsets(request))
            return
        session = self._session_of(request)
        if session is None:
            answered(FetchResponse(error_code=ErrorCode.fetch_session_id_not_found))
            return
        session_id, asked = session
        parked = ParkedFetch(request, asked, session_id, answered)
        self._answer_fetch(parked, counts=True)
        if not parked.is_done:
            self.parked.append(parked)
            self.later(request.max_wait_ms, self._expire, parked)

    def _session_of(self, request: FetchRequest) -> tuple[int, dict[TopicPartition, FetchPartition]] | None:
        named = {
            TopicPartition(topic.topic, asked.partition): asked
            for topic in request.topics
            for asked in topic.partitions
        }
        if request.session_epoch <= 0:
            self.sessions.pop(request.session_id, None)
            self.correlation += 1
            session_id = self.life * 10_000 + self.correlation
            made = self.sessions[session_id] = LeaderSession()
            made.partitions = named
            return session_id, named
        known = self.sessions.get(request.session_id)
        if known is None or request.session_epoch != known.expected_epoch:
            return None
        known.expected_epoch += 1
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                known.partitions.pop(TopicPartition(topic.topic, index), None)
                known.told.pop(TopicPartition(topic.topic, index), None)
        for key, asked in named.items():
            before = known.partitions.get(key)
            if before is None or before.current_leader_epoch != asked.current_leader_epoch:
                known.told.pop(key, None)
        known.partitions.update(named)
        return request.session_id, dict(known.partitions)

    def _expire(self, parked: ParkedFetch) -> None:
        if not parked.is_done:
            self._answer_fetch(parked, counts=False, is_last=True)
            self.parked.remove(parked)

    def _answer_fetch(self, parked: ParkedFetch, *, counts: bool, is_last: bool = False) -> None:
        found = {key: self._read(parked.request, key, asked, counts) for key, asked in parked.asked.items()}
        if not is_last and not any(
            data.records or data.error_code is not ErrorCode.none or data.diverging_epoch.end_offset >= 0
            for data in found.values()
        ):
            return
        parked.is_done = True
        session = self.sessions.get(parked.session_id)
        told = {} if session is None else session.told
        is_full = parked.request.session_epoch <= 0
        sent = []
        for key, data in found.items():
            marks = (data.high_watermark, data.log_start_offset)
            is_news = (
                data.records or data.error_code is not ErrorCode.none or data.diverging_epoch.end_offset >= 0
            )
            if is_full or is_news or told.get(key) != marks:
                sent.append(FetchableTopicResponse(topic_id=TOPIC_ID, partitions=(data,)))
                if data.diverging_epoch.end_offset >= 0:
                    told.pop(key, None)
                else:
                    told[key] = marks
        parked.answered(FetchResponse(session_id=parked.session_id, responses=tuple(sent)))

    def _read(
        self, request: FetchRequest, key: TopicPartition, asked: FetchPartition, counts: bool
    ) -> PartitionData:
        try:
            found = self.partition(key).read_as_follower(
                self.now_ms,
                request.replica_state.replica_id,
                asked.fetch_offset,
                max_bytes=asked.partition_max_bytes,
                at_least_one_batch=True,
                current_leader_epoch=asked.current_leader_epoch,
                last_fetched_epoch=asked.last_fetched_epoch,
                log_start_offset=asked.log_start_offset,
                broker_epoch=request.replica_state.replica_epoch,
                counts=counts,
            )
        except LogError as error:
            return PartitionData(
                partition_index=key.partition, error_code=error_code_of(error), high_watermark=-1
            )
        diverging = EpochEndOffset()
        if found.diverging is not None:
            diverging = EpochEndOffset(
                epoch=found.diverging.leader_epoch, end_offset=found.diverging.end_offset
            )
        return PartitionData(
            partition_index=key.partition,
            high_watermark=found.high_watermark,
            log_start_offset=found.log_start_offset,
            diverging_epoch=diverging,
            records=b"" if found.records is None else b"".join(bytes(each) for each in found.records.pieces),
        )

    def _offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        answers = []
        for asked in request.topics[0].partitions:
            try:
                partition = self.partition(TopicPartition(TOPIC, asked.partition_index))
                partition.check_readable(asked.current_leader_epoch, leader_only=True)
            except LogError as error:
                answers.append(
                    ListOffsetsPartitionResponse(
                        partition_index=asked.partition_index, error_code=error_code_of(error)
                    )
                )
                continue
            log = partition.log
            offset = log.log_end_offset if asked.timestamp == -1 else log.log_start_offset
            answers.append(ListOffsetsPartitionResponse(partition_index=asked.partition_index, offset=offset))
        return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name=TOPIC, partitions=tuple(answers)),))

    def partition(self, key: TopicPartition) -> Partition:
        found = None if self.manager is None else self.manager.online(key)
        if found is None:
            raise NotLeaderOrFollower(f"broker {self.broker_id} has no replica of {key}")
        return found

    # Serving producers

    def produce(self, index: int, records: bytes, acks: int, answered: Answered) -> None:
        """`answered` gets the base offset, or an error."""
        key = TopicPartition(TOPIC, index)
        try:
            appended = self.partition(key).append(self.now_ms, records, required_acks=acks)
        except LogError as error:
            answered(error_code_of(error))
            return
        self.world.tally["batches appended"] += 1
        offset = appended.batches.first_offset
        if acks != -1:
            answered(offset)
            return
        wait = ProduceWait(
            key,
            appended.required_offset,
            lambda error: answered(offset if error is ErrorCode.none else error),
        )
        self._look_at(wait)
        if not wait.is_done:
            self.waits.append(wait)

    def _look_at(self, wait: ProduceWait) -> None:
        try:
            error = self.partition(wait.topic_partition).acknowledgement(wait.required_offset)
        except LogError as missing:
            error = error_code_of(missing)
        if error is None or wait.is_done:
            return
        wait.is_done = True
        if error is ErrorCode.none:
            self.world.checks.acknowledged(self, wait.topic_partition.partition, wait.required_offset)
        wait.answered(error)
