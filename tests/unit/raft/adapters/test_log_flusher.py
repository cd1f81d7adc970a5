"""When a flush begins: at once for a replica that votes, at most once an interval for one that never does."""

from collections.abc import Callable

from kquorum.raft.adapters.disk_thread import LogFlusher
from kquorum.raft.inputs import Input, LogFlushed


class Flushes:
    """A log in which a write is one offset; flushes last until `finish`, rests until `rest_is_over`."""

    def __init__(self, interval_ms: int = 0) -> None:
        self.end_offset = 0
        self.running: list[Callable[[], None]] = []
        self.rests: list[tuple[int, Callable[[], None]]] = []
        self.told: list[Input] = []
        self.flusher = LogFlusher(
            lambda: self.end_offset,
            self._on_disk,
            self.told.append,
            interval_ms=interval_ms,
            rest=lambda delay_ms, then: self.rests.append((delay_ms, then)),
        )

    def _on_disk(self, job: Callable[[], int], then: Callable[[int], None]) -> None:
        covered = job()
        self.running.append(lambda: then(covered))

    def write(self) -> None:
        self.end_offset += 1
        self.flusher.flush_soon()
        self.flusher.maybe_begin()

    def finish(self) -> None:
        self.running.pop(0)()

    def rest_is_over(self) -> int:
        delay_ms, then = self.rests.pop(0)
        then()
        return delay_ms


def test_without_an_interval_what_is_written_meanwhile_is_flushed_next() -> None:
    flushes = Flushes()
    flushes.write()
    flushes.write()
    assert len(flushes.running) == 1
    flushes.finish()
    assert len(flushes.running) == 1
    flushes.finish()
    assert flushes.told == [LogFlushed(1, 0), LogFlushed(2, 0)]
    assert not flushes.rests


def test_with_an_interval_the_first_write_is_flushed_and_the_others_share_the_next() -> None:
    flushes = Flushes(interval_ms=1_000)
    flushes.write()
    flushes.finish()
    for _ in range(10):
        flushes.write()
    assert not flushes.running
    assert flushes.rest_is_over() == 1_000
    flushes.finish()
    assert flushes.told == [LogFlushed(1, 0), LogFlushed(11, 0)]


def test_a_rest_that_ends_while_the_flush_still_runs_begins_none_beside_it() -> None:
    flushes = Flushes(interval_ms=1_000)
    flushes.write()
    flushes.write()
    flushes.rest_is_over()
    assert len(flushes.running) == 1
    flushes.finish()
    assert len(flushes.running) == 1, "and the next follows at once"


def test_after_a_rest_without_writes_nothing_is_flushed_until_the_next_write() -> None:
    flushes = Flushes(interval_ms=1_000)
    flushes.write()
    flushes.finish()
    flushes.rest_is_over()
    assert not flushes.running
    assert not flushes.rests
    flushes.write()
    assert len(flushes.running) == 1
