"""Records of transactions are appended when the coordinator has said that their partition is in the transaction."""

from dataclasses import replace
from typing import Any

import pytest

from kquorum.broker.coordinators.partitioning import TRANSACTIONS_TOPIC
from kquorum.broker.log.producer_state import ProducerEpoch
from kquorum.broker.replica.partition import TopicPartition
from kquorum.broker.transactions.coordinator import TransactionCoordinator
from kquorum.broker.transactions.guarded_appends import MARKER_WAIT_MS
from kquorum.broker.transactions.transaction import TransactionState
from kquorum.broker.transactions.verification import Mode, Question, QuestionQueue
from kquorum.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.metadata_records.configs import ConfigRecord
from kquorum.wire.metadata_records.topics import PartitionChangeRecord
from tests.support.broker.data_world import ORDERS, ORDERS_ID
from tests.support.broker.transaction_world import (
    MINE,
    PLACE,
    TRANSACTIONS_ID,
    TXN_SETTINGS,
    TransactionWorld,
    error_of_produce,
    errors_of,
)
from tests.support.images import topic_id


def told(asked: Any) -> str:
    return error_of_produce(asked.answer)


class TestAdding:
    def test_the_first_records_begin_the_transaction(self) -> None:
        world = TransactionWorld()
        producer = world.producer()
        assert told(world.produce(producer)) == "none"
        found = world.transaction()
        assert (found.state, found.partitions, found.client_version) == (
            TransactionState.ONGOING,
            {PLACE},
            2,
        )
        before = len(world.logged())
        assert told(world.produce(producer, sequence=1)) == "none"
        assert len(world.logged()) == before

    def test_late_records_of_the_last_transaction_are_refused(self) -> None:
        """The point of KIP-890: the marker has raised the epoch."""
        world = TransactionWorld()
        producer = world.producer()
        world.produce(producer)
        world.end(producer)
        end = world.partition().log.log_end_offset
        assert told(world.produce(producer, sequence=1)) == "invalid_producer_epoch"
        assert world.partition().log.log_end_offset == end
        assert told(world.produce(ProducerEpoch(producer.producer_id, 1))) == "none"

    def test_the_next_transaction_waits_a_while_for_the_end_of_the_last(self) -> None:
        world = TransactionWorld()
        producer = world.producer()
        world.produce(producer)
        world.holds_markers = True
        world.end(producer)
        following = ProducerEpoch(producer.producer_id, 1)
        asked = world.produce(following, index=1)
        world.pass_time(40)
        assert asked.is_waiting
        world.release_markers()
        world.pass_time(20)
        assert told(asked) == "none"

    def test_but_not_for_long(self) -> None:
        world = TransactionWorld()
        producer = world.producer()
        world.produce(producer)
        world.holds_markers = True
        world.end(producer)
        asked = world.produce(ProducerEpoch(producer.producer_id, 1), index=1)
        world.pass_time(120)
        assert told(asked) == "concurrent_transactions"
        assert world.partition(1).log.log_end_offset == 0

    def test_records_wait_for_the_marker_of_the_last_transaction_before_the_coordinator_is_asked(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world = TransactionWorld()
        asked: list[str] = []
        ask = TransactionCoordinator.ask

        def noted(self: TransactionCoordinator, now_ms: int, question: Question) -> None:
            asked.append(question.transactional_id)
            ask(self, now_ms, question)

        monkeypatch.setattr(TransactionCoordinator, "ask", noted)
        producer = world.producer()
        world.produce(producer)
        world.holds_markers = True
        world.end(producer)
        asked.clear()
        following = ProducerEpoch(producer.producer_id, 1)
        first = world.produce(following)
        second = world.produce(following, sequence=1)
        world.pass_time(500)
        assert (asked, first.is_waiting, second.is_waiting) == ([], True, True)
        world.release_markers()
        assert (asked, told(first), told(second)) == ([MINE], "none", "none")

    def test_a_marker_that_does_not_come_is_not_waited_for_long(self) -> None:
        world = TransactionWorld()
        producer = world.producer()
        world.produce(producer)
        world.holds_markers = True
        world.end(producer)
        end = world.partition().log.log_end_offset
        asked = world.produce(ProducerEpoch(producer.producer_id, 1))
        world.pass_time(MARKER_WAIT_MS + TXN_SETTINGS.add_retry_max_ms)
        assert told(asked) == "concurrent_transactions"
        assert world.partition().log.log_end_offset == end

    def test_a_marker_is_not_waited_for_where_another_broker_leads(self) -> None:
        world = TransactionWorld()
        producer = world.producer()
        world.produce(producer)
        world.holds_markers = True
        world.end(producer)
        asked = world.produce(ProducerEpoch(producer.producer_id, 1))
        assert asked.is_waiting
        world.change(PartitionChangeRecord(partition_id=0, topic_id=ORDERS_ID, leader=2))
        assert told(asked) == "not_leader_or_follower"

    def test_records_of_one_producer_are_appended_in_their_order(self) -> None:
        """The second request waits behind the first, which waits for the coordinator."""
        world = TransactionWorld(txn_follower=True)
        producer = follow_init(world)
        first = world.produce(producer)
        second = world.produce(producer, sequence=1)
        assert first.is_waiting
        assert second.is_waiting
        world.follow_state()
        assert (told(first), told(second)) == ("none", "none")

    def test_a_marker_makes_a_write_void_that_waits_for_the_coordinator(self) -> None:
        world = TransactionWorld(version=1)
        producer = world.producer()
        world.add(producer)
        partition = world.partition()
        guard = partition.start_verification(
            world.now_ms, producer.producer_id, sequence=0, epoch=0, supports_epoch_bump=False
        )
        assert guard is not None
        world.end(producer, version=4)
        again = partition.start_verification(
            world.now_ms, producer.producer_id, sequence=0, epoch=0, supports_epoch_bump=False
        )
        assert again is not guard


def follow_init(world: TransactionWorld) -> ProducerEpoch:
    """A producer whose first record is replicated."""
    given: list[ProducerEpoch] = []
    world.follow_state()
    world.txn_shard().init_producer_id(
        world.now_ms,
        MINE,
        timeout_ms=60_000,
        expected=None,
        done=lambda _error, producer: given.append(producer),
    )
    world.follow_state()
    [producer] = given
    return producer


class TestVerifying:
    @pytest.mark.parametrize(
        ("version", "expected"), [(11, "transaction_abortable"), (10, "invalid_txn_state")]
    )
    def test_a_partition_that_was_not_added_is_refused(self, version: int, expected: str) -> None:
        world = TransactionWorld()
        producer = world.producer()
        world.add(producer, TopicPartition(ORDERS, 1))
        assert told(world.produce(producer, version=version)) == expected
        assert world.partition().log.log_end_offset == 0
        assert told(world.produce(producer, index=1, version=version)) == "none"

    def test_without_a_transaction_nothing_is_appended(self) -> None:
        world = TransactionWorld()
        assert told(world.produce(world.producer(), version=11)) == "transaction_abortable"
        assert world.partition().log.log_end_offset == 0

    def test_it_can_be_switched_off_for_older_producers(self) -> None:
        world = TransactionWorld()
        world.change(
            ConfigRecord(
                resource_type=4,
                resource_name="",
                name="transaction.partition.verification.enable",
                value="false",
            )
        )
        assert told(world.produce(world.producer(), version=11)) == "none"
        assert world.transaction().state is TransactionState.EMPTY

    def test_while_the_coordinator_cannot_tell_the_producer_tries_again(self) -> None:
        world = TransactionWorld()
        producer = world.producer()
        world.change(
            *[
                PartitionChangeRecord(partition_id=each, topic_id=topic_id(TRANSACTIONS_ID), leader=-1)
                for each in (0, 1)
            ]
        )
        assert told(world.produce(producer, version=11)) == "not_enough_replicas"
        assert told(world.produce(producer, version=12)) == "not_enough_replicas"

    @pytest.mark.parametrize(
        ("version", "expected"), [(11, "not_enough_replicas"), (12, "concurrent_transactions")]
    )
    def test_while_the_last_transaction_ends(self, version: int, expected: str) -> None:
        world = TransactionWorld()
        producer = world.producer()
        world.produce(producer)
        world.holds_markers = True
        world.end(producer, version=4)
        world.txn_settings = replace(world.txn_settings, add_retry_max_ms=0)
        asked = world.produce(producer, index=1, version=version)
        assert told(asked) == expected


class TestRefusals:
    def test_without_an_id_or_with_several_producers(self) -> None:
        world = TransactionWorld()
        producer = world.producer()
        assert told(world.produce(producer, transactional_id=None)) == "transactional_id_authorization_failed"

    def test_of_a_producer_that_another_has_fenced(self) -> None:
        world = TransactionWorld()
        old = world.producer()
        world.produce(old)
        world.init()
        world.producer()
        assert told(world.produce(old, sequence=1)) == "invalid_producer_epoch"
        assert told(world.produce(old, index=1)) == "invalid_producer_epoch"

    def test_of_the_producer_of_another_id(self) -> None:
        world = TransactionWorld()
        world.producer()
        assert told(world.produce(ProducerEpoch(77, 0))) == "invalid_producer_id_mapping"


class TestQuestionsToOtherBrokers:
    """What the leader asks when another broker coordinates (AddPartitionsToTxnManager)."""

    def asked(
        self, queue: QuestionQueue, epoch: int = 0, mode: Mode = Mode.ADD, name: str = MINE
    ) -> list[dict[TopicPartition, ErrorCode]]:
        answers: list[dict[TopicPartition, ErrorCode]] = []
        queue.add(
            2,
            Question(
                transactional_id=name,
                producer=ProducerEpoch(7, epoch),
                partitions=(PLACE,),
                mode=mode,
                done=lambda errors: answers.append(dict(errors)),
            ),
        )
        return answers

    def answer(self, error: ErrorCode, name: str = MINE) -> AddPartitionsToTxnResponse:
        result = AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=error)
        topic = AddPartitionsToTxnTopicResult(name=ORDERS, results_by_partition=(result,))
        entry = AddPartitionsToTxnResult(transactional_id=name, topic_results=(topic,))
        return AddPartitionsToTxnResponse(results_by_transaction=(entry,))

    def test_a_broker_is_asked_for_all_that_waits_with_one_request_under_way(self) -> None:
        queue = QuestionQueue()
        first, second = self.asked(queue, name="a"), self.asked(queue, name="b", mode=Mode.VERIFY)
        request = queue.next_request(0, 2)
        assert request is not None
        assert [(each.transactional_id, each.verify_only) for each in request.transactions] == [
            ("a", False),
            ("b", True),
        ]
        third = self.asked(queue, name="c")
        assert queue.destinations(0) == []
        assert queue.next_request(0, 2) is None
        queue.handle_reply(0, 2, self.answer(ErrorCode.none, "a"))
        # The answer left one out.
        assert (first, second) == ([{}], [{PLACE: ErrorCode.network_exception}])
        assert (third, list(queue.destinations(0))) == ([], [2])

    @pytest.mark.parametrize(
        ("epochs", "older", "newer"),
        [
            ((0, 1), [{PLACE: ErrorCode.invalid_producer_epoch}], []),
            ((1, 1), [{PLACE: ErrorCode.network_exception}], []),
            ((1, 0), [], [{PLACE: ErrorCode.invalid_producer_epoch}]),
        ],
    )
    def test_the_newer_question_of_a_transaction_counts(
        self, epochs: tuple[int, int], older: list[Any], newer: list[Any]
    ) -> None:
        queue = QuestionQueue()
        first, second = (self.asked(queue, epoch) for epoch in epochs)
        assert (first, second) == (older, newer)
        request = queue.next_request(0, 2)
        assert request is not None
        [entry] = request.transactions
        assert entry.producer_epoch == max(epochs)

    @pytest.mark.parametrize(
        ("mode", "error", "expected"),
        [
            (Mode.ADD, "producer_fenced", "invalid_producer_epoch"),
            (Mode.VERIFY, "transaction_abortable", "invalid_txn_state"),
            (Mode.VERIFY_ABORTABLE, "transaction_abortable", "transaction_abortable"),
            (Mode.ADD, "concurrent_transactions", "concurrent_transactions"),
        ],
    )
    def test_errors_as_producers_know_them(self, mode: Mode, error: str, expected: str) -> None:
        queue = QuestionQueue()
        answers = self.asked(queue, mode=mode)
        queue.next_request(0, 2)
        queue.handle_reply(0, 2, self.answer(ErrorCode[error]))
        assert answers == [{PLACE: ErrorCode[expected]}]
        assert queue.failures == 1

    @pytest.mark.parametrize(
        ("is_unknown_there", "expected"), [(False, {PLACE: ErrorCode.network_exception}), (True, {})]
    )
    def test_a_broker_that_does_not_answer_or_is_too_old(
        self, is_unknown_there: bool, expected: dict[TopicPartition, ErrorCode]
    ) -> None:
        queue = QuestionQueue()
        answers = self.asked(queue)
        queue.next_request(0, 2)
        queue.handle_failure(0, 2, is_unknown_there=is_unknown_there)
        assert answers == [expected]
        assert len(queue) == 0

    def test_a_denied_broker_is_not_the_producers_to_hear_of(self) -> None:
        queue = QuestionQueue()
        answers = self.asked(queue)
        queue.next_request(0, 2)
        queue.handle_reply(
            0, 2, AddPartitionsToTxnResponse(error_code=ErrorCode.cluster_authorization_failed)
        )
        assert answers == [{PLACE: ErrorCode.invalid_txn_state}]

    def test_the_coordinator_on_another_broker_is_asked(self) -> None:
        world = TransactionWorld(txn_follower=True)
        producer = follow_init(world)
        world.elect_state(2)
        asked = world.produce(producer)
        assert list(world.transactions.questions.destinations(world.now_ms)) == [2]
        assert world.transactions.questions.next_request(world.now_ms, 2) is not None
        assert asked.is_waiting
        world.transactions.questions.handle_reply(world.now_ms, 2, self.answer(ErrorCode.none))
        assert told(asked) == "none"
        assert TRANSACTIONS_TOPIC in world.image.topics.by_name

    def test_a_broker_that_stops_answers_what_waits_for_the_coordinator(self) -> None:
        world = TransactionWorld(txn_follower=True)
        producer = follow_init(world)
        world.elect_state(2)
        first, second = world.produce(producer), world.produce(producer, sequence=1)
        world.transactions.close()
        world.settle()
        assert (told(first), told(second)) == ("not_enough_replicas", "not_enough_replicas")
        assert world.partition().log.log_end_offset == 0


def test_several_transactions_of_a_broker_are_answered_together() -> None:
    world = TransactionWorld()
    first, second = world.producer("a"), world.producer("b")
    assert errors_of(world.add_as_broker(first, transactional_id="a").answer) == {PLACE: "none"}
    asked = world.add_as_broker(second, transactional_id="a")
    assert errors_of(asked.answer) == {PLACE: "invalid_producer_id_mapping"}
