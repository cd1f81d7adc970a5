"""How `kquorum produce` takes in lines while it sends others."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from kquorum.cli.clients.record_text import NewRecord
from kquorum.cli.commands.produce import _Intake

LINES = 10_000


def records(count: int) -> Iterator[NewRecord]:
    for number in range(count):
        yield NewRecord(key=None, value=str(number).encode(), headers=(), timestamp_ms=0, partition=None)


async def all_batches(intake: _Intake) -> list[list[bytes | None]]:
    batches: list[list[bytes | None]] = []
    is_over = False
    while not is_over:
        batch, is_over = await intake.next_batch()
        batches.append([each.value for each in batch])
    return batches


def taken(source: Iterator[NewRecord], is_full: threading.Event) -> tuple[list[list[bytes | None]], int]:
    """The batches, and how often the reading thread woke the loop."""
    wakes = 0

    async def run() -> list[list[bytes | None]]:
        loop = asyncio.get_running_loop()
        wake = loop.call_soon_threadsafe

        def counted(callback: Callable[..., object], *arguments: object) -> asyncio.Handle:
            nonlocal wakes
            wakes += 1
            return wake(callback, *arguments)

        loop.call_soon_threadsafe = counted  # type: ignore[assignment,method-assign]
        intake = _Intake(loop)
        # All that fits is there before the first is taken, as where a broker was away for a while.
        reading = threading.Thread(target=intake.read, args=(source,))
        reading.start()
        await asyncio.to_thread(is_full.wait)
        batches = await all_batches(intake)
        reading.join()
        return batches

    return asyncio.run(run()), wakes


def test_all_lines_come_in_order_in_large_batches() -> None:
    is_full = threading.Event()

    def source() -> Iterator[NewRecord]:
        for number, record in enumerate(records(LINES)):
            if number == _Intake._MAX_RECORDS:
                is_full.set()
            yield record

    batches, wakes = taken(source(), is_full)
    assert [value for batch in batches for value in batch] == [
        str(number).encode() for number in range(LINES)
    ]
    assert max(len(batch) for batch in batches) == 1_000
    assert wakes < LINES / 10


def test_what_was_read_before_an_error_is_taken_before_it_is_raised() -> None:
    seen: list[bytes | None] = []

    def spoiled() -> Iterator[NewRecord]:
        yield from records(3)
        raise ValueError("line 4")

    async def run() -> None:
        intake = _Intake(asyncio.get_running_loop())
        intake.read(spoiled())
        batch, is_over = await intake.next_batch()
        seen.extend(each.value for each in batch)
        assert not is_over
        await intake.next_batch()

    with pytest.raises(ValueError, match="line 4"):
        asyncio.run(run())
    assert seen == [b"0", b"1", b"2"]


def test_a_line_alone_does_not_wait_for_others() -> None:
    may_end = threading.Event()

    def slow() -> Iterator[NewRecord]:
        yield from records(1)
        may_end.wait()

    async def run() -> None:
        intake = _Intake(asyncio.get_running_loop())
        reading = threading.Thread(target=intake.read, args=(slow(),))
        reading.start()
        batch, is_over = await intake.next_batch()
        may_end.set()
        reading.join()
        assert ([each.value for each in batch], is_over) == ([b"0"], False)

    asyncio.run(run())
