"""The queue of ISR changes to the controller, by the behaviours of Kafka's brokers."""

from dataclasses import dataclass, field, replace
from uuid import UUID

import pytest

from kquorum.broker.replica.alter_partitions import RETRY_BACKOFF_MS, AlterPartitions
from kquorum.broker.replica.isr import IsrAnswer, IsrChange, IsrMember, RefusedChange
from kquorum.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    ResponsePartitionData,
    ResponseTopicData,
)
from kquorum.wire.messages.error_codes import ErrorCode

TOPIC_ID = UUID(int=7)
NOW_MS = 1_000


@dataclass
class Leader:
    """A partition that notes the calls it gets."""

    made: list[IsrAnswer] = field(default_factory=list)
    refused: list[ErrorCode] = field(default_factory=list)
    act: RefusedChange = RefusedChange.WAIT

    def isr_change_made(self, now_ms: int, change: IsrChange, answer: IsrAnswer) -> bool:
        self.made.append(answer)
        return True

    def isr_change_refused(self, change: IsrChange, error: ErrorCode) -> RefusedChange:
        self.refused.append(error)
        return self.act


class Stage:
    def __init__(self) -> None:
        self.leaders = {index: Leader() for index in range(10)}
        self.queue = AlterPartitions(1, lambda change: self.leaders.get(change.partition))

    def ask(
        self, now_ms: int = NOW_MS, broker_epoch: int = 10, version: int = 3
    ) -> AlterPartitionRequest | None:
        request = self.queue.maybe_next_request(now_ms, broker_epoch)
        if request is None:
            return None
        made = request.make(version)
        assert isinstance(made, AlterPartitionRequest)
        return made

    def answer(self, *partitions: ResponsePartitionData, error: ErrorCode = ErrorCode.none) -> None:
        topics = (ResponseTopicData(topic_id=TOPIC_ID, partitions=partitions),)
        self.queue.handle_reply(NOW_MS, AlterPartitionResponse(error_code=error, topics=topics))


def change(partition: int = 0) -> IsrChange:
    return IsrChange(
        topic_id=TOPIC_ID,
        topic="orders",
        partition=partition,
        leader_epoch=5,
        partition_epoch=8,
        members=(IsrMember(1, 10), IsrMember(2, 20)),
    )


def done(partition: int = 0, error: ErrorCode = ErrorCode.none) -> ResponsePartitionData:
    return ResponsePartitionData(
        partition_index=partition,
        error_code=error,
        leader_id=1,
        leader_epoch=5,
        isr=(1, 2),
        partition_epoch=9,
    )


def indexes(request: AlterPartitionRequest | None) -> list[int]:
    assert request is not None
    return [asked.partition_index for topic in request.topics for asked in topic.partitions]


def test_a_change_is_asked_with_the_epochs_of_all_members() -> None:
    stage = Stage()
    assert stage.ask() is None
    stage.queue.submit(change())
    request = stage.ask()
    assert request is not None
    (asked,) = request.topics[0].partitions
    assert (request.broker_id, request.broker_epoch) == (1, 10)
    assert asked.new_isr_with_epochs == (
        BrokerState(broker_id=1, broker_epoch=10),
        BrokerState(broker_id=2, broker_epoch=20),
    )
    assert (asked.leader_epoch, asked.partition_epoch, asked.leader_recovery_state) == (5, 8, 0)
    stage.answer(done())
    assert stage.leaders[0].made == [IsrAnswer(5, 9, frozenset({1, 2}))]
    assert stage.queue.is_idle


def test_an_older_controller_is_asked_without_epochs() -> None:
    stage = Stage()
    stage.queue.submit(change())
    request = stage.ask(version=2)
    assert request is not None
    assert request.topics[0].partitions[0].new_isr == (1, 2)


def test_one_request_is_under_way_and_the_next_has_all_that_came_meanwhile() -> None:
    stage = Stage()
    stage.queue.submit(change(0))
    assert indexes(stage.ask()) == [0]
    for index in range(1, 10):
        assert stage.queue.submit(change(index))
    assert stage.ask() is None
    assert stage.queue.next_deadline_ms() is None
    stage.answer(done(0))
    assert indexes(stage.ask()) == list(range(1, 10))


def test_a_partition_has_one_change_in_the_queue_and_the_second_is_rolled_back() -> None:
    stage = Stage()
    assert stage.queue.submit(change())
    assert not stage.queue.submit(replace(change(), leader_epoch=6))
    assert stage.leaders[0].refused == [ErrorCode.operation_not_attempted]
    request = stage.ask()
    assert request is not None
    assert request.topics[0].partitions[0].leader_epoch == 5


@pytest.mark.parametrize("error", [ErrorCode.stale_broker_epoch, ErrorCode.unknown_server_error])
def test_a_request_that_failed_is_sent_again_after_a_pause_with_the_new_broker_epoch(
    error: ErrorCode,
) -> None:
    stage = Stage()
    stage.queue.submit(change())
    stage.ask()
    stage.answer(error=error)
    assert stage.ask(NOW_MS + RETRY_BACKOFF_MS - 1) is None
    assert stage.queue.next_deadline_ms() == NOW_MS + RETRY_BACKOFF_MS
    again = stage.ask(NOW_MS + RETRY_BACKOFF_MS, broker_epoch=44)
    assert again is not None
    assert (again.broker_epoch, indexes(again)) == (44, [0])
    assert stage.leaders[0].refused == []


def test_a_request_without_answer_is_sent_again() -> None:
    stage = Stage()
    stage.queue.submit(change())
    stage.ask()
    stage.queue.handle_failure(NOW_MS)
    assert stage.ask() is None
    assert indexes(stage.ask(NOW_MS + RETRY_BACKOFF_MS)) == [0]


def test_a_partition_that_the_answer_leaves_out_stays_queued() -> None:
    stage = Stage()
    for index in (0, 1):
        stage.queue.submit(change(index))
    stage.ask()
    stage.answer(done(0))
    assert indexes(stage.ask(NOW_MS + RETRY_BACKOFF_MS)) == [1]


def test_an_error_of_a_partition_goes_to_its_leader_alone() -> None:
    stage = Stage()
    for index in (0, 1):
        stage.queue.submit(change(index))
    stage.ask()
    stage.answer(done(0, ErrorCode.invalid_update_version), done(1))
    assert (stage.leaders[0].refused, len(stage.leaders[1].made)) == ([ErrorCode.invalid_update_version], 1)
    assert stage.queue.is_idle


def test_the_answer_for_a_partition_that_left_this_broker_is_dropped() -> None:
    stage = Stage()
    stage.queue.submit(change())
    stage.ask()
    del stage.leaders[0]
    stage.answer(done())
    assert stage.queue.is_idle


def test_a_change_that_is_to_be_sent_again_waits_a_little() -> None:
    stage = Stage()
    stage.leaders[0].act = RefusedChange.SEND_AGAIN
    stage.queue.submit(change())
    stage.ask()
    stage.answer(done(0, ErrorCode.unknown_server_error))
    stage.queue.submit(change())
    assert stage.ask() is None
    assert indexes(stage.ask(NOW_MS + RETRY_BACKOFF_MS)) == [0]


def test_nothing_is_asked_before_the_broker_is_registered() -> None:
    stage = Stage()
    stage.queue.submit(change())
    assert stage.ask(broker_epoch=-1) is None
