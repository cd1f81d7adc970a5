"""Produce (api key 0): append batches to partitions that this broker leads, and answer when they are as safe as the
producer asked for.

With acks=all the answer waits for the high watermark. With acks=0 there is no answer: a producer learns of an error by
the end of its connection alone. A failure concerns its partition, and the rest of the request goes on.

The first records of a transaction in a partition are appended when the transaction's coordinator has said that the
partition is in it (`broker.transactions.guarded_appends`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from kquorum.broker.apis.api import Answer, Authorized, Deferred
from kquorum.broker.apis.leaders import MOVED, CurrentLeader, current_leader, leader_nodes
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.data_plane import UnknownTopicId, UnknownTopicOrPartition
from kquorum.broker.fetch.waits import Wait
from kquorum.broker.internal_topics import INTERNAL_TOPICS
from kquorum.broker.log.errors import (
    CorruptRecord,
    InvalidRecord,
    LogError,
    RecordsRefused,
    UnsupportedCompressionType,
)
from kquorum.broker.log.partition_log import VerificationGuard
from kquorum.broker.log.producer_state import ProducerEpoch
from kquorum.broker.quota.client_quotas import ClientQuota
from kquorum.broker.replica.partition import ACKS_ALL, Partition, TopicPartition, Wake
from kquorum.broker.transactions.guarded_appends import Guards, Place
from kquorum.broker.transactions.verification import Mode, mode_of_produce
from kquorum.metadata.authorizer.access import Access
from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.wire.message_schema import Records
from kquorum.wire.messages import produce
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.protocol.headers import NO_ANSWER

NO_OFFSET: Final = -1
_LAWFUL_ACKS: Final = frozenset({-1, 0, 1})
_FIRST_VERSION_WITH_IDS: Final = 13
_FIRST_VERSION_WITH_ZSTD: Final = 7
_FIRST_VERSION_WITH_LEADERS: Final = 10
_ZSTD: Final = 4
_CODEC_MASK: Final = 0x07
_IS_TRANSACTIONAL: Final = 0x10
_HEADER_BYTES: Final = 61
_LENGTH: Final = struct.Struct(">i")
_LENGTH_AT: Final = 8
_MAGIC_AT: Final = 16
_ATTRIBUTES_AT: Final = 22
# Producer id, epoch, first sequence.
_PRODUCER: Final = struct.Struct(">qhi")
_PRODUCER_AT: Final = 43
# Kafka's administrative client may write into the topics of the coordinators.
_ADMIN_CLIENT: Final = "__admin_client"
# An error of these kinds says nothing of the log; with the others a producer that is idempotent has to learn where the
# log begins, by which it judges whether its state was lost.
_WITHOUT_LOG_START: Final = frozenset(
    {
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_id,
        ErrorCode.not_leader_or_follower,
        ErrorCode.message_too_large,
        ErrorCode.corrupt_message,
        ErrorCode.kafka_storage_error,
    }
)

# Producers ask again after it, without new metadata.
_NOT_ENOUGH_REPLICAS_FOR: Final = frozenset(
    {
        ErrorCode.network_exception,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
    }
)

Reply = Callable[[Answer], None]


@dataclass(frozen=True, slots=True)
class _Asked:
    """One partition of the request, under the name or id that the request has for its topic."""

    topic: str
    topic_id: UUID
    index: int


@dataclass(slots=True)
class _Outcome:
    """`waits_at`: the partition and the offset that its high watermark has to reach, as long as neither is decided."""

    error: ErrorCode = ErrorCode.none
    base_offset: int = NO_OFFSET
    log_append_time_ms: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    record_errors: tuple[tuple[int, str], ...] = ()
    message: str | None = None
    waits_at: tuple[Partition, int] | None = None

    def decide(self) -> bool:
        """Whether the partition has its answer."""
        if self.waits_at is None:
            return True
        partition, required_offset = self.waits_at
        error = partition.acknowledgement(required_offset)
        if error is None:
            return False
        self.error, self.waits_at = error, None
        return True


class _Refused(LogError):
    """An error of the request, not of a log."""

    def __init__(self, error_code: ErrorCode, message: str = "") -> None:
        super().__init__(message)
        self.refusal = error_code


Outcomes = Mapping[_Asked, _Outcome]


@dataclass(frozen=True, slots=True)
class _Transactional:
    """Where a request writes records of transactions: with the producer, and the first sequence in each partition.
    `refused` and `guards` are what the coordinator's answer has made of them."""

    producers: frozenset[ProducerEpoch] = frozenset()
    sequences: Mapping[_Asked, int] = field(default_factory=dict)
    refused: Mapping[TopicPartition, LogError] = field(default_factory=dict)
    guards: Guards = field(default_factory=dict)


def handle_produce(
    context: RequestContext, request: ProduceRequest, services: BrokerServices, reply: Reply
) -> None:
    transactional = _transactional(request)
    refusal = _refusal_of_all(context, request, services, transactional)
    if refusal is None and transactional.producers:
        _check_first(context, request, services, transactional, reply)
    else:
        _append_and_answer(context, request, services, refusal, transactional, reply)


def _check_first(
    context: RequestContext,
    request: ProduceRequest,
    services: BrokerServices,
    transactional: _Transactional,
    reply: Reply,
) -> None:
    """Ask the coordinator, then append."""
    assert request.transactional_id is not None, "who writes in a transaction has the right to its id"
    [producer] = transactional.producers
    mode = mode_of_produce(context.header.api_version)
    access = services.access(context)
    places = {}
    for asked, sequence in transactional.sequences.items():
        name, topic_id = _name(services, asked, context.header.api_version)
        if _refusal_of_topic(access, context, name) is not None:
            # The append is refused. Were the partition in the transaction, it would get the marker of its end: a record
            # of a client that may write none.
            continue
        try:
            partition = services.data.find(services.cache.image, name, asked.index, topic_id)
        except LogError:
            # The append fails for the same reason.
            continue
        places[partition.topic_partition] = Place(partition, sequence)

    def checked(errors: Mapping[TopicPartition, ErrorCode], guards: Guards) -> None:
        refused = {each: _refusal_of_coordinator(error, mode) for each, error in errors.items()}
        done = replace(transactional, refused=refused, guards=guards)
        _append_and_answer(context, request, services, None, done, reply)

    services.transactions.appends.check(
        request.transactional_id,
        producer,
        places,
        mode,
        is_asked=mode.adds or services.verifies_transactions(),
        retries=True,
        done=checked,
    )
    services.data.settle_soon()


def _append_and_answer(
    context: RequestContext,
    request: ProduceRequest,
    services: BrokerServices,
    refusal: LogError | None,
    transactional: _Transactional,
    reply: Reply,
) -> None:
    """The appends of a connection keep their order, also where those of a request take several turns."""
    outcomes: dict[_Asked, _Outcome] = {}
    services.data.slices.run(
        _appended(context, request, services, refusal, transactional, outcomes),
        lambda: _answer(context, request, services, outcomes, reply),
        lambda: reply(None),
        context.connection_id,
    )


def _answer(
    context: RequestContext,
    request: ProduceRequest,
    services: BrokerServices,
    outcomes: Outcomes,
    reply: Reply,
) -> None:
    """All has been appended."""
    data = services.data
    now_ms = data.now_ms()
    throttle_ms = services.quotas.charge(
        ClientQuota.PRODUCE, now_ms, context.principal, context.header.client_id, len(context.frame)
    )
    if throttle_ms:
        # Now, and not with the answer: requests behind this one wait, though its followers may take long.
        context.throttle(throttle_ms)
    throttled_until_ms = now_ms + throttle_ms
    if request.acks == 0:
        has_failed = any(each.error is not ErrorCode.none for each in outcomes.values())
        reply(None if has_failed else NO_ANSWER)
        return

    def answer() -> None:
        response = _response(context, services, outcomes)
        if throttle_ms:
            response.throttle_time_ms = max(0, throttled_until_ms - data.now_ms())
        reply(response)

    # Not `any` or `all`: each is to be decided.
    undecided = [asked for asked, outcome in outcomes.items() if not outcome.decide()]
    if not undecided:
        answer()
        return
    deadline_ms = now_ms + max(request.timeout_ms, 0)
    wait = _ProduceWait(
        {each: outcomes[each] for each in undecided}, answer, lambda: reply(None), deadline_ms
    )
    wait.forget = context.when_gone(lambda: data.waits.abandon(wait))
    data.wait(wait, context.connection_id, context.park)


# WRITE on each topic, once for each; WRITE on the transactional id.
API: Final = Deferred(ApiKey.PRODUCE, Authorized.IN_HANDLER, handle=handle_produce)


class _ProduceWait(Wait):
    """Until the high watermark has passed the records in all partitions. What was appended stays appended, whatever the
    answer."""

    operation = "Produce"

    def __init__(
        self, outcomes: Outcomes, answer: Callable[[], None], end: Callable[[], None], deadline_ms: int
    ) -> None:
        keys = [TopicPartition(each.topic, each.index) for each in outcomes]
        super().__init__(keys, Wake.HIGH_WATERMARK | Wake.ROLE, deadline_ms)
        self._undecided = dict(zip(keys, outcomes.values(), strict=True))
        self._answer = answer
        self._end = end
        self.forget: Callable[[], None] = lambda: None

    def look(self, now_ms: int, woken: Mapping[TopicPartition, Wake]) -> bool:  # noqa: ARG002 - the port's
        for each in woken:
            outcome = self._undecided.get(each)
            if outcome is not None and outcome.decide():
                del self._undecided[each]
        if self._undecided:
            return False
        self.forget()
        self._answer()
        return True

    def expire(self, now_ms: int) -> None:  # noqa: ARG002 - the port's
        for outcome in self._undecided.values():
            if not outcome.decide():
                outcome.error, outcome.waits_at = ErrorCode.request_timed_out, None
        self.forget()
        self._answer()

    def give_up(self) -> None:
        self.forget()
        self._end()


def _appended(
    context: RequestContext,
    request: ProduceRequest,
    services: BrokerServices,
    refusal: LogError | None,
    transactional: _Transactional,
    outcomes: dict[_Asked, _Outcome],
) -> Iterator[None]:
    """Fills `outcomes`, a partition at each step."""
    version = context.header.api_version
    access = services.access(context)
    services.data.settle_soon()
    for topic in request.topic_data:
        error: LogError | None = refusal
        name, topic_id = topic.name, None
        if version >= _FIRST_VERSION_WITH_IDS:
            known = services.cache.image.topics.by_id.get(topic.topic_id)
            if known is None:
                error = error or UnknownTopicId(f"there is no topic with the id {topic.topic_id}")
            else:
                name, topic_id = known.name, known.id
        error = error or _refusal_of_topic(access, context, name)
        for partition in topic.partition_data:
            asked = _Asked(name, topic.topic_id, partition.index)
            if asked in outcomes:
                outcomes[asked] = _Outcome(ErrorCode.invalid_request, message="the partition is named twice")
                continue
            key = TopicPartition(name, partition.index)
            refused = error or transactional.refused.get(key)
            outcomes[asked] = (
                _append(
                    services,
                    asked,
                    topic_id,
                    partition.records,
                    version,
                    request.acks,
                    transactional.guards.get(key),
                )
                if refused is None
                else _failed(refused, None)
            )
            yield
            # In the turn of the append, which may be a later one.
            services.data.settle_soon()


def _name(services: BrokerServices, asked: _Asked, version: int) -> tuple[str, UUID | None]:
    if version < _FIRST_VERSION_WITH_IDS:
        return asked.topic, None
    known = services.cache.image.topics.by_id.get(asked.topic_id)
    return ("", None) if known is None else (known.name, known.id)


def _transactional(request: ProduceRequest) -> _Transactional:
    producers: set[ProducerEpoch] = set()
    sequences: dict[_Asked, int] = {}
    for topic in request.topic_data:
        for partition in topic.partition_data:
            records = partition.records
            if records is None or not _is_transactional(records):
                continue
            producer_id, epoch, sequence = _PRODUCER.unpack_from(records, _PRODUCER_AT)
            producers.add(ProducerEpoch(producer_id, epoch))
            sequences[_Asked(topic.name, topic.topic_id, partition.index)] = sequence
    return _Transactional(frozenset(producers), sequences) if producers else _NOT_TRANSACTIONAL


_NOT_TRANSACTIONAL: Final = _Transactional()


def _refusal_of_all(
    context: RequestContext, request: ProduceRequest, services: BrokerServices, transactional: _Transactional
) -> LogError | None:
    if transactional.producers:
        transactional_id = request.transactional_id
        if transactional_id is None or not services.access(context).allows(
            Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
        ):
            return _Refused(ErrorCode.transactional_id_authorization_failed)
        if len(transactional.producers) > 1:
            return _Refused(ErrorCode.invalid_producer_id_mapping, "the records have several producers")
    return None if request.acks in _LAWFUL_ACKS else _Refused(ErrorCode.invalid_required_acks)


def _refusal_of_coordinator(error: ErrorCode, mode: Mode) -> LogError:
    """What producers know how to go on after."""
    waits = error is ErrorCode.concurrent_transactions and not mode.adds
    if waits or error in _NOT_ENOUGH_REPLICAS_FOR:
        return _Refused(
            ErrorCode.not_enough_replicas,
            f"whether the partition is in the transaction is not known yet: {error.name.upper()}",
        )
    if error is ErrorCode.invalid_txn_state:
        return _Refused(error, "the partition was not added to the transaction")
    return _Refused(error)


def _refusal_of_topic(access: Access, context: RequestContext, name: str) -> LogError | None:
    if not access.allows_on_topic(Operation.WRITE, name):
        return _Refused(ErrorCode.topic_authorization_failed)
    if name in INTERNAL_TOPICS and context.header.client_id != _ADMIN_CLIENT:
        return _Refused(ErrorCode.invalid_topic_exception, f"{name} is written by its coordinator alone")
    return None


def _append(
    services: BrokerServices,
    asked: _Asked,
    topic_id: UUID | None,
    records: Records | None,
    version: int,
    acks: int,
    guard: VerificationGuard | None,
) -> _Outcome:
    data, image = services.data, services.cache.image
    partition: Partition | None = None
    try:
        if not data.is_known(image, asked.topic, asked.index):
            raise UnknownTopicOrPartition(f"there is no partition {asked.topic}-{asked.index}")
        batch = _only_batch(records, version)
        partition = data.find(image, asked.topic, asked.index, topic_id)
        appended = partition.append(data.now_ms(), batch, required_acks=acks, guard=guard)
    except LogError as error:
        counters = data.traffic.of(asked.topic) if partition is not None else data.traffic.of_unknown_topics
        counters.produce_requests += 1
        counters.failed_produce_requests += 1
        return _failed(error, partition)
    batches = appended.batches
    counters = data.traffic.of(asked.topic)
    counters.produce_requests += 1
    if not batches.duplicate:
        counters.messages_in += batches.last_offset - batches.first_offset + 1
        counters.bytes_in += batches.size_bytes
    return _Outcome(
        base_offset=batches.first_offset,
        log_append_time_ms=batches.log_append_time_ms,
        log_start_offset=batches.log_start_offset,
        waits_at=(partition, appended.required_offset) if acks == ACKS_ALL else None,
    )


def _failed(error: LogError, partition: Partition | None) -> _Outcome:
    code = error.refusal if isinstance(error, _Refused) else type(error).error_code
    has_log_start = partition is not None and code not in _WITHOUT_LOG_START
    return _Outcome(
        code,
        log_start_offset=partition.log.log_start_offset
        if partition is not None and has_log_start
        else NO_OFFSET,
        record_errors=error.record_errors if isinstance(error, RecordsRefused) else (),
        message=(str(error) or None) if isinstance(error, RecordsRefused | _Refused) else None,
    )


def _only_batch(records: Records | None, version: int) -> bytes | memoryview:
    """A producer sends one batch a partition, of magic 2. Raises InvalidRecord, UnsupportedCompressionType, and
    CorruptRecord for a magic that no Kafka has."""
    size = 0 if records is None else len(records)
    if records is None or size < _HEADER_BYTES:
        raise InvalidRecord("a produce request needs one record batch for each partition")
    if records[_MAGIC_AT] > 2:
        raise CorruptRecord(f"a record batch has magic {records[_MAGIC_AT]}")
    if records[_MAGIC_AT] < 2:
        raise InvalidRecord(f"record batches of magic {records[_MAGIC_AT]} are not taken from producers")
    end = _LENGTH_AT + _LENGTH.size + _LENGTH.unpack_from(records, _LENGTH_AT)[0]
    if end > size:
        raise InvalidRecord(f"the record batch has {size} bytes, its header says {end}")
    if end < _HEADER_BYTES:
        # The log says that its length cannot be right.
        return records
    if records[_ATTRIBUTES_AT] & _CODEC_MASK == _ZSTD and version < _FIRST_VERSION_WITH_ZSTD:
        raise UnsupportedCompressionType(f"zstd comes with version {_FIRST_VERSION_WITH_ZSTD} of Produce")
    rest = size - end
    if rest >= _HEADER_BYTES and rest >= 12 + _LENGTH.unpack_from(records, end + _LENGTH_AT)[0]:
        raise InvalidRecord("a produce request has one record batch for each partition, not several")
    return records if not rest else memoryview(records)[:end]


def _is_transactional(records: Records) -> bool:
    if len(records) < _HEADER_BYTES or records[_MAGIC_AT] != 2:
        return False
    if not records[_ATTRIBUTES_AT] & _IS_TRANSACTIONAL:
        return False
    has_producer: bool = _PRODUCER.unpack_from(records, _PRODUCER_AT)[0] >= 0
    return has_producer


def _response(context: RequestContext, services: BrokerServices, outcomes: Outcomes) -> ProduceResponse:
    version = context.header.api_version
    leaders: dict[_Asked, CurrentLeader] = {}
    if version >= _FIRST_VERSION_WITH_LEADERS:
        for asked, outcome in outcomes.items():
            leader = current_leader(services, asked.topic, asked.index) if outcome.error in MOVED else None
            if leader is not None:
                leaders[asked] = leader
    by_topic: dict[tuple[str, UUID], list[produce.PartitionProduceResponse]] = {}
    for asked, outcome in outcomes.items():
        leader = leaders.get(asked)
        by_topic.setdefault((asked.topic, asked.topic_id), []).append(
            produce.PartitionProduceResponse(
                index=asked.index,
                error_code=outcome.error,
                base_offset=outcome.base_offset,
                log_append_time_ms=outcome.log_append_time_ms,
                log_start_offset=outcome.log_start_offset,
                record_errors=tuple(
                    [
                        produce.BatchIndexAndErrorMessage(
                            batch_index=index, batch_index_error_message=message
                        )
                        for index, message in outcome.record_errors
                    ]
                ),
                error_message=outcome.message,
                current_leader=produce.LeaderIdAndEpoch()
                if leader is None
                else produce.LeaderIdAndEpoch(leader_id=leader.leader_id, leader_epoch=leader.leader_epoch),
            )
        )
    return ProduceResponse(
        responses=tuple(
            [
                produce.TopicProduceResponse(
                    name=name, topic_id=topic_id, partition_responses=tuple(partitions)
                )
                for (name, topic_id), partitions in by_topic.items()
            ]
        ),
        node_endpoints=tuple(
            [
                produce.NodeEndpoint(
                    node_id=node.node_id, host=node.endpoint.host, port=node.endpoint.port, rack=node.rack
                )
                for node in leader_nodes(services, context.listener_name, leaders.values())
            ]
        ),
    )
