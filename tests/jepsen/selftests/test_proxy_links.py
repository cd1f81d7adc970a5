"""What a proxy does with the bytes of one direction, without any sockets."""

import asyncio
import time
from random import Random
from typing import cast

import pytest

from tests.jepsen.net.conditions import RETRANSMIT_S, RETRANSMIT_SYN_S, SOUND, Condition, Tally
from tests.jepsen.net.lanes import Lane, LinkState

CUT = Condition(is_cut=True)
PATIENCE_S = 30.0


class Written:
    """As much of a StreamWriter as a lane needs."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.pieces.append(data)

    async def drain(self) -> None:
        pass


class Counting(asyncio.StreamReader):
    """Counts how often it is read."""

    reads = 0

    async def read(self, n: int = -1) -> bytes:
        self.reads += 1
        return await super().read(n)


async def turns() -> None:
    """All that can go on without us has gone on."""
    for _ in range(20):
        await asyncio.sleep(0)


async def carry(link: LinkState, reader: asyncio.StreamReader, written: Written, first: bytes = b"") -> None:
    lane = Lane(reader, cast("asyncio.StreamWriter", written), link)
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(lane.pump(first), lane.send_waiting())


@pytest.mark.parametrize("first_timeout_s", [RETRANSMIT_S, RETRANSMIT_SYN_S])
def test_a_loss_holds_a_chunk_as_long_as_tcp_needs_to_send_it_again(first_timeout_s: float) -> None:
    link = LinkState(Random(1))
    link.change(Condition(drop_fraction=0.999))
    before_s = time.monotonic()
    # Lost six times in a row, as nearly everything is.
    assert link.departure_s(100, first_timeout_s) - before_s >= first_timeout_s * (1 + 2 + 4 + 8 + 16 + 32)
    assert link.tally == Tally(delayed=1, lost=6)


def test_a_sound_link_delays_nothing() -> None:
    link = LinkState(Random(1))
    assert link.departure_s(100) <= time.monotonic()
    assert link.tally == Tally()


def test_what_waits_goes_before_what_comes_when_the_link_is_healed() -> None:
    async def scenario() -> list[bytes]:
        link, reader, written = LinkState(Random(1)), asyncio.StreamReader(), Written()
        link.change(CUT)
        carrying = asyncio.create_task(carry(link, reader, written, b"first"))
        await turns()
        assert link.tally.cut == 1
        # In this order the pump is awake before the sender.
        reader.feed_data(b"second")
        link.change(SOUND)
        reader.feed_eof()
        await carrying
        return written.pieces

    assert asyncio.run(scenario()) == [b"first", b"second"]


def test_the_end_of_a_stream_waits_at_the_gate_as_well() -> None:
    async def scenario() -> bool:
        link, reader, written = LinkState(Random(1)), asyncio.StreamReader(), Written()
        link.change(CUT)
        reader.feed_eof()
        carrying = asyncio.create_task(carry(link, reader, written))
        await turns()
        assert link.tally.cut == 1
        ended_early = carrying.done()
        link.change(SOUND)
        await carrying
        return ended_early

    assert not asyncio.run(scenario())


def test_a_cut_link_takes_no_more_than_some_chunks_and_the_sender_has_to_wait() -> None:
    async def scenario() -> int:
        link, reader, written = LinkState(Random(1)), Counting(), Written()
        link.change(CUT)
        carrying = asyncio.create_task(carry(link, reader, written))
        for _ in range(200):
            reader.feed_data(b"x")
            await turns()
        reads = reader.reads
        link.change(SOUND)
        reader.feed_eof()
        await carrying
        assert sum(map(len, written.pieces)) == 200
        return reads

    assert 1 < asyncio.run(scenario()) < 100
