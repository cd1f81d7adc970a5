"""How long the turns of an event loop are, in seconds or in work.

Work is the number of functions that a turn calls, Python's and C's, in the loop's thread: the same on any machine, and
about as many tenths of a microsecond as the turn takes. Seconds are processor time of the loop's thread, so that what
else the machine does is left out; a pause of the garbage collector is part of the turn in which it falls.
"""

import asyncio
import asyncio.events
import gc
import math
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tests.support.calls import calls_of

# Of turns above the limit, so that a process which is slow throughout keeps few of them.
LONG_TURNS_KEPT = 100


@dataclass(frozen=True)
class LongTurn:
    """`began_s` and `ended_s` are of `time.monotonic`, which all processes of a machine share."""

    began_s: float
    ended_s: float
    took_s: float
    # Of `took_s`, in the garbage collector.
    collecting_s: float
    what: str
    # Where the loop's thread was, looked at every few milliseconds: innermost frames, the most frequent first.
    places: tuple[str, ...] = ()


@dataclass
class Turns:
    """The longest turn since `reset`, and those that took longer than `limit_s`."""

    limit_s: float = math.inf
    longest_s: float = 0.0
    # Of `longest_s`, in the garbage collector.
    collecting_s: float = 0.0
    most_calls: int = 0
    what: str = ""
    long: list[LongTurn] = field(default_factory=list)

    def take(self) -> "Turns":
        """What there is, and `reset`; also from a thread beside the loop. A turn that ends in between is in one of the
        two lists of long ones."""
        taken = replace(self)
        self.reset()
        return taken

    def reset(self) -> None:
        self.longest_s, self.collecting_s, self.most_calls, self.what, self.long = 0.0, 0.0, 0, "", []


@contextmanager
def measured(*, counts_calls: bool, limit_s: float = math.inf) -> Iterator[Turns]:
    """Of all loops of asyncio's own kind in this process. Counting takes several times as long as not counting."""
    turns = Turns(limit_s)
    run: Callable[[Any], None] = asyncio.events.Handle._run  # type: ignore[attr-defined]
    collector, sampler = _Collector(), _Sampler()

    def counted(handle: Any) -> None:
        callback = handle._callback
        calls = calls_of(lambda: run(handle))
        if calls > turns.most_calls:
            turns.most_calls, turns.what = calls, _named(callback, handle)

    def timed(handle: Any) -> None:
        callback, collected_s, began_at_s = handle._callback, collector.took_s, time.monotonic()
        sampler.begin(began_at_s)
        # Of the thread: what else the machine does is not the loop's.
        began_s = time.thread_time()
        run(handle)
        took_s = time.thread_time() - began_s
        if took_s > turns.longest_s:
            turns.longest_s, turns.what = took_s, _named(callback, handle)
            turns.collecting_s = collector.took_s - collected_s
        if took_s > turns.limit_s and len(turns.long) < LONG_TURNS_KEPT:
            collecting_s, what = collector.took_s - collected_s, _named(callback, handle)
            places = sampler.places()
            turns.long.append(LongTurn(began_at_s, time.monotonic(), took_s, collecting_s, what, places))

    asyncio.events.Handle._run = counted if counts_calls else timed  # type: ignore[attr-defined]
    gc.callbacks.append(collector.note)
    if limit_s < math.inf:
        sampler.start()
    try:
        yield turns
    finally:
        sampler.ended.set()
        gc.callbacks.remove(collector.note)
        asyncio.events.Handle._run = run  # type: ignore[attr-defined]


def _named(callback: Any, handle: Any) -> str:
    """What a turn ran: a step of a task is shown as its coroutine. A handle that was cancelled in its turn has
    forgotten its callback."""
    task = getattr(callback, "__self__", None)
    return repr(task.get_coro()) if isinstance(task, asyncio.Task) else f"{callback!r} of {handle!r}"


class _Collector:
    """Processor time of the garbage collector, in whichever thread it ran."""

    def __init__(self) -> None:
        self.took_s = 0.0
        self._began_s = 0.0

    def note(self, phase: str, _info: Mapping[str, int]) -> None:
        if phase == "start":
            self._began_s = time.thread_time()
        else:
            self.took_s += time.thread_time() - self._began_s


class _Sampler:
    """A thread that looks where the loop's thread is, in turns that have gone on for some time."""

    _INTERVAL_S = 0.005
    _DEPTH = 6

    def __init__(self) -> None:
        self.ended = threading.Event()
        self._began_s = 0.0
        self._loop_thread = 0
        self._stacks: list[str] = []

    def start(self) -> None:
        threading.Thread(target=self._look, daemon=True).start()

    def begin(self, now_s: float) -> None:
        self._began_s, self._loop_thread = now_s, threading.get_ident()

    def places(self) -> tuple[str, ...]:
        """Of the turn that has just ended."""
        return tuple(f"{count} x {stack}" for stack, count in Counter(self._stacks).most_common(3))

    def _look(self) -> None:
        of_turn_s = 0.0
        while not self.ended.wait(self._INTERVAL_S):
            began_s = self._began_s
            if time.monotonic() - began_s < self._INTERVAL_S:
                continue
            if began_s != of_turn_s:
                of_turn_s, self._stacks = began_s, []
            frame = sys._current_frames().get(self._loop_thread)
            entries = [each for each in traceback.extract_stack(frame) if "<frozen" not in each.filename]
            told = [
                f"{each.name} ({each.filename}:{each.lineno})" for each in reversed(entries[-self._DEPTH :])
            ]
            self._stacks.append(" < ".join(told))
