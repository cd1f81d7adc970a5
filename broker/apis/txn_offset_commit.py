"""TxnOffsetCommit (api key 28): how far a group has read, as a part of a transaction. The offsets count when the
transaction is committed.

The partition of the group has to be in the transaction: before version 5 the producer added it (AddOffsetsToTxn), from
then on this broker does (KIP-890).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

from kquorum.broker.apis.api import Answer, Authorized, Deferred
from kquorum.broker.apis.commits import PlaceInRequest, answered_topics, sort_commit
from kquorum.broker.apis.services import BrokerServices, RequestContext
from kquorum.broker.coordinators.coordinator_log import TransactionOf
from kquorum.broker.groups.shard import Commit, OffsetToCommit
from kquorum.broker.log.partition_log import VerificationGuard
from kquorum.broker.log.producer_state import ProducerEpoch
from kquorum.broker.transactions.guarded_appends import Guards, Place
from kquorum.broker.transactions.verification import Errors, mode_of_offsets
from kquorum.metadata.authorizer.codes import Operation, ResourceType
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kquorum.wire.protocol.api_keys import ApiKey
from kquorum.wire.uuids import ZERO_UUID

Reply = Callable[[Answer], None]
_FIRST_WITH_LOAD_IN_PROGRESS: Final = 2
_NO_RETENTION: Final = -1
# A version of OffsetCommit: a producer of any version may work for a member of the consumer protocol (KIP-848).
_KNOWS_CONSUMER_GROUPS: Final = 9


def handle_txn_offset_commit(
    context: RequestContext, request: TxnOffsetCommitRequest, services: BrokerServices, reply: Reply
) -> None:
    version = context.header.api_version
    judge = _judge_of(context, request, services)
    judged = sort_commit(services.cache.image, request.topics, judge)

    def answer(errors: Sequence[ErrorCode]) -> None:
        told = judged.outcomes(errors)
        services.data.settle_soon()
        reply(_response(request, lambda place: _known_error(version, told[place])))

    def answer_all(error: ErrorCode) -> None:
        answer([error] * len(judged.asked))

    if not judged.asked:
        answer(())
        return
    _commit(version, request, services, judged.offsets, answer, answer_all)


# WRITE on the transactional id, READ on the group and on each topic.
API: Final = Deferred(ApiKey.TXN_OFFSET_COMMIT, Authorized.IN_HANDLER, handle=handle_txn_offset_commit)


def _judge_of(
    context: RequestContext, request: TxnOffsetCommitRequest, services: BrokerServices
) -> Callable[[TxnOffsetCommitRequestTopic], tuple[ErrorCode, str, UUID]]:
    access = services.access(context)
    whole = ErrorCode.none
    if not access.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        whole = ErrorCode.transactional_id_authorization_failed
    elif not access.allows(Operation.READ, ResourceType.GROUP, request.group_id):
        whole = ErrorCode.group_authorization_failed

    def judge(topic: TxnOffsetCommitRequestTopic) -> tuple[ErrorCode, str, UUID]:
        """The records of a transaction name no topic id."""
        error = whole
        if error is ErrorCode.none and not access.allows_on_topic(Operation.READ, topic.name):
            error = ErrorCode.topic_authorization_failed
        return error, topic.name, ZERO_UUID

    return judge


def _commit(
    version: int,
    request: TxnOffsetCommitRequest,
    services: BrokerServices,
    wanted: Sequence[OffsetToCommit],
    answer: Callable[[Sequence[ErrorCode]], None],
    answer_all: Callable[[ErrorCode], None],
) -> None:
    if not request.group_id:
        answer_all(ErrorCode.invalid_group_id)
        return
    shard = services.groups.shard_of(request.group_id)
    if isinstance(shard, ErrorCode):
        answer_all(shard)
        return
    if request.producer_id < 0 or request.producer_epoch < 0:
        is_producer = request.producer_id >= 0
        answer_all(ErrorCode.invalid_producer_epoch if is_producer else ErrorCode.invalid_producer_id_mapping)
        return
    producer = ProducerEpoch(request.producer_id, request.producer_epoch)
    partition = shard.partition.topic_partition

    def checked(errors: Errors, guards: Guards) -> None:
        error = errors.get(partition, ErrorCode.none)
        if error is ErrorCode.network_exception:
            # Older clients do not ask again after this one.
            error = ErrorCode.coordinator_load_in_progress
        if error is ErrorCode.none:
            write(guards.get(partition))
        else:
            answer_all(error)

    def write(guard: VerificationGuard | None) -> None:
        """The group may have another coordinator by now."""
        current = services.groups.shard_of(request.group_id)
        if isinstance(current, ErrorCode):
            answer_all(current)
            return
        current.commit_offsets(
            services.data.now_ms(),
            Commit(
                group_id=request.group_id,
                generation=request.generation_id,
                member_id=request.member_id,
                instance_id=request.group_instance_id,
                retention_ms=_NO_RETENTION,
                version=_KNOWS_CONSUMER_GROUPS,
                offsets=wanted,
                transaction=TransactionOf(producer, guard),
            ),
            answer,
        )

    services.transactions.appends.check(
        request.transactional_id,
        producer,
        {partition: Place(shard.partition)},
        mode_of_offsets(version),
        is_asked=services.verifies_transactions(),
        retries=False,
        done=checked,
    )
    services.data.settle_soon()


def _known_error(version: int, error: ErrorCode) -> ErrorCode:
    """Clients before version 2 end themselves on COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296)."""
    is_loading = error is ErrorCode.coordinator_load_in_progress
    if is_loading and version < _FIRST_WITH_LOAD_IN_PROGRESS:
        return ErrorCode.coordinator_not_available
    return error


def _response(
    request: TxnOffsetCommitRequest, error_at: Callable[[PlaceInRequest], ErrorCode]
) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=answered_topics(
            request.topics,
            error_at,
            lambda index, error: TxnOffsetCommitResponsePartition(partition_index=index, error_code=error),
            lambda topic, partitions: TxnOffsetCommitResponseTopic(name=topic.name, partitions=partitions),
        )
    )
