"""AddPartitionsToTxn (24), AddOffsetsToTxn (25) and EndTxn (26): what belongs to a transaction, and how it ends.

From version 4 on AddPartitionsToTxn comes from other brokers alone: the leaders of partitions verify, or add, what a
producer wrote (KIP-890).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from kquorum.broker.apis.api import Answer, Authorized, Deferred
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.coordinators.partitioning import OFFSETS_TOPIC
from kquorum.broker.internal_topics import INTERNAL_TOPICS
from kquorum.broker.log.producer_state import ProducerEpoch
from kquorum.broker.replica.partition import TopicPartition
from kquorum.broker.transactions.additions import Addition, Additions
from kquorum.broker.transactions.shard import NO_PRODUCER_EPOCH
from kquorum.broker.transactions.transaction import EPOCH_BUMP
from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kquorum.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from kquorum.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.protocol.api_keys import ApiKey

Reply = Callable[[Answer], None]
Errors = Mapping[TopicPartition, ErrorCode]

_FIRST_FROM_BROKERS: Final = 4
_FIRST_WITH_PRODUCER_FENCED: Final = 2
_FIRST_END_WITH_EPOCH: Final = 5


def handle_add_partitions(
    context: RequestContext, request: AddPartitionsToTxnRequest, services: BrokerServices, reply: Reply
) -> None:
    if context.header.api_version < _FIRST_FROM_BROKERS:
        _add_for_client(context, request, services, reply)
    elif services.access(context).allows_on_cluster(Operation.CLUSTER_ACTION):
        _add_for_broker(request, services, reply)
    else:
        reply(AddPartitionsToTxnResponse(error_code=ErrorCode.cluster_authorization_failed))


# WRITE on the transactional id and on each topic; for other brokers CLUSTER_ACTION on the cluster.
ADD_PARTITIONS: Final = Deferred(
    ApiKey.ADD_PARTITIONS_TO_TXN, Authorized.IN_HANDLER, handle=handle_add_partitions
)


def _add_for_client(
    context: RequestContext, request: AddPartitionsToTxnRequest, services: BrokerServices, reply: Reply
) -> None:
    transactional_id = request.v3_and_below_transactional_id
    partitions = _partitions(request.v3_and_below_topics)

    def answer(errors: Errors) -> None:
        reply(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(errors)))

    def answer_all(error: ErrorCode) -> None:
        answer(dict.fromkeys(partitions, _known_error(context, error)))

    access = services.access(context)
    if not access.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        answer_all(ErrorCode.transactional_id_authorization_failed)
        return
    denied = {
        topic
        for topic in {each.topic for each in partitions}
        if topic in INTERNAL_TOPICS or not access.allows_on_topic(Operation.WRITE, topic)
    }
    refused = {
        each: ErrorCode.topic_authorization_failed
        if each.topic in denied
        else ErrorCode.unknown_topic_or_partition
        for each in partitions
        if each.topic in denied or not _exists(services, each)
    }
    if refused:
        answer({each: refused.get(each, ErrorCode.operation_not_attempted) for each in partitions})
        return
    producer = ProducerEpoch(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
    _add(services, transactional_id, producer, partitions, answer_all)


def _add_for_broker(request: AddPartitionsToTxnRequest, services: BrokerServices, reply: Reply) -> None:
    """One answer for all transactions, when the last of them is decided."""
    # A transaction that is named twice, which no broker does, counts as it is named last.
    asked = {each.transactional_id: each for each in request.transactions}
    results: dict[str, Errors] = {}

    def answer(outcomes: Mapping[str, ErrorCode]) -> None:
        for transactional_id, error in outcomes.items():
            results[transactional_id] = dict.fromkeys(_partitions(asked[transactional_id].topics), error)
        reply(
            AddPartitionsToTxnResponse(
                results_by_transaction=tuple(
                    [
                        AddPartitionsToTxnResult(
                            transactional_id=transactional_id, topic_results=_results(errors)
                        )
                        for transactional_id, errors in results.items()
                    ]
                )
            )
        )

    additions = Additions(answer)
    coordinator = services.transactions
    # The other broker would wait as long before it asks again.
    until_ms = services.data.now_ms() + coordinator.settings.add_retry_ms

    def asking() -> Iterator[None]:
        """A transaction at each step, which may be a write."""
        for each in asked.values():
            partitions = _partitions(each.topics)
            producer = ProducerEpoch(each.producer_id, each.producer_epoch)
            decided = _decided_at_once(services, each, producer, partitions)
            if decided is None:
                additions.add(
                    coordinator,
                    each.transactional_id,
                    producer,
                    partitions,
                    version=EPOCH_BUMP,
                    until_ms=until_ms,
                )
            else:
                results[each.transactional_id] = decided
            services.data.settle_soon()
            yield

    services.data.slices.run(
        asking(), lambda: additions.all_added(has_others=bool(results)), lambda: reply(None)
    )


def _decided_at_once(
    services: BrokerServices,
    asked: AddPartitionsToTxnTransaction,
    producer: ProducerEpoch,
    partitions: Collection[TopicPartition],
) -> Errors | None:
    """What is not to be added. None: the transaction's coordinator here is to add the partitions."""
    unknown = [each for each in partitions if not _exists(services, each)]
    if unknown:
        errors = dict.fromkeys(partitions, ErrorCode.operation_not_attempted)
        return errors | dict.fromkeys(unknown, ErrorCode.unknown_topic_or_partition)
    if not asked.transactional_id:
        return dict.fromkeys(partitions, ErrorCode.invalid_request)
    if not asked.verify_only:
        return None
    shard = services.transactions.shard_of(asked.transactional_id)
    if isinstance(shard, ErrorCode):
        return dict.fromkeys(partitions, shard)
    return shard.verify_partitions(asked.transactional_id, producer, partitions)


def _add(
    services: BrokerServices,
    transactional_id: str,
    producer: ProducerEpoch,
    partitions: Collection[TopicPartition],
    done: Callable[[ErrorCode], None],
) -> None:
    """For a client."""
    coordinator = services.transactions
    if not transactional_id:
        done(ErrorCode.invalid_request)
        return
    Addition(
        coordinator,
        transactional_id,
        producer,
        partitions,
        version=0,
        until_ms=services.data.now_ms() + coordinator.settings.add_retry_max_ms,
        done=done,
    ).begin()
    services.data.settle_soon()


def handle_add_offsets(
    context: RequestContext, request: AddOffsetsToTxnRequest, services: BrokerServices, reply: Reply
) -> None:
    """The partition of the group's offsets takes part in the transaction."""

    def answer(error: ErrorCode) -> None:
        reply(AddOffsetsToTxnResponse(error_code=_known_error(context, error)))

    access = services.access(context)
    if not access.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        answer(ErrorCode.transactional_id_authorization_failed)
    elif not access.allows(Operation.READ, ResourceType.GROUP, request.group_id):
        answer(ErrorCode.group_authorization_failed)
    else:
        partition = TopicPartition(OFFSETS_TOPIC, services.groups.partition_of(request.group_id))
        producer = ProducerEpoch(request.producer_id, request.producer_epoch)
        _add(services, request.transactional_id, producer, (partition,), answer)


# WRITE on the transactional id, READ on the group.
ADD_OFFSETS: Final = Deferred(ApiKey.ADD_OFFSETS_TO_TXN, Authorized.IN_HANDLER, handle=handle_add_offsets)


def handle_end(
    context: RequestContext, request: EndTxnRequest, services: BrokerServices, reply: Reply
) -> None:
    """The version alone says whether the producer goes on with another epoch (rule T5.1)."""

    def answer(error: ErrorCode, given: ProducerEpoch = NO_PRODUCER_EPOCH) -> None:
        reply(
            EndTxnResponse(
                error_code=_known_error(context, error),
                producer_id=given.producer_id,
                producer_epoch=given.epoch,
            )
        )

    transactional_id = request.transactional_id
    access = services.access(context)
    if not access.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        answer(ErrorCode.transactional_id_authorization_failed)
        return
    shard = services.transactions.shard_of(transactional_id)
    if not transactional_id:
        answer(ErrorCode.invalid_request)
    elif isinstance(shard, ErrorCode):
        answer(shard)
    else:
        shard.end(
            services.data.now_ms(),
            transactional_id,
            ProducerEpoch(request.producer_id, request.producer_epoch),
            is_commit=request.committed,
            version=EPOCH_BUMP if context.header.api_version >= _FIRST_END_WITH_EPOCH else 0,
            done=answer,
        )
        services.data.settle_soon()


# WRITE on the transactional id.
END: Final = Deferred(ApiKey.END_TXN, Authorized.IN_HANDLER, handle=handle_end)


def _known_error(context: RequestContext, error: ErrorCode) -> ErrorCode:
    """Clients before version 2 know no PRODUCER_FENCED."""
    if error is ErrorCode.producer_fenced and context.header.api_version < _FIRST_WITH_PRODUCER_FENCED:
        return ErrorCode.invalid_producer_epoch
    return error


def _partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> tuple[TopicPartition, ...]:
    return tuple(
        dict.fromkeys(TopicPartition(topic.name, index) for topic in topics for index in topic.partitions)
    )


def _exists(services: BrokerServices, partition: TopicPartition) -> bool:
    topic = services.cache.image.topics.by_name.get(partition.topic)
    return topic is not None and topic.partitions.get(partition.partition) is not None


def _results(errors: Errors) -> tuple[AddPartitionsToTxnTopicResult, ...]:
    topics: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for each, error in errors.items():
        topics.setdefault(each.topic, []).append(
            AddPartitionsToTxnPartitionResult(partition_index=each.partition, partition_error_code=error)
        )
    return tuple(
        [
            AddPartitionsToTxnTopicResult(name=topic, results_by_partition=tuple(results))
            for topic, results in topics.items()
        ]
    )
