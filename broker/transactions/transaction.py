"""A transactional id: its producer, the state of its transaction, and what each request makes of them.

A `Transaction` is a value. A decision returns the next value, or the error for the client; it changes nothing. Sources:
KIP-98, KIP-360 (epochs after an error) and KIP-890 (an epoch for each transaction, "version 2" here).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Final

from kquorum.broker.log.producer_state import ProducerEpoch
from kquorum.broker.replica.partition import TopicPartition
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.transaction_records import (
    NO_EPOCH,
    NO_PRODUCER,
    NO_TIMESTAMP,
    PartitionsOfTopic,
    TransactionValue,
)

HIGHEST_EPOCH: Final = 32_767
"""It fences a producer, and no producer gets it."""
LAST_EPOCH: Final = HIGHEST_EPOCH - 1
NO_TIMEOUT_MS: Final = 2**31 - 1
"""Of a transaction of two phases (KIP-939), which only its producer ends."""
EPOCH_BUMP: Final = 2
"""The transaction.version from which on the end of each transaction raises the epoch (KIP-890)."""


class TransactionState(IntEnum):
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """Kafka's name."""
        return "".join(part.capitalize() for part in self.name.split("_"))


STATES_BY_TITLE: Final = {each.title: each for each in TransactionState}
_PREPARED: Final = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
_AT_REST: Final = frozenset(
    {TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """Times are in ms since 1970; -1 stands for a producer, an epoch or a time that is not there.

    `last_epoch` is the one before, which a producer may name when it did not hear of the current one; it is not in the
    log. `client_version` is the transaction.version by which the transaction is ended.
    """

    producer_id: int
    epoch: int
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIMESTAMP
    last_update_ms: int = NO_TIMESTAMP
    previous_producer_id: int = NO_PRODUCER
    next_producer_id: int = NO_PRODUCER
    last_epoch: int = NO_EPOCH
    client_version: int = 0

    @property
    def is_prepared(self) -> bool:
        """Its end is decided, and its partitions have to hear of it."""
        return self.state in _PREPARED

    @property
    def is_at_rest(self) -> bool:
        return self.state in _AT_REST

    @property
    def is_commit(self) -> bool:
        return self.state is TransactionState.PREPARE_COMMIT

    @property
    def is_exhausted(self) -> bool:
        """The producer needs another id for its next epoch."""
        return self.epoch >= LAST_EPOCH

    @property
    def next_producer(self) -> ProducerEpoch:
        """With which the producer goes on after the end of the transaction."""
        if self.next_producer_id != NO_PRODUCER:
            return ProducerEpoch(self.next_producer_id, 0)
        return ProducerEpoch(self.producer_id, self.epoch)

    def may_expect(self, expected: ProducerEpoch) -> bool:
        """Whether a producer that has the id and epoch `expected` may be the one of this transactional id. It may have
        missed that an exhausted epoch gave way to another id."""
        if self.epoch == NO_EPOCH or expected.producer_id == self.producer_id:
            return True
        return expected.producer_id == self.previous_producer_id and expected.epoch >= LAST_EPOCH

    def has_timed_out(self, now_ms: int) -> bool:
        return (
            self.state is TransactionState.ONGOING
            and self.timeout_ms != NO_TIMEOUT_MS
            and self.start_ms + self.timeout_ms < now_ms
        )

    # The log

    def record(self) -> TransactionValue:
        topics: dict[str, list[int]] = {}
        for each in sorted(self.partitions):
            topics.setdefault(each.topic, []).append(each.partition)
        return TransactionValue(
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            timeout_ms=self.timeout_ms,
            status=self.state,
            partitions=None
            if self.state is TransactionState.EMPTY
            else tuple(
                [PartitionsOfTopic(topic=topic, partition_ids=tuple(ids)) for topic, ids in topics.items()]
            ),
            last_update_timestamp_ms=self.last_update_ms,
            start_timestamp_ms=self.start_ms,
            previous_producer_id=self.previous_producer_id,
            next_producer_id=self.next_producer_id,
            client_transaction_version=self.client_version,
        )

    # Transitions that are always lawful

    def completed(self, now_ms: int) -> Transaction:
        """Each partition of the transaction has its marker. An exhausted epoch gives way to another producer id."""
        assert self.is_prepared, f"a transaction in the state {self.state.title} has no end to complete"
        is_next = self.client_version >= EPOCH_BUMP and self.next_producer_id != NO_PRODUCER
        return self._changed(
            TransactionState.COMPLETE_COMMIT if self.is_commit else TransactionState.COMPLETE_ABORT,
            now_ms,
            producer_id=self.next_producer_id if is_next else self.producer_id,
            epoch=0 if is_next else self.epoch,
            next_producer_id=NO_PRODUCER,
            partitions=frozenset(),
        )

    def _changed(self, state: TransactionState, now_ms: int, **fields: Any) -> Transaction:
        changed = {"state": state, "last_update_ms": now_ms, "previous_producer_id": self.producer_id}
        return replace(self, **(changed | fields))

    def ended(
        self, now_ms: int, state: TransactionState, version: int, next_producer_id: int = NO_PRODUCER
    ) -> Transaction:
        """Its end is decided. `version` says whether the producer goes on with the next epoch."""
        is_raised = version >= EPOCH_BUMP
        return self._changed(
            state,
            now_ms,
            epoch=min(self.epoch + 1, HIGHEST_EPOCH) if is_raised else self.epoch,
            last_epoch=self.epoch if is_raised else self.last_epoch,
            next_producer_id=next_producer_id,
            client_version=version,
            # An abort of nothing has to have begun sometime.
            start_ms=now_ms if self.is_at_rest else self.start_ms,
        )


NewProducerId = Callable[[], int | None]
"""None: there is no id at hand, and the controller was asked for more."""


def transaction_of(value: TransactionValue) -> Transaction:
    """As it was logged. Raises ValueError for a state that is not in logs."""
    state = TransactionState(value.status)
    if state in (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE):
        raise ValueError(f"a transaction in the state {state.title} is not in the log")
    return Transaction(
        producer_id=value.producer_id,
        epoch=value.producer_epoch,
        timeout_ms=value.timeout_ms,
        state=state,
        partitions=frozenset(
            TopicPartition(each.topic, partition)
            for each in value.partitions or ()
            for partition in each.partition_ids
        ),
        start_ms=value.start_timestamp_ms,
        last_update_ms=value.last_update_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
    )


# Decisions


def initialise(
    known: Transaction,
    now_ms: int,
    *,
    timeout_ms: int,
    expected: ProducerEpoch | None,
    new_producer_id: NewProducerId,
) -> Transaction | ErrorCode:
    """InitProducerId of an id whose transaction is not open (rules T2.6 to T2.9); `expected` is what the producer
    has."""
    if known.is_prepared:
        # First: the producer may have the id that follows at the completion.
        return ErrorCode.concurrent_transactions
    if expected is not None and not known.may_expect(expected):
        return ErrorCode.producer_fenced
    assert known.is_at_rest, f"InitProducerId in the state {known.state.title}"
    begun = known._changed(
        TransactionState.EMPTY,
        now_ms,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        start_ms=NO_TIMESTAMP,
    )
    if known.is_exhausted and (expected is None or expected.epoch == known.epoch):
        producer_id = new_producer_id()
        if producer_id is None:
            return ErrorCode.coordinator_load_in_progress
        last_epoch = NO_EPOCH if expected is None else known.epoch
        return replace(begun, producer_id=producer_id, epoch=0, last_epoch=last_epoch)
    if expected is None:
        return replace(begun, epoch=known.epoch + 1, last_epoch=NO_EPOCH)
    if known.epoch in (NO_EPOCH, expected.epoch):
        return replace(begun, epoch=known.epoch + 1, last_epoch=known.epoch)
    # The answer to the request before was lost: the same epoch again.
    return begun if expected.epoch == known.last_epoch else ErrorCode.producer_fenced


def add_partitions(
    known: Transaction,
    now_ms: int,
    producer: ProducerEpoch,
    partitions: Collection[TopicPartition],
    version: int,
) -> Transaction | ErrorCode:
    """Rules T3.3 to T3.5; no error and no value: they are in the transaction."""
    error = check_producer(known, producer)
    if error is not ErrorCode.none:
        return error
    if known.state is TransactionState.ONGOING and known.partitions.issuperset(partitions):
        return ErrorCode.none
    return known._changed(
        TransactionState.ONGOING,
        now_ms,
        partitions=known.partitions.union(partitions),
        start_ms=known.start_ms if known.state is TransactionState.ONGOING else now_ms,
        client_version=version,
    )


def check_producer(known: Transaction, producer: ProducerEpoch) -> ErrorCode:
    """Whether the producer may write in its transaction, or begin one."""
    if known.is_prepared and producer == known.next_producer:
        return ErrorCode.concurrent_transactions
    if known.producer_id != producer.producer_id:
        return ErrorCode.invalid_producer_id_mapping
    if known.epoch != producer.epoch:
        return ErrorCode.producer_fenced
    return ErrorCode.concurrent_transactions if known.is_prepared else ErrorCode.none


def end_before_version_2(
    known: Transaction, now_ms: int, producer: ProducerEpoch, *, is_commit: bool, is_pending: bool
) -> Transaction | ErrorCode:
    """EndTxn 0 to 4 (rules T5.2 and T5.3): the epoch stays. No error and no value: it had ended so."""
    if known.producer_id != producer.producer_id:
        return ErrorCode.invalid_producer_id_mapping
    if known.epoch != producer.epoch:
        return ErrorCode.producer_fenced
    if is_pending:
        return ErrorCode.concurrent_transactions
    prepare, complete = _states_of_end(is_commit=is_commit)
    if known.state is TransactionState.ONGOING:
        return known.ended(now_ms, prepare, 0)
    if known.state is complete:
        return ErrorCode.none
    return ErrorCode.concurrent_transactions if known.state is prepare else ErrorCode.invalid_txn_state


def end(
    known: Transaction,
    now_ms: int,
    producer: ProducerEpoch,
    *,
    is_commit: bool,
    is_pending: bool,
    new_producer_id: NewProducerId,
) -> Transaction | ErrorCode:
    """EndTxn from version 5 on (rules T5.5 to T5.9): the epoch is raised, so a producer that did not hear the answer
    sends the request with the epoch before."""
    if is_pending or (
        # It has the producer id that follows at the completion.
        known.is_prepared and known.next_producer_id != NO_PRODUCER and producer == known.next_producer
    ):
        return ErrorCode.concurrent_transactions
    is_overflow_retry = (
        known.previous_producer_id == producer.producer_id
        and producer.epoch == LAST_EPOCH
        and known.epoch == 0
        and known.producer_id != producer.producer_id
    )
    if known.producer_id != producer.producer_id and not is_overflow_retry:
        return ErrorCode.invalid_producer_id_mapping
    is_retry = is_overflow_retry or known.epoch == producer.epoch + 1
    if not _has_valid_epoch(known, producer, is_retry=is_retry):
        return ErrorCode.producer_fenced
    prepare, complete = _states_of_end(is_commit=is_commit)
    if known.state is TransactionState.ONGOING:
        return _end_with_bump(known, now_ms, prepare, new_producer_id)
    if known.is_prepared:
        return ErrorCode.concurrent_transactions if known.state is prepare else ErrorCode.invalid_txn_state
    if is_retry:
        return ErrorCode.none if known.state is complete else ErrorCode.invalid_txn_state
    if is_commit:
        return ErrorCode.invalid_txn_state
    # The producer cannot know whether its first write began the transaction: an abort of nothing is lawful.
    return _end_with_bump(known, now_ms, prepare, new_producer_id)


def _has_valid_epoch(known: Transaction, producer: ProducerEpoch, *, is_retry: bool) -> bool:
    if known.is_prepared:
        return is_retry
    is_current = producer.epoch == known.epoch and producer.producer_id == known.producer_id
    has_ended = known.state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
    return is_current or (has_ended and is_retry)


def fence(
    known: Transaction, now_ms: int, version: int, new_producer_id: NewProducerId
) -> Transaction | ErrorCode:
    """The coordinator aborts an open transaction: its time is over, or another producer has its id. The epoch is raised
    once (KAFKA-19367), so the producer is refused from then on. `version` is the cluster's transaction.version."""
    assert known.state is TransactionState.ONGOING, f"an abort in the state {known.state.title}"
    if version >= EPOCH_BUMP:
        return _end_with_bump(known, now_ms, TransactionState.PREPARE_ABORT, new_producer_id)
    fenced = replace(known, epoch=min(known.epoch + 1, HIGHEST_EPOCH), last_epoch=NO_EPOCH)
    return fenced.ended(now_ms, TransactionState.PREPARE_ABORT, 0)


def _end_with_bump(
    known: Transaction, now_ms: int, state: TransactionState, new_producer_id: NewProducerId
) -> Transaction | ErrorCode:
    if not known.is_exhausted:
        return known.ended(now_ms, state, EPOCH_BUMP)
    next_producer_id = new_producer_id()
    if next_producer_id is None:
        return ErrorCode.coordinator_load_in_progress
    return known.ended(now_ms, state, EPOCH_BUMP, next_producer_id)


def _states_of_end(*, is_commit: bool) -> tuple[TransactionState, TransactionState]:
    if is_commit:
        return TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT
    return TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT
