"""Fetch (api key 1): consumers read what is committed, followers read all and tell by their offsets how far they are.

A Fetch that finds less than it wants waits in `broker.fetch.waits`. Records leave as the slices of the log that the
read found; no byte of them is copied or looked at here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

from kquorum.broker.apis.api import Answer, Authorized, Deferred
from kquorum.broker.apis.leaders import MOVED, CurrentLeader, current_leader, leader_nodes
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.fetch.reading import (
    CONSUMER,
    FetchBounds,
    FetchedData,
    FetchWait,
    Nearest,
    reading,
)
from kquorum.broker.fetch.replica_selection import nearest_replica
from kquorum.broker.fetch.sessions import FetchContext, FetchedPartition, FetchNews
from kquorum.broker.log.errors import InconsistentTopicId
from kquorum.broker.log.partition_log import Isolation
from kquorum.broker.quota.client_quotas import ClientQuota
from kquorum.broker.replica.partition import Partition, TopicPartition
from kquorum.metadata.authorizer.codes import Operation
from kquorum.wire.message_schema import Records
from kquorum.wire.messages import fetch
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.fetch import FetchRequest, FetchResponse
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.uuids import ZERO_UUID

_READ_COMMITTED: Final = 1
_FIRST_VERSION_WITH_STORAGE_ERROR: Final = 6
_FIRST_VERSION_FROM_FOLLOWERS: Final = 11
_FIRST_VERSION_WITH_IDS: Final = 13
_FIRST_VERSION_WITH_REPLICA_STATE: Final = 15
_FIRST_VERSION_WITH_NODES: Final = 16
# Partitions, of what is cheap for each: a session has thousands of them, and its Fetch a few bytes.
_IN_A_STEP: Final = 100
# About what a partition takes in an answer besides its records, as the quota of bytes counts it.
_PARTITION_BYTES: Final = 60

# Topics that a client made up, and those that it may not know of.
_UNKNOWN: Final = frozenset(
    {
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_id,
        ErrorCode.topic_authorization_failed,
    }
)

Reply = Callable[[Answer], None]


@dataclass(frozen=True, slots=True)
class _Fetch:
    """One request under way."""

    context: RequestContext
    services: BrokerServices
    session: FetchContext
    bounds: FetchBounds
    # By partition of the session's order: an error, or None where it is to be read. Filled before anything is read.
    refused: list[ErrorCode | None]
    reply: Reply
    # Whether a follower has its right; None for a consumer, who needs one on each topic.
    may_all: bool | None

    @property
    def interesting(self) -> list[FetchedPartition]:
        pairs = zip(self.session.partitions, self.refused, strict=True)
        return [each for each, error in pairs if error is None]

    def find(self, asked: FetchedPartition) -> Partition:
        """Raises LogError."""
        assert asked.topic is not None, "a partition without a name is refused"
        services = self.services
        found = services.data.find(services.cache.image, asked.topic, asked.partition)
        if asked.topic_id not in (ZERO_UUID, found.topic_id):
            raise InconsistentTopicId(
                f"{asked.topic}-{asked.partition} has the topic id {found.topic_id} here"
            )
        return found

    def begin(self, max_wait_ms: int) -> None:
        data = self.services.data
        turn = data.slices.turn

        def read() -> None:
            if not self.is_throttled():
                self.read(partial(self.answer_or_wait, max_wait_ms, turn), counts=True)

        data.slices.run(self._refusing(self.may_all), read, self.end)

    def read(self, then: Callable[[list[FetchedData]], None], *, counts: bool) -> None:
        """When the budget has room for the records: sixty bytes of a request ask for megabytes, and a peer that does
        not read them would fill the memory with a few hundred connections."""
        forget = self.context.when_gone(self.context.making.go_on_anyway)
        self._read_with_room(then, counts, forget)

    def _read_with_room(
        self, then: Callable[[list[FetchedData]], None], counts: bool, forget: Callable[[], None]
    ) -> None:
        """No function here refers to itself: what it read would stay in memory until the garbage collector comes."""
        if self.context.is_gone():
            self.end()
        elif self.context.making.may_go_on(partial(self._read_with_room, then, counts, forget)):
            forget()
            found: list[FetchedData] = []
            self.services.data.slices.run(self._reading(found, counts), partial(then, found), self.end)

    def _reading(self, found: list[FetchedData], counts: bool) -> Iterator[None]:
        asked, making = self.interesting, self.context.making
        for _ in reading(self.services.data.now_ms, asked, self.bounds, self.find, found, counts=counts):
            if found[-1].size_bytes:
                making.note_made(found[-1].size_bytes)
            yield

    def _refusing(self, may_all: bool | None) -> Iterator[None]:
        access, image = self.services.access(self.context), self.services.cache.image
        partitions = self.session.partitions
        is_allowed: dict[str, bool] = {}
        for number, each in enumerate(partitions):
            if number and number % _IN_A_STEP == 0:
                yield
            if each.topic is None:
                # Ids tell nothing, so this comes before any authorization.
                self.refused.append(ErrorCode.unknown_topic_id)
                continue
            allowed = is_allowed.get(each.topic) if may_all is None else may_all
            if allowed is None:
                allowed = is_allowed[each.topic] = access.allows_on_topic(Operation.READ, each.topic)
            if not allowed:
                self.refused.append(ErrorCode.topic_authorization_failed)
            elif not self.services.data.is_known(image, each.topic, each.partition):
                self.refused.append(ErrorCode.unknown_topic_or_partition)
            else:
                self.refused.append(None)

    def end(self) -> None:
        self.context.making.end()
        self.reply(None)

    def answer_again(self) -> None:
        """After a wait. What a follower's offset says was counted when its request came."""
        if self.is_throttled():
            return
        if not self.session.is_incremental:
            self.read(self.answer, counts=False)
            return
        self.session.look()
        self.refused.clear()
        self.services.data.slices.run(
            self._refusing(self.may_all), lambda: self.read(self.answer, counts=False), self.end
        )

    def answer_or_wait(self, max_wait_ms: int, turn: int, found: Sequence[FetchedData]) -> None:
        """`turn` is that in which the reading began."""
        data, bounds = self.services.data, self.bounds
        data.settle_soon()
        size_bytes = sum(each.size_bytes for each in found)
        # Nothing that could have news: all partitions are refused.
        is_hopeless = not found and not self.session.has_resting
        must_answer = max_wait_ms <= 0 or is_hopeless or size_bytes >= bounds.min_bytes
        # A client that has as many waiting as no client needs is answered at once, with what is there.
        must_answer = must_answer or not data.waits.have_room(self.context.connection_id, len(found))
        if bounds.tells_watermarks and self.session.is_incremental:
            must_answer = must_answer or any(map(_has_news, found))
        if must_answer or any(each.has_to_be_told for each in found):
            self.answer(found)
            return
        deadline_ms = data.now_ms() + max_wait_ms
        in_session = self.session.is_incremental
        wait = FetchWait(
            found, bounds, self.find, deadline_ms, self.answer_again, self.end, in_session=in_session
        )
        self.context.making.give_back()
        forget = self.context.when_gone(lambda: data.waits.abandon(wait))
        if in_session:
            end_wait = self.session.park(wait, [_news_of(each) for each in found])

            def end_both() -> None:
                end_wait()
                forget()

            wait.forget = end_both
        else:
            wait.forget = forget

        def is_watched() -> None:
            if wait.has_failed or (wait.has_enough and data.slices.turn != turn):
                data.waits.end(wait, data.now_ms())

        data.wait(wait, self.context.connection_id, self.context.park, is_watched)

    def is_throttled(self) -> bool:
        """Whether the client has exceeded its quota, and was answered without records before anything is read: Kafka
        reads, and throws away what it read."""
        if self.bounds.is_follower:
            return False
        context, now_ms = self.context, self.services.data.now_ms()
        throttle_ms = self.services.quotas.throttle_ms(
            ClientQuota.FETCH, now_ms, context.principal, context.header.client_id
        )
        if not throttle_ms:
            return False
        context.throttle(throttle_ms)
        error, session_id, _ = self.session.answer(now_ms, ())
        self.reply(FetchResponse(error_code=error, session_id=session_id, throttle_time_ms=throttle_ms))
        return True

    def _charge(self, told: Sequence[FetchedData]) -> int:
        """Count what is sent; for how many ms a consumer is throttled."""
        if self.bounds.is_follower:
            self._count_throttled(told)
            return 0
        context = self.context
        throttle_ms = self.services.quotas.charge(
            ClientQuota.FETCH,
            self.services.data.now_ms(),
            context.principal,
            context.header.client_id,
            sum(each.size_bytes + _PARTITION_BYTES for each in told),
        )
        if throttle_ms:
            context.throttle(throttle_ms)
        return throttle_ms

    def answer(self, found: Sequence[FetchedData]) -> None:
        self.services.data.slices.run(self._answering(found), lambda: None, self.end)

    def _answering(self, found: Sequence[FetchedData]) -> Iterator[None]:
        read = iter(found)
        answers: list[FetchedData] = []
        news: list[FetchNews] = []
        for asked, refusal in zip(self.session.partitions, self.refused, strict=True):
            if answers and len(answers) % _IN_A_STEP == 0:
                yield
            each = FetchedData(asked, refusal) if refusal is not None else next(read)
            answers.append(each)
            news.append(_news_of(each))
        error, session_id, is_in_answer = self.session.answer(self.services.data.now_ms(), news)
        told = [each for each, is_in in zip(answers, is_in_answer, strict=True) if is_in]
        self._count(told)
        throttle_ms = self._charge(told)
        if len(told) > _IN_A_STEP:
            yield
        response = FetchResponse()
        yield from self._filling(response, told)
        response.error_code, response.session_id = error, session_id
        response.throttle_time_ms = throttle_ms
        # What was read counts as output from now on.
        self.context.making.end()
        self.reply(response)

    def _count(self, told: Sequence[FetchedData]) -> None:
        traffic = self.services.data.traffic
        if self.bounds.is_follower:
            traffic.replication_bytes_out += sum(each.size_bytes for each in told)
            return
        for each in told:
            is_unknown = each.asked.topic is None or each.error in _UNKNOWN
            counters = traffic.of_unknown_topics if is_unknown else traffic.of(each.asked.topic or "")
            counters.fetch_requests += 1
            if each.error is not ErrorCode.none:
                counters.failed_fetch_requests += 1
            counters.bytes_out += each.size_bytes

    def _count_throttled(self, told: Sequence[FetchedData]) -> None:
        """What replicas get that are in sync counts, too; they do not wait for it."""
        data = self.services.data
        throttle = data.leader_throttle
        if throttle is None:
            return
        size_bytes = sum(
            each.size_bytes
            for each in told
            if each.asked.topic is not None
            and throttle.is_throttled(TopicPartition(each.asked.topic, each.asked.partition))
        )
        if size_bytes:
            throttle.record(data.now_ms(), size_bytes)

    def _filling(self, response: FetchResponse, told: Sequence[FetchedData]) -> Iterator[None]:
        version = self.context.header.api_version
        names_leaders = version >= _FIRST_VERSION_WITH_NODES and not self.bounds.is_follower
        leaders: list[CurrentLeader] = []
        # Only neighbours of one topic share an entry, for the order is that of the reading.
        topics: list[tuple[str, UUID, list[fetch.PartitionData]]] = []
        for number, each in enumerate(told):
            if number and number % _IN_A_STEP == 0:
                yield
            leader = None
            if names_leaders and each.error in MOVED and each.asked.topic is not None:
                leader = current_leader(self.services, each.asked.topic, each.asked.partition)
                if leader is not None:
                    leaders.append(leader)
            name, topic_id = each.asked.topic or "", each.asked.topic_id
            if not topics or topics[-1][:2] != (name, topic_id):
                topics.append((name, topic_id, []))
            topics[-1][2].append(_partition_data(each, leader, version))
        response.responses = tuple(
            [
                fetch.FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=tuple(partitions))
                for name, topic_id, partitions in topics
            ]
        )
        response.node_endpoints = tuple(
            [
                fetch.NodeEndpoint(
                    node_id=node.node_id, host=node.endpoint.host, port=node.endpoint.port, rack=node.rack
                )
                for node in leader_nodes(self.services, self.context.listener_name, leaders)
            ]
        )


def handle_fetch(
    context: RequestContext, request: FetchRequest, services: BrokerServices, reply: Reply
) -> None:
    data, version = services.data, context.header.api_version
    image = services.cache.image
    by_id = image.topics.by_id

    def name_of(topic_id: UUID) -> str | None:
        topic = by_id.get(topic_id)
        return None if topic is None else topic.name

    bounds = _bounds(context, request, services)
    # A client without the right is no follower, whatever its request says: its session has no privilege.
    is_follower = bounds.is_follower and services.access(context).allows_on_cluster(Operation.CLUSTER_ACTION)
    session = data.sessions.begin(
        data.now_ms(),
        request,
        version,
        principal=context.principal,
        is_follower=is_follower,
        name_of=name_of,
        view=(image.topics, image.cluster, image.security),
    )
    if session.error is not ErrorCode.none:
        reply(FetchResponse(error_code=session.error))
        return
    # Any client may write a broker's id into its request.
    brokers = services.cache.image.cluster.brokers
    context.making.is_for_follower = (
        is_follower and bounds.replica_id in brokers and bounds.replica_id != services.node_id
    )
    may_all = is_follower if bounds.is_follower else None
    _Fetch(context, services, session, bounds, [], reply, may_all).begin(request.max_wait_ms)


# READ on each topic; CLUSTER_ACTION on the cluster for followers.
API: Final = Deferred(ApiKey.FETCH, Authorized.IN_HANDLER, handle=handle_fetch)


def _news_of(found: FetchedData) -> FetchNews:
    return FetchNews(
        partition=found.asked,
        error=found.error,
        high_watermark=found.high_watermark,
        log_start_offset=found.log_start_offset,
        has_records=found.size_bytes > 0,
        has_to_be_told=found.diverging is not None or found.preferred_replica >= 0,
        rests=found.rests,
        progress=found.progress,
    )


def _has_news(found: FetchedData) -> bool:
    """A watermark that the follower was not told."""
    return found.high_watermark > found.asked.told_high_watermark


def _nearest(context: RequestContext, request: FetchRequest, services: BrokerServices) -> Nearest | None:
    if not services.data.chooses_replicas:
        return None

    def nearest(partition: Partition, offset: int) -> int | None:
        brokers = services.cache.image.cluster.brokers
        return nearest_replica(partition, offset, request.rack_id, brokers, context.listener_name)

    return nearest


def _bounds(context: RequestContext, request: FetchRequest, services: BrokerServices) -> FetchBounds:
    version = context.header.api_version
    replica_id, replica_epoch = request.replica_id, -1
    if version >= _FIRST_VERSION_WITH_REPLICA_STATE:
        replica_id, replica_epoch = request.replica_state.replica_id, request.replica_state.replica_epoch
    max_bytes = min(max(request.max_bytes, 0), services.data.fetch_max_bytes)
    if replica_id < 0:
        most = services.quotas.most_in_window(ClientQuota.FETCH, context.principal, context.header.client_id)
        if most is not None:
            # One answer does not use up more than a client may have in all windows, but for its first batch.
            max_bytes = min(max_bytes, int(most))
    isolation = Isolation.HIGH_WATERMARK
    if replica_id >= 0:
        isolation = Isolation.LOG_END
    elif request.isolation_level == _READ_COMMITTED:
        isolation = Isolation.COMMITTED
    return FetchBounds(
        replica_id=max(replica_id, CONSUMER),
        replica_epoch=replica_epoch,
        isolation=isolation,
        min_bytes=min(max(request.min_bytes, 0), max_bytes),
        max_bytes=max_bytes,
        # KIP-392: consumers from this version on may read from any replica.
        leader_only=replica_id >= 0 or version < _FIRST_VERSION_FROM_FOLLOWERS,
        throttle=services.data.leader_throttle,
        nearest=_nearest(context, request, services),
    )


def _partition_data(found: FetchedData, leader: CurrentLeader | None, version: int) -> fetch.PartitionData:
    error = found.error
    if error is ErrorCode.kafka_storage_error and version < _FIRST_VERSION_WITH_STORAGE_ERROR:
        error = ErrorCode.not_leader_or_follower
    aborted = None
    if found.aborted is not None:
        aborted = tuple(
            [
                fetch.AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                for each in found.aborted
            ]
        )
    return fetch.PartitionData(
        partition_index=found.asked.partition,
        error_code=error,
        high_watermark=found.high_watermark,
        last_stable_offset=found.last_stable_offset,
        log_start_offset=found.log_start_offset,
        diverging_epoch=fetch.EpochEndOffset()
        if found.diverging is None
        else fetch.EpochEndOffset(epoch=found.diverging.leader_epoch, end_offset=found.diverging.end_offset),
        current_leader=fetch.LeaderIdAndEpoch()
        if leader is None
        else fetch.LeaderIdAndEpoch(leader_id=leader.leader_id, leader_epoch=leader.leader_epoch),
        aborted_transactions=aborted,
        preferred_read_replica=found.preferred_replica,
        records=_joined(found.records),
    )


def _joined(pieces: Sequence[bytes | memoryview]) -> Records:
    """Never null, which librdkafka takes for damage. A read ends with its segment, so there is one piece as a rule."""
    if len(pieces) == 1:
        return pieces[0]
    return b"".join(pieces)


def kind_of_fetch(request: FetchRequest) -> str:
    """The times of consumers and of followers are measured apart, under Kafka's names."""
    is_of_follower = request.replica_id >= 0 or request.replica_state.replica_id >= 0
    return "FetchFollower" if is_of_follower else "FetchConsumer"
