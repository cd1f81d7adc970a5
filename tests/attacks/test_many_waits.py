"""Thousands of requests that wait may end at one time: each reads and answers, and the node has to go on meanwhile.

One record that woke 192 Fetches of 1,900 partitions took 225 ms of processor time in one turn of the loop.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import count

import pytest

from kquorum.broker.fetch import reading
from kquorum.broker.fetch.slices import SLICE_MS, Slices
from kquorum.broker.fetch.waits import WORK_MS, Wait, Waits
from kquorum.broker.replica.partition import TopicPartition, Wake
from kquorum.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.support.broker.data_world import ORDERS_ID, DataWorld

ANSWER_MS = 3
PARTITION = TopicPartition("orders", 0)
MANY = 500


class Costly(Wait):
    """Its answer takes a while."""

    operation = "Fetch"

    def __init__(self, table: "Table", deadline_ms: int = 1_000, partitions: int = 1) -> None:
        self.table = table
        self.looks: list[int] = []
        named = tuple(TopicPartition("orders", index) for index in range(partitions))
        super().__init__(named, Wake.LOG_END, deadline_ms)

    def look(self, now_ms: int, woken: Mapping[TopicPartition, Wake]) -> bool:
        del now_ms
        self.looks.append(len(woken))
        if self.table.is_enough:
            self.expire(0)
        return self.table.is_enough

    def expire(self, now_ms: int) -> None:
        del now_ms
        self.table.now_ms += ANSWER_MS
        self.table.answered += 1

    def give_up(self) -> None:
        """No client hears of it."""


class Table:
    def __init__(self) -> None:
        self.now_ms = 0
        self.answered = 0
        self.is_enough = True
        self.waits = Waits()

    def add(self, wait: Costly) -> Costly:
        for _ in self.waits.add(wait, self.clock):
            pass
        return wait

    def clock(self) -> int:
        return self.now_ms

    def turns(self) -> Iterator[int]:
        """How long each turn took, in ms, until nothing is left to do."""
        has_more = True
        while has_more:
            began_ms = self.now_ms
            has_more = self.waits.work(self.clock)
            yield self.now_ms - began_ms


def one_deadline(table: Table) -> None:
    table.now_ms = 1_000


def one_event(table: Table) -> None:
    table.waits.wake({PARTITION: Wake.LOG_END})


@pytest.mark.parametrize("end", [one_deadline, one_event])
def test_what_ends_at_one_time_is_answered_in_many_turns(end: Callable[[Table], None]) -> None:
    table = Table()
    for _ in range(MANY):
        table.add(Costly(table))
    end(table)
    assert max(table.turns()) <= WORK_MS + ANSWER_MS
    assert (table.answered, len(table.waits)) == (MANY, 0)


def test_a_wait_is_looked_at_once_however_many_of_its_partitions_are_woken_and_in_parts_if_they_are_many() -> (
    None
):
    table = Table()
    table.is_enough = False
    few, many = table.add(Costly(table, partitions=50)), table.add(Costly(table, partitions=250))
    for _ in range(2):
        table.waits.wake(dict.fromkeys(many.partitions, Wake.LOG_END))
    assert list(table.turns()) == [0]
    assert (few.looks, many.looks) == ([50], [100, 100, 50])


def test_a_wait_that_leaves_before_it_is_looked_at_is_not_answered() -> None:
    table = Table()
    wait = table.add(Costly(table))
    one_event(table)
    table.waits.abandon(wait)
    assert (list(table.turns()), table.answered, wait.looks) == ([0], 0, [])


@pytest.mark.parametrize("index", [0, 1], ids=["watched already", "not watched yet"])
def test_a_fetch_begins_to_wait_in_slices_and_misses_no_record(
    monkeypatch: pytest.MonkeyPatch, index: int
) -> None:
    """One of 20,000 partitions took a turn of more than 50 ms."""
    monkeypatch.setattr(reading, "_IN_A_STEP", 1)
    world, later = DataWorld(), list[Callable[[], None]]()
    ticks = count(world.now_ms, SLICE_MS)
    world.plane.slices = Slices(lambda: next(ticks), later.append)
    partitions = tuple(
        FetchPartition(partition=each, fetch_offset=0, partition_max_bytes=1_000) for each in (0, 1)
    )
    topics = (FetchTopic(topic_id=ORDERS_ID, partitions=partitions),)
    asked = world.ask(FetchRequest(topics=topics, max_wait_ms=60_000, min_bytes=1, max_bytes=1_000))
    while not len(world.plane.waits):
        later.pop(0)()
    assert later, "it watches its second partition in another turn"
    world.append("a", index=index)
    world.follower_fetches(1, index=index)
    while later:
        later.pop(0)()
    records = {each.partition_index: len(each.records) for each in asked.answer.responses[0].partitions}
    assert records[index] > 0
