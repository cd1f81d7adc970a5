"""The driver's timer: no later than asked for, and never before what lies in the sockets."""

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest
import uvloop

from kquorum.raft.adapters.clock import OneTimer

RUNNERS = {"asyncio": asyncio.run, "uvloop": uvloop.run}


def now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class Reader(asyncio.Protocol):
    def __init__(self, heard: Callable[[str], None]) -> None:
        self._heard = heard

    def data_received(self, data: bytes) -> None:
        self._heard(data.decode())


@pytest.mark.parametrize("run", RUNNERS.values(), ids=RUNNERS)
def test_what_came_while_the_loop_was_held_up_is_read_before_a_late_timer_fires(
    run: Callable[[Coroutine[Any, Any, None]], None],
) -> None:
    events: list[str] = []

    async def held_up() -> None:
        loop = asyncio.get_running_loop()
        (ours, theirs), (other_ours, other_theirs) = socket.socketpair(), socket.socketpair()
        fired = loop.create_future()
        timer = OneTimer(loop, now_ms, lambda: (events.append("timer"), fired.set_result(None)))

        def work_long(event: str) -> None:
            timer.arm(now_ms() + 10)
            other_theirs.send(b"heartbeat")
            until_ms = now_ms() + 120
            while now_ms() < until_ms:
                pass
            events.append(event)

        transports = [
            (await loop.create_connection(partial(Reader, heard), sock=sock))[0]
            for sock, heard in ((ours, work_long), (other_ours, events.append))
        ]
        theirs.send(b"work")
        await asyncio.wait_for(fired, 60)
        for transport in transports:
            transport.close()
        theirs.close()
        other_theirs.close()

    run(held_up())
    assert events == ["work", "heartbeat", "timer"]


def test_a_timer_fires_for_the_earliest_deadline_and_not_after_its_end() -> None:
    fired: list[int] = []

    async def arming() -> None:
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        timer = OneTimer(loop, now_ms, lambda: (fired.append(now_ms()), done.set_result(None)))
        start = now_ms()
        timer.arm(None)
        timer.arm(start + 60_000, None)
        timer.arm(start + 5)
        timer.arm(start + 30_000)  # later than what it is armed with
        await asyncio.wait_for(done, 60)
        timer.arm(now_ms() + 1)
        timer.cancel()
        await asyncio.sleep(0.01)

    asyncio.run(arming())
    assert len(fired) == 1
