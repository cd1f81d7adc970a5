"""Consumers that ask for much and read nothing of it must not fill the memory.

200 connections that each asked for 50 MB, in 60 bytes, and read a few bytes a second took 5 GB of a broker in half a
minute: a Fetch was served whatever its peers had to read.
"""

from collections.abc import Callable

import pytest

from kquorum.network.limits import BudgetLimits
from kquorum.network.request_budget import AnswerInMaking, RequestBudget
from kquorum.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.support.broker.data_world import ORDERS_ID, Asked, DataWorld
from tests.support.network.budget_peers import Peer

ADDRESS, OTHER = "198.51.100.7", "198.51.100.8"
MOST_BYTES = 1_000


class Readers:
    """A broker with one committed batch, and a peer that has something to read."""

    def __init__(self) -> None:
        self.world = DataWorld()
        self.world.append("a" * 400)
        self.world.follower_fetches(1)
        self.soon: list[Callable[[], None]] = []
        self.budget = RequestBudget(BudgetLimits(max_bytes=MOST_BYTES), self.soon.append)
        self.peer = Peer(self.budget, "slow", [], ADDRESS)

    def unread(self, size: int) -> None:
        self.peer.holds(size, unsent_bytes=size)
        while self.soon:
            self.soon.pop()()

    def fetch(self, address: str, offset: int = 0, **how: int) -> Asked:
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=10_000)
        topics = (FetchTopic(topic_id=ORDERS_ID, partitions=(partition,)),)
        request = FetchRequest(topics=topics, **{"max_wait_ms": 0, "min_bytes": 0} | how)
        return self.world.ask(request, making=AnswerInMaking(self.budget, address))


@pytest.fixture
def readers() -> Readers:
    return Readers()


def test_a_fetch_waits_while_the_peers_of_its_address_have_much_to_read(readers: Readers) -> None:
    readers.unread(MOST_BYTES // 2 + 1)
    slow, other = readers.fetch(ADDRESS), readers.fetch(OTHER)
    assert (slow.is_waiting, other.is_waiting) == (True, False)
    readers.unread(0)
    assert slow.answer.responses[0].partitions[0].high_watermark == 1
    assert readers.budget.held_bytes == 0


def test_what_was_read_counts_until_it_is_answered_and_a_wait_holds_nothing(readers: Readers) -> None:
    waiting = readers.fetch(OTHER, max_wait_ms=500, min_bytes=100_000)
    assert waiting.is_waiting
    assert readers.budget.held_bytes == 0
    readers.unread(2 * MOST_BYTES)
    readers.world.pass_time(500)
    assert waiting.is_waiting
    readers.unread(0)
    assert not waiting.is_waiting
    assert readers.budget.held_bytes == 0


def test_a_fetch_whose_client_leaves_waits_for_no_room(readers: Readers) -> None:
    readers.unread(2 * MOST_BYTES)
    slow = readers.fetch(ADDRESS)
    slow.context.is_gone = lambda: True
    slow.leave()
    assert slow.raw == [None]
    assert not readers.budget.waiting
