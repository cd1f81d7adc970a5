"""Tokens by time, and whose turn it is where many wait for them."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from kquorum.network.call_rate import Bucket, SharedBucket

STEP = 10


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0
        self.calls: list[tuple[float, Callable[[], None]]] = []

    def later(self, delay_s: float, call: Callable[[], None]) -> None:
        self.calls.append((self.now_s + delay_s, call))

    def advance(self, seconds: float) -> None:
        ends_s = self.now_s + seconds
        while due := [entry for entry in self.calls if entry[0] <= ends_s + 1e-9]:
            first = min(due, key=lambda entry: entry[0])
            self.calls.remove(first)
            self.now_s = max(self.now_s, first[0])
            first[1]()
        self.now_s = ends_s


@dataclass(eq=False)
class Asking:
    """Wants `wanted` tokens, one step at a time."""

    shared: SharedBucket
    name: str
    client: object
    wanted: int
    got: list[str] = field(default_factory=list)

    def begin(self) -> None:
        self.shared.wait(self)

    def go_on(self, granted: int) -> int:
        used = min(granted, self.wanted)
        self.wanted -= used
        self.got.append(self.name)
        if self.wanted:
            self.shared.wait(self)
        return granted - used


def shared_bucket(clock: Clock, per_second: float = 1_000, burst: float = 50) -> SharedBucket:
    return SharedBucket(per_second, burst, STEP, clock.later, lambda: clock.now_s)


def test_tokens_come_back_with_time_up_to_the_burst() -> None:
    bucket = Bucket(10, 5, 0.0)
    assert [bucket.take(2, 0.0) for _ in range(3)] == [True, True, False]
    assert bucket.wait_s(2) == pytest.approx(0.1)
    assert not bucket.take(2, 0.09)
    assert bucket.take(2, 0.11)
    assert [bucket.take(5, 100.0), bucket.take(1, 100.0)] == [True, False]
    bucket.give(100)
    assert [bucket.take(5, 100.0), bucket.take(1, 100.0)] == [True, False]


def test_no_more_than_the_rate_is_granted_whatever_is_asked() -> None:
    clock = Clock()
    shared = shared_bucket(clock)
    waiting = [Asking(shared, str(number), number, 10_000) for number in range(100)]
    for each in waiting:
        each.begin()
    clock.advance(2.0)
    granted = sum(10_000 - each.wanted for each in waiting)
    assert 1_900 <= granted <= 50 + 2_000


def test_clients_have_turns_and_the_connections_of_a_client_have_them_in_its_own() -> None:
    clock, got = Clock(), list[str]()
    shared = shared_bucket(clock, burst=STEP)
    for number in range(3):
        Asking(shared, f"many-{number}", "many", 10_000, got).begin()
    Asking(shared, "one", "one", 10_000, got).begin()
    clock.advance(1.0)
    assert got[:8] == ["many-0", "one", "many-1", "one", "many-2", "one", "many-0", "one"]


def test_no_client_overtakes_those_that_wait() -> None:
    clock = Clock()
    shared = shared_bucket(clock)
    assert shared.take(50, 0.0)
    waiting = Asking(shared, "first", 1, 20)
    waiting.begin()
    clock.now_s = 1.0
    assert not shared.take(1, 1.0)
    clock.advance(0.01)
    assert waiting.wanted == 0
    assert shared.take(1, clock.now_s)


def test_what_one_leaves_of_its_step_is_for_others_and_who_is_gone_gets_nothing() -> None:
    clock = Clock()
    shared = shared_bucket(clock, per_second=1, burst=20)
    gone, small = Asking(shared, "gone", 1, 100), Asking(shared, "small", 2, 1)
    gone.begin()
    small.begin()
    shared.leave(gone)
    shared.leave(gone)
    clock.advance(0.02)
    assert (gone.got, small.got) == ([], ["small"])
    assert shared.take(19, clock.now_s)
    assert not shared.take(2, clock.now_s)
    assert clock.calls == []


def test_what_costs_more_than_the_burst_is_taken_when_all_of_it_is_there_and_paid_for_afterwards() -> None:
    bucket = Bucket(10, 5, 0.0)
    assert bucket.take(8, 0.0)
    assert bucket.wait_s(1) == pytest.approx(0.4)
    assert bucket.wait_s(8) == pytest.approx(0.8)
    assert not bucket.take(8, 0.79)
    assert bucket.take(8, 0.81)


def test_what_was_charged_beyond_a_step_is_waited_for_by_all() -> None:
    clock = Clock()
    shared = shared_bucket(clock, per_second=100, burst=10)
    shared.charge(30)
    waiting = Asking(shared, "later", 1, 10)
    waiting.begin()
    clock.advance(0.25)
    assert waiting.wanted == 10
    clock.advance(0.1)
    assert waiting.wanted == 0
