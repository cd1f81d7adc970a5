"""A request that names thousands of partitions, and a Fetch of a few bytes whose session has them: the broker serves
others in between.

A client without any right made a fetch session of 494,000 partitions with 26 requests; each Fetch of it, of some 60
bytes, then took 2.5 s of the event loop. WriteTxnMarkers with 6,000 markers took 0.3 s, AddPartitionsToTxn with 16,000
transactions 0.6 s, TxnOffsetCommit with 150,000 partitions 0.8 s.
"""

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kquorum.broker.fetch import sessions
from kquorum.broker.fetch.slices import Slices
from kquorum.node.config.load import load_config
from kquorum.node.network_limits import server_limits
from kquorum.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kquorum.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.broker.data_world import ORDERS, Asked, DataWorld
from tests.support.broker.transaction_world import TransactionWorld
from tests.support.calls import calls_of
from tests.support.config_files import SMALL

# About ten milliseconds.
MOST_CALLS = 50_000
PARTITIONS = 5_000


class Turns:
    """The turns of a broker's loop: a slice is over when the clock has been asked eight times."""

    def __init__(self, world: DataWorld) -> None:
        self.waiting: deque[Callable[[], None]] = deque()
        self.calls: list[int] = []
        self._asked = 0
        world.plane.slices = Slices(self._tick, self.waiting.append)

    def _tick(self) -> int:
        self._asked += 1
        return self._asked

    def take(self, first: Callable[[], Asked]) -> Asked:
        """All turns of a request; how many calls of functions each took, but for the first, which reads the bytes."""
        asked = first()
        self.calls.clear()
        while self.waiting:
            self.calls.append(calls_of(self.waiting.popleft()))
        return asked


def fetch(topic: str, partitions: int, first: int = 0, session: int = 0, epoch: int = -1) -> FetchRequest:
    wanted = tuple(
        FetchPartition(partition=first + each, partition_max_bytes=1) for each in range(partitions)
    )
    topics = (FetchTopic(topic=topic, partitions=wanted),) if wanted else ()
    return FetchRequest(max_wait_ms=0, min_bytes=0, session_id=session, session_epoch=epoch, topics=topics)


def test_a_fetch_of_a_few_bytes_goes_through_its_session_in_slices() -> None:
    world = DataWorld()
    turns = Turns(world)
    session_id = turns.take(lambda: world.ask(fetch("missing", PARTITIONS, epoch=0), 12)).answer.session_id
    assert session_id
    asked = turns.take(lambda: world.ask(fetch("", 0, session=session_id, epoch=1), 12))
    told = [each for topic in asked.answer.responses for each in topic.partitions]
    assert [each.partition_index for each in told] == list(range(PARTITIONS))
    assert {each.error_code for each in told} == {ErrorCode.unknown_topic_or_partition}
    assert len(turns.calls) > 10
    assert max(turns.calls) < MOST_CALLS


def test_a_session_has_no_more_partitions_than_a_fetch_may_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST_OF_A_SESSION", 5)
    world = DataWorld()
    session_id = world.ask(fetch("missing", 3, epoch=0), 12).answer.session_id
    assert world.ask(fetch("missing", 2, 3, session_id, 1), 12).answer.error_code is ErrorCode.none
    refused = world.ask(fetch("missing", 1, 5, session_id, 2), 12).answer
    assert refused.error_code is ErrorCode.fetch_session_id_not_found
    assert not len(world.plane.sessions)


def test_markers_are_appended_in_slices() -> None:
    world = TransactionWorld()
    turns = Turns(world)
    markers = tuple(
        WritableTxnMarker(
            producer_id=number,
            transaction_result=True,
            topics=(WritableTxnMarkerTopic(name=ORDERS, partition_indexes=(0,)),),
        )
        for number in range(200)
    )
    asked = turns.take(lambda: world.ask(WriteTxnMarkersRequest(markers=markers)))
    world.settle()
    results = asked.answer.markers
    assert [each.producer_id for each in results] == list(range(200))
    assert {each.topics[0].partitions[0].error_code for each in results} == {ErrorCode.none}
    assert len(turns.calls) > 10
    assert max(turns.calls) < MOST_CALLS
    assert world.partition().log.log_end_offset == 200


def test_transactions_of_other_brokers_are_looked_up_in_slices() -> None:
    world = TransactionWorld()
    turns = Turns(world)
    topics = (AddPartitionsToTxnTopic(name=ORDERS, partitions=(0,)),)
    transactions = tuple(
        AddPartitionsToTxnTransaction(transactional_id=f"t{number}", producer_id=1, topics=topics)
        for number in range(200)
    )
    asked = turns.take(lambda: world.ask(AddPartitionsToTxnRequest(transactions=transactions)))
    assert [each.transactional_id for each in asked.answer.results_by_transaction] == [
        each.transactional_id for each in transactions
    ]
    assert len(turns.calls) > 10
    assert max(turns.calls) < MOST_CALLS


@pytest.mark.parametrize(
    ("api_key", "most"),
    [
        (ApiKey.FETCH, sessions.MOST_OF_A_SESSION),
        (ApiKey.ADD_PARTITIONS_TO_TXN, 10_000),
        (ApiKey.TXN_OFFSET_COMMIT, 10_000),
        (ApiKey.ALTER_REPLICA_LOG_DIRS, 20_000),
    ],
)
def test_a_request_names_so_many_partitions(tmp_path: Path, api_key: ApiKey, most: int) -> None:
    path = tmp_path / "quorum.toml"
    path.write_text(SMALL)
    node: Any = load_config(path).node(11)
    assert server_limits(node, node.listeners[0]).max_elements(api_key) == most
