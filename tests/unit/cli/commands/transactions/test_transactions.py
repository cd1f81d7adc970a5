"""`kquorum transactions` against a broker that answers what each test says."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest

from kquorum.cli.failures import ExitStatus
from kquorum.cli.main import run
from kquorum.wire.message_schema import Response
from kquorum.wire.messages.describe_producers import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from kquorum.wire.messages.describe_transactions import (
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kquorum.wire.messages.init_producer_id import InitProducerIdResponse
from kquorum.wire.messages.list_transactions import ListTransactionsResponse
from kquorum.wire.messages.list_transactions import TransactionState as Listed
from kquorum.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kquorum.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from kquorum.wire.protocol.apis import ApiKey
from tests.support.fake_nodes import FakeNode, fake_node

BROKER = 5
OPEN = TransactionState(
    transactional_id="orders-1",
    transaction_state="Ongoing",
    transaction_timeout_ms=60_000,
    transaction_start_time_ms=1_700_000_000_000,
    producer_id=7,
    producer_epoch=3,
    topics=(TopicData(topic="orders", partitions=(0, 1)),),
)
LISTED = (
    Listed(transactional_id="orders-1", producer_id=7, transaction_state="Ongoing"),
    Listed(transactional_id="a", producer_id=8, transaction_state="Empty"),
)
HANGING = ProducerState(producer_id=9, producer_epoch=2, coordinator_epoch=-1, current_txn_start_offset=120)


def described(state: TransactionState) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(transaction_states=(state,))


@contextmanager
def broker(**answers: Any) -> Iterator[tuple[FakeNode, list[Any]]]:
    """It coordinates all ids, and leads orders-0. `answers` are by the name of an API: a response, or several, one a
    request. The requests that change something are kept."""
    found: list[FakeNode] = []
    asked: list[Any] = []

    def metadata(request: Any) -> MetadataResponse:
        partition = MetadataResponsePartition(partition_index=0, leader_id=BROKER)
        topic = MetadataResponseTopic(name="orders", topic_id=UUID(int=7), partitions=(partition,))
        here = MetadataResponseBroker(node_id=BROKER, host="127.0.0.1", port=found[0].port)
        return MetadataResponse(brokers=(here,), topics=() if request.topics == () else (topic,))

    def coordinator(request: Any) -> FindCoordinatorResponse:
        assert request.key_type == 1
        [key] = request.coordinator_keys
        here = Coordinator(key=key, node_id=BROKER, host="127.0.0.1", port=found[0].port)
        return FindCoordinatorResponse(coordinators=(here,))

    fixed: dict[str, Any] = {
        "list_transactions": ListTransactionsResponse(transaction_states=LISTED),
        "describe_transactions": described(OPEN),
        "init_producer_id": InitProducerIdResponse(producer_id=7, producer_epoch=5),
        "describe_producers": producers(HANGING),
        "write_txn_markers": WriteTxnMarkersResponse(
            markers=(
                WritableTxnMarkerResult(
                    producer_id=9,
                    topics=(
                        WritableTxnMarkerTopicResult(
                            name="orders", partitions=(WritableTxnMarkerPartitionResult(partition_index=0),)
                        ),
                    ),
                ),
            )
        ),
    } | answers
    given: dict[ApiKey, Callable[[Any], Response]] = {
        ApiKey.METADATA: metadata,
        ApiKey.FIND_COORDINATOR: coordinator,
    }
    for name, answer in fixed.items():
        left = list(answer) if isinstance(answer, list) else None

        def give(request: Any, answer: Any = answer, left: list[Any] | None = left) -> Response:
            asked.append(request)
            made: Response = answer if left is None else left.pop(0)
            return made

        given[ApiKey[name.upper()]] = give
    with fake_node(given) as node:
        found.append(node)
        yield node, asked


def producers(*found: ProducerState) -> DescribeProducersResponse:
    partition = PartitionResponse(partition_index=0, active_producers=found)
    return DescribeProducersResponse(topics=(TopicResponse(name="orders", partitions=(partition,)),))


def call(node: FakeNode, *words: str) -> int:
    return run(["transactions", *words, "-b", f"127.0.0.1:{node.port}"])


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    with broker() as (node, asked):
        assert call(node, "list", "--json", "--state", "Ongoing", "--longer-than-ms", "5") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(each["transactional_id"], each["state"]) for each in rows] == [
        ("a", "Empty"),
        ("orders-1", "Ongoing"),
    ]
    assert rows[0]["coordinator"] == BROKER
    [request] = asked
    assert (request.state_filters, request.duration_filter) == (("Ongoing",), 5)


def test_a_state_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    unknown = ListTransactionsResponse(unknown_state_filters=("Gone",))
    with broker(list_transactions=unknown) as (node, _):
        assert call(node, "list", "--state", "Gone") == ExitStatus.FAILED
    assert "transactions have no state Gone" in capsys.readouterr().err


def test_a_description(capsys: pytest.CaptureFixture[str]) -> None:
    with broker() as (node, _):
        assert call(node, "describe", "orders-1") == 0
        shown = capsys.readouterr().out
        assert call(node, "describe", "orders-1", "--json") == 0
    assert "orders-1: Ongoing, coordinated by broker 5" in shown
    assert "since 2023-11-14T22:13:20.000+00:00" in shown
    found = json.loads(capsys.readouterr().out)
    assert (found["producer_id"], found["producer_epoch"], found["start_ms"]) == (7, 3, 1_700_000_000_000)
    assert found["partitions"] == [{"topic": "orders", "partition": 0}, {"topic": "orders", "partition": 1}]


def test_an_id_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    absent = TransactionState(error_code=ErrorCode.transactional_id_not_found, transactional_id="x")
    with broker(describe_transactions=described(absent)) as (node, _):
        assert call(node, "describe", "x") == ExitStatus.FAILED
    assert "there is no transactional id x" in capsys.readouterr().err


def test_an_abort_fences_the_producer_and_waits_for_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    ends = InitProducerIdResponse(error_code=ErrorCode.concurrent_transactions)
    done = InitProducerIdResponse(producer_id=7, producer_epoch=5)
    with broker(init_producer_id=[ends, done]) as (node, asked):
        assert call(node, "abort", "orders-1") == 0
    assert "the transaction of orders-1 was aborted" in capsys.readouterr().out
    inits = [each for each in asked if hasattr(each, "transaction_timeout_ms")]
    assert [(each.transactional_id, each.transaction_timeout_ms) for each in inits] == [
        ("orders-1", 60_000)
    ] * 2


def test_without_an_open_transaction_no_producer_is_fenced(capsys: pytest.CaptureFixture[str]) -> None:
    empty = TransactionState(transactional_id="orders-1", transaction_state="Empty", producer_id=7)
    with broker(describe_transactions=described(empty)) as (node, asked):
        assert call(node, "abort", "orders-1") == ExitStatus.FAILED
    assert "orders-1 has no open transaction: its state is Empty" in capsys.readouterr().err
    assert not any(hasattr(each, "transaction_timeout_ms") for each in asked)


def test_a_hanging_transaction_gets_a_marker(capsys: pytest.CaptureFixture[str]) -> None:
    with broker() as (node, asked):
        assert call(node, "abort", "--partition", "orders-0", "--start-offset", "120") == 0
    assert "the transaction of producer 9 in orders-0 was aborted" in capsys.readouterr().out
    [marker] = asked[-1].markers
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (9, 2, 0)
    assert marker.transaction_result is False


def test_where_no_transaction_begins(capsys: pytest.CaptureFixture[str]) -> None:
    with broker() as (node, asked):
        assert call(node, "abort", "-p", "orders-0", "--start-offset", "7") == ExitStatus.FAILED
    assert "no open transaction begins at offset 7 of orders-0" in capsys.readouterr().err
    assert not any(hasattr(each, "markers") for each in asked)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((), "name a transactional id, or a partition"),
        (("orders-1", "-p", "orders-0"), "name a transactional id, or a partition"),
        (("-p", "orders", "--start-offset", "1"), "orders is no partition: it is TOPIC-N"),
    ],
)
def test_what_is_not_clear(words: tuple[str, ...], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    with broker() as (node, _):
        assert call(node, "abort", *words) == ExitStatus.USAGE
    assert reason in capsys.readouterr().err
