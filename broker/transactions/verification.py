"""Asks the coordinators of transactions whether a partition is in a transaction, or to add it (KIP-890, rules T3.8 to
T3.13).

The leader of a partition asks before it appends the first records of a transaction, and the coordinator of a group
before it keeps the first offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from kquorum.broker.log.producer_state import ProducerEpoch
from kquorum.broker.replica.partition import TopicPartition
from kquorum.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kquorum.wire.messages.error_codes import ErrorCode

MOST_TRANSACTIONS: Final = 500
_FIRST_ABORTABLE_PRODUCE: Final = 11
_FIRST_ADDING_PRODUCE: Final = 12
_FIRST_ABORTABLE_OFFSETS: Final = 4
_FIRST_ADDING_OFFSETS: Final = 5

Errors = Mapping[TopicPartition, ErrorCode]
Verified = Callable[[Errors], None]
"""The partitions that are not in the transaction, each with its error."""


class Mode(Enum):
    """What the client's version of a request lets the broker do."""

    VERIFY = "verify"
    """The client added the partition, and knows no TRANSACTION_ABORTABLE."""
    VERIFY_ABORTABLE = "verify, abortable"
    ADD = "add"

    @property
    def adds(self) -> bool:
        return self is Mode.ADD

    def error(self, error: ErrorCode) -> ErrorCode:
        """The coordinator's error as producers know it."""
        if error is ErrorCode.producer_fenced:
            return ErrorCode.invalid_producer_epoch
        if error is ErrorCode.transaction_abortable and self is Mode.VERIFY:
            return ErrorCode.invalid_txn_state
        return error


def mode_of_produce(version: int) -> Mode:
    if version >= _FIRST_ADDING_PRODUCE:
        return Mode.ADD
    return Mode.VERIFY_ABORTABLE if version >= _FIRST_ABORTABLE_PRODUCE else Mode.VERIFY


def mode_of_offsets(version: int) -> Mode:
    if version >= _FIRST_ADDING_OFFSETS:
        return Mode.ADD
    return Mode.VERIFY_ABORTABLE if version >= _FIRST_ABORTABLE_OFFSETS else Mode.VERIFY


@dataclass(eq=False, slots=True, kw_only=True)
class Question:
    transactional_id: str
    producer: ProducerEpoch
    partitions: Sequence[TopicPartition]
    mode: Mode
    done: Verified

    def answer(self, errors: Errors) -> None:
        self.done({each: self.mode.error(error) for each, error in errors.items()})

    def answer_all(self, error: ErrorCode) -> None:
        self.answer(dict.fromkeys(self.partitions, error))

    def entry(self) -> AddPartitionsToTxnTransaction:
        topics: dict[str, list[int]] = {}
        for each in self.partitions:
            topics.setdefault(each.topic, []).append(each.partition)
        return AddPartitionsToTxnTransaction(
            transactional_id=self.transactional_id,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            verify_only=not self.mode.adds,
            topics=tuple(
                [
                    AddPartitionsToTxnTopic(name=topic, partitions=tuple(indexes))
                    for topic, indexes in topics.items()
                ]
            ),
        )


class QuestionQueue:
    """Implements `PeerQueue`: the questions to coordinators on other brokers. Each transaction is in a request once."""

    def __init__(self) -> None:
        self._waiting: dict[int, dict[str, Question]] = {}
        self._in_flight: dict[int, dict[str, Question]] = {}
        self.failures = 0
        """How many partitions were not verified."""

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values())) + sum(map(len, self._in_flight.values()))

    def add(self, broker_id: int, question: Question) -> None:
        """A producer asks again when it heard nothing: the newer question counts, or that with the higher epoch."""
        waiting = self._waiting.setdefault(broker_id, {})
        known = waiting.get(question.transactional_id)
        if known is not None and question.producer.epoch < known.producer.epoch:
            self._refuse(question, ErrorCode.invalid_producer_epoch)
            return
        waiting[question.transactional_id] = question
        if known is not None:
            is_older = known.producer.epoch < question.producer.epoch
            self._refuse(known, ErrorCode.invalid_producer_epoch if is_older else ErrorCode.network_exception)

    def _refuse(self, question: Question, error: ErrorCode) -> None:
        self.failures += len(question.partitions)
        question.answer_all(error)

    # PeerQueue

    def destinations(self, now_ms: int) -> Collection[int]:  # noqa: ARG002 - the port's
        return [
            broker for broker, waiting in self._waiting.items() if waiting and broker not in self._in_flight
        ]

    def next_request(self, now_ms: int, broker_id: int) -> AddPartitionsToTxnRequest | None:  # noqa: ARG002
        waiting = self._waiting.get(broker_id)
        if not waiting or broker_id in self._in_flight:
            return None
        taken = {each: waiting.pop(each) for each in list(waiting)[:MOST_TRANSACTIONS]}
        self._in_flight[broker_id] = taken
        return AddPartitionsToTxnRequest(transactions=tuple([each.entry() for each in taken.values()]))

    def handle_reply(self, now_ms: int, broker_id: int, response: AddPartitionsToTxnResponse) -> None:  # noqa: ARG002
        asked = self._in_flight.pop(broker_id, {})
        if response.error_code is not ErrorCode.none:
            # What the broker may not do is not the producer's to hear of.
            is_denied = response.error_code is ErrorCode.cluster_authorization_failed
            for each in asked.values():
                self._refuse(each, ErrorCode.invalid_txn_state if is_denied else response.error_code)
            return
        for result in response.results_by_transaction:
            question = asked.pop(result.transactional_id, None)
            if question is None:
                continue
            told = {
                TopicPartition(topic.name, each.partition_index): each.partition_error_code
                for topic in result.topic_results
                for each in topic.results_by_partition
            }
            answers = {each: told.get(each, ErrorCode.network_exception) for each in question.partitions}
            errors = {each: error for each, error in answers.items() if error is not ErrorCode.none}
            self.failures += len(errors)
            question.answer(errors)
        for left_out in asked.values():
            self._refuse(left_out, ErrorCode.network_exception)

    def handle_failure(self, now_ms: int, broker_id: int, *, is_unknown_there: bool) -> None:  # noqa: ARG002
        """A broker of a release before KIP-890 cannot verify; the records are taken without."""
        for each in self._in_flight.pop(broker_id, {}).values():
            if is_unknown_there:
                each.answer({})
            else:
                self._refuse(each, ErrorCode.network_exception)

    def next_deadline_ms(self) -> int | None:
        return None
