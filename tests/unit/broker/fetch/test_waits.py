"""Requests that wait: each is answered once."""

from collections.abc import Mapping

from kquorum.broker.fetch.waits import Wait, Waits
from kquorum.broker.replica.partition import TopicPartition, Wake

ORDERS = TopicPartition("orders", 0)


class Noted(Wait):
    """Ends with its first look; the look may end another one."""

    operation = "noted"

    def __init__(self, waits: Waits) -> None:
        super().__init__((ORDERS,), Wake.LOG_END, 100)
        self._waits = waits
        self.ends: Noted | None = None
        self.answers: list[str] = []
        for _ in waits.add(self, lambda: 0):
            pass

    def look(self, now_ms: int, woken: Mapping[TopicPartition, Wake]) -> bool:
        self.answers.append("looked")
        if self.ends is not None:
            self._waits.abandon(self.ends)
        return True

    def expire(self, now_ms: int) -> None:
        self.answers.append("expired")

    def give_up(self) -> None:
        self.answers.append("given up")


def test_a_wait_that_the_look_of_another_ended_is_not_looked_at() -> None:
    """An answer may end the connection that another request waits for."""
    waits = Waits()
    first, victim = Noted(waits), Noted(waits)
    first.ends = victim
    waits.wake({ORDERS: Wake.LOG_END})
    waits.work(lambda: 1)
    waits.work(lambda: 1_000)
    assert (first.answers, victim.answers, len(waits)) == (["looked"], ["given up"], 0)


def test_a_wait_is_woken_by_what_it_waits_for_alone_and_else_expires() -> None:
    waits = Waits()
    wait = Noted(waits)
    waits.wake({ORDERS: Wake.HIGH_WATERMARK})
    waits.work(lambda: 1)
    waits.work(lambda: 99)
    assert wait.answers == []
    waits.work(lambda: 100)
    waits.wake({ORDERS: Wake.LOG_END})
    waits.work(lambda: 101)
    assert (wait.answers, waits.expired["noted"]) == (["expired"], 1)
