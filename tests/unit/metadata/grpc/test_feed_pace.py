"""One reader of the feed must not keep the others waiting. Time is the loop's, and passes only while all wait."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from kquorum.metadata.grpc.feed import PATIENCE_SECONDS, ChangeFeed, Watcher
from kquorum.metadata.grpc.source import CommittedLog
from tests.support.grpc_source import FakeSource, topic

T = TypeVar("T")
LIMIT = 40
BATCHES = 100


class _NoWaiting(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.passed_s = 0.0

    def select(self, timeout: float | None = None) -> Any:
        assert timeout is not None, "all wait, and nothing is due"
        self.passed_s += timeout
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _NoWaiting()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.passed_s


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main())


async def read(
    watcher: Watcher, seen: list[int], pause_s: float, all_seen: asyncio.Event | None = None
) -> None:
    async for change in watcher.changes():
        seen.append(change.offset)
        if all_seen is not None and len(seen) == BATCHES:
            all_seen.set()
        await asyncio.sleep(pause_s)


def waited_s(*, slow: int, pause_s: float) -> float:
    """How long it takes one that reads at once to see `BATCHES` changes, while `slow` others pause after each."""

    async def main() -> float:
        source = FakeSource()
        log = CommittedLog(source)
        feed = ChangeFeed(log)
        feed.hold()
        seen: list[int] = []
        all_seen = asyncio.Event()
        watchers = [Watcher((), 0, LIMIT) for _ in range(slow + 1)]
        pauses = [0.0] + [pause_s] * slow
        readers = []
        for watcher, pause in zip(watchers, pauses, strict=True):
            feed.attach(watcher)
            readers.append(asyncio.create_task(read(watcher, [] if pause else seen, pause, all_seen)))
        for number in range(BATCHES):
            source.append(topic(f"{number}", number))
        source.commit_all()
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        await asyncio.wait_for(all_seen.wait(), 1_000)
        took_s = loop.time() - began_s
        feed.release()
        log.close()
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
        return took_s

    return run(main)


def test_readers_that_take_nothing_are_waited_for_together() -> None:
    assert waited_s(slow=10, pause_s=10_000.0) < 2 * PATIENCE_SECONDS


def test_readers_that_take_a_change_now_and_then_hold_up_the_others_only_once() -> None:
    """A twentieth of a queue of 40 is two changes, and each takes one within the feed's patience."""
    assert waited_s(slow=10, pause_s=0.8 * PATIENCE_SECONDS) < 2 * PATIENCE_SECONDS
