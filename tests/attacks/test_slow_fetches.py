"""Consumers that ask for much and read nothing of it must not fill the memory.

200 connections that each asked for 50 MB, in 60 bytes, and read a few bytes a second took 5 GB of a broker in half a
minute: a Fetch was served whatever its peers had to read. With the id of a broker in it, it went on to be.
"""

import gc
from collections.abc import Callable
from typing import Any

import pytest

from kquorum.broker.fetch.reading import FetchedData
from kquorum.metadata.authorizer.authorizer import Authorizer, AuthorizerConfig
from kquorum.metadata.authorizer.denial_log import DenialLog
from kquorum.metadata.authorizer.gate import RequestAuthorizer
from kquorum.network.limits import BudgetLimits
from kquorum.network.request_budget import AnswerInMaking, RequestBudget
from kquorum.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from tests.support.broker.data_world import BROKER, ORDERS_ID, Asked, DataWorld
from tests.support.network.budget_peers import Peer

ADDRESS, OTHER = "198.51.100.7", "198.51.100.8"
MOST_BYTES = 1_000


class Readers:
    """A broker with one committed batch, and a peer that has something to read."""

    def __init__(self, **services: Any) -> None:
        self.world = DataWorld(**services)
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

    def fetch_as(self, replica_id: int, address: str = ADDRESS, **context: str) -> Asked:
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10_000)
        topics = (FetchTopic(topic_id=ORDERS_ID, partitions=(partition,)),)
        state = ReplicaState(replica_id=replica_id)
        request = FetchRequest(topics=topics, replica_state=state, max_wait_ms=0, min_bytes=0)
        return self.world.ask(request, making=AnswerInMaking(self.budget, address), **context)


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


# Followers: producers wait for them, so they do not wait for consumers


def test_a_follower_does_not_wait_for_the_output_of_consumers(readers: Readers) -> None:
    readers.unread(MOST_BYTES)
    assert not readers.fetch_as(2, OTHER).is_waiting


@pytest.mark.parametrize("replica_id", [99, BROKER], ids=["no broker", "the broker itself"])
def test_an_id_that_is_no_other_brokers_makes_no_follower(readers: Readers, replica_id: int) -> None:
    readers.unread(MOST_BYTES)
    assert readers.fetch_as(replica_id, OTHER).is_waiting


def test_a_client_without_the_right_is_no_follower() -> None:
    gate = RequestAuthorizer(Authorizer(AuthorizerConfig()), DenialLog(lambda: 0, lambda _line: None))
    readers = Readers(authorizer=gate)
    readers.unread(MOST_BYTES)
    assert readers.fetch_as(2, OTHER, principal="User:eve").is_waiting


def test_followers_wait_for_the_output_of_their_own_address(readers: Readers) -> None:
    """Any client may be one where there is no authorizer."""
    readers.unread(MOST_BYTES)
    assert (readers.fetch_as(2).is_waiting, readers.fetch_as(2, OTHER).is_waiting) == (True, False)
    readers.unread(2 * MOST_BYTES)
    waiting = readers.fetch_as(2, OTHER)
    assert waiting.is_waiting
    readers.unread(MOST_BYTES)
    assert not waiting.is_waiting


# An address whose peers read slowly


def test_an_address_is_crowded_while_something_waits_and_it_has_much_of_the_output(readers: Readers) -> None:
    readers.unread(MOST_BYTES // 2 + 1)
    assert not readers.budget.is_crowded(ADDRESS)
    readers.fetch(ADDRESS)
    assert (readers.budget.is_crowded(ADDRESS), readers.budget.is_crowded(OTHER)) == (True, False)


def test_what_a_fetch_read_is_freed_without_the_garbage_collector(readers: Readers) -> None:
    """Before: each answer of 50 MB stayed, also of connections that had closed: 1.5 GB, until a full collection."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        assert readers.fetch(OTHER).answer.responses[0].partitions[0].high_watermark == 1
        gc.collect()
        assert not [each for each in gc.garbage if isinstance(each, FetchedData)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
