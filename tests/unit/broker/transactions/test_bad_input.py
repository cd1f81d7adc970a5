"""What hostile clients send: nothing of it stays in memory, and each gets Kafka's error."""

import pytest

from kquorum.broker.log.producer_state import ProducerEpoch
from kquorum.broker.replica.partition import TopicPartition
from kquorum.wire.messages.describe_transactions import DescribeTransactionsRequest
from tests.support.broker.data_world import ORDERS
from tests.support.broker.transaction_world import (
    TransactionWorld,
    error_of_offsets,
    error_of_produce,
    errors_of,
)

PLACE = TopicPartition(ORDERS, 0)


def held(world: TransactionWorld) -> tuple[int, int, int, int]:
    transactions = world.transactions
    known = sum(shard.count for shard in transactions.shards.values())
    return known, len(transactions.markers), len(transactions.questions), len(transactions.appends)


def test_a_hundred_thousand_forged_ids_leave_nothing_behind() -> None:
    world = TransactionWorld()
    shards = world.transactions.shards
    before = held(world)
    for number in range(100_000):
        name = f"forged-{number}"
        shard = shards[world.transactions.partition_of(name)]
        shard.end(
            world.now_ms,
            name,
            ProducerEpoch(number, 0),
            is_commit=True,
            version=2,
            done=lambda _error, _producer: None,
        )
        shard.add_partitions(
            world.now_ms, name, ProducerEpoch(number, 0), (PLACE,), version=2, done=lambda _error: None
        )
        shard.verify_partitions(name, ProducerEpoch(number, 0), (PLACE,))
    assert held(world) == before
    assert world.logged("forged-7") == []


@pytest.mark.parametrize("version", [11, 12])
def test_forged_producers_leave_no_request_behind(version: int) -> None:
    world = TransactionWorld()
    before = held(world)
    for number in range(300):
        asked = world.produce(ProducerEpoch(number, 0), transactional_id=f"forged-{number}", version=version)
        assert error_of_produce(asked.answer) == "invalid_producer_id_mapping"
        asked = world.commit_in_transaction(ProducerEpoch(number, 0), 7, transactional_id=f"forged-{number}")
        assert error_of_offsets(asked.answer) == "invalid_producer_id_mapping"
    assert held(world) == before
    assert world.partition().log.log_end_offset == 0


@pytest.mark.parametrize(
    ("producer", "expected"),
    [
        (ProducerEpoch(-1, 0), "invalid_producer_id_mapping"),
        (ProducerEpoch(5, -1), "invalid_producer_epoch"),
        (ProducerEpoch(2**63 - 1, 32_767), "invalid_producer_id_mapping"),
    ],
)
def test_producers_that_cannot_be(producer: ProducerEpoch, expected: str) -> None:
    world = TransactionWorld()
    assert error_of_offsets(world.commit_in_transaction(producer, 7).answer) == expected
    assert set(errors_of(world.add(producer).answer).values()) == {"invalid_producer_id_mapping"}
    assert world.end(producer).answer.error_code.name == "invalid_producer_id_mapping"


def test_what_is_named_often_is_in_the_transaction_and_in_the_answer_once() -> None:
    world = TransactionWorld()
    producer = world.producer()
    world.add(producer, *[PLACE] * 1_000)
    assert world.transaction().partitions == {PLACE}
    request = DescribeTransactionsRequest(transactional_ids=("mine",) * 3)
    assert len(world.ask_local(request).transaction_states) == 1


def test_an_id_as_long_as_the_protocol_allows() -> None:
    world = TransactionWorld()
    name = "x" * 32_767
    producer = world.producer(name)
    assert set(errors_of(world.add(producer, transactional_id=name).answer).values()) == {"none"}
