"""How long the turns of an event loop are, in seconds or in work.

Work is the number of functions that a turn calls, Python's and C's, in the loop's thread: the same on any machine, and
about as many tenths of a microsecond as the turn takes.
"""

import asyncio
import asyncio.events
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass
class Turns:
    """The longest turn since `reset`."""

    longest_s: float = 0.0
    most_calls: int = 0
    what: str = ""

    def reset(self) -> None:
        self.longest_s, self.most_calls, self.what = 0.0, 0, ""


@contextmanager
def measured(*, counts_calls: bool) -> Iterator[Turns]:
    """Of all loops of asyncio's own kind in this process. Counting takes several times as long as not counting."""
    turns = Turns()
    run: Callable[[Any], None] = asyncio.events.Handle._run  # type: ignore[attr-defined]
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        if event in ("call", "c_call"):
            calls += 1

    def counted(handle: Any) -> None:
        nonlocal calls
        calls = 0
        sys.setprofile(count)
        try:
            run(handle)
        finally:
            sys.setprofile(None)
        if calls > turns.most_calls:
            turns.most_calls, turns.what = calls, repr(handle)

    def timed(handle: Any) -> None:
        # Of the thread: what else the machine does is not the loop's.
        began_s = time.thread_time()
        run(handle)
        took_s = time.thread_time() - began_s
        if took_s > turns.longest_s:
            turns.longest_s, turns.what = took_s, repr(handle)

    asyncio.events.Handle._run = counted if counts_calls else timed  # type: ignore[attr-defined]
    try:
        yield turns
    finally:
        asyncio.events.Handle._run = run  # type: ignore[attr-defined]
