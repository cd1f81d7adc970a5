"""TLS begins on a few connections in each iteration of the loop, in the order in which they came."""

from collections.abc import Callable
from functools import partial

from kquorum.network.acceptance import HANDSHAKES_AT_ONCE, Handshakes


def test_handshakes_begin_a_few_in_each_iteration() -> None:
    soon: list[Callable[[], None]] = []
    begun: list[int] = []
    handshakes = Handshakes(soon.append)
    count = 2 * HANDSHAKES_AT_ONCE + 3
    for number in range(count):
        handshakes.begin(partial(begun.append, number))
    iterations = [len(begun)]
    while soon:
        [renew] = soon
        soon.clear()
        renew()
        iterations.append(len(begun) - sum(iterations))
    assert iterations == [HANDSHAKES_AT_ONCE, HANDSHAKES_AT_ONCE, 3, 0]
    assert begun == list(range(count))


def test_one_that_comes_while_others_wait_waits_behind_them() -> None:
    soon: list[Callable[[], None]] = []
    begun: list[int] = []
    handshakes = Handshakes(soon.append)
    for number in range(HANDSHAKES_AT_ONCE + 1):
        handshakes.begin(partial(begun.append, number))
    handshakes.begin(partial(begun.append, -1))
    soon.pop()()
    assert begun[-2:] == [HANDSHAKES_AT_ONCE, -1]


def test_a_quiet_listener_begins_at_once() -> None:
    soon: list[Callable[[], None]] = []
    begun: list[int] = []
    handshakes = Handshakes(soon.append)
    for number in range(3):
        handshakes.begin(partial(begun.append, number))
        assert begun[-1] == number
        soon.pop()()
    assert not soon
