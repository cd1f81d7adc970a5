"""What a proxy does with the bytes of one direction of a connection, as a faulty link would.

A cut link is a closed gate: bytes wait before it, as they would in the kernel's send buffer. A delay holds each chunk
until its time has come, in order. Nothing can be lost on a connection that the proxy itself has acknowledged, so a
loss is what TCP makes of one: the chunk is held for a retransmission timeout, twice as long each time in a row that it
is lost (RFC 6298), and all behind it wait. What a heal finds waiting leaves at once.
"""

import asyncio
import time
from contextlib import suppress
from random import Random

from tests.jepsen.net.conditions import (
    RETRANSMIT_S,
    RETRANSMIT_SYN_S,
    SOUND,
    Condition,
    Shaper,
    Tally,
    held_s,
)

_CHUNK_BYTES = 64 * 1024
_CHUNKS_WAITING_MAX = 32


class LinkState:
    """What all connections between two nodes share in one direction; all of it within the proxies' loop."""

    def __init__(self, random_source: Random) -> None:
        self.condition = SOUND
        self.tally = Tally()
        self._shaper = Shaper(random_source)
        self._changed = asyncio.Event()

    def change(self, condition: Condition) -> None:
        if condition != self.condition:
            self.condition = condition
            self._shaper.restart()
            self._changed.set()
            self._changed = asyncio.Event()

    def departure_s(self, size: int, first_timeout_s: float = RETRANSMIT_S) -> float:
        """When a chunk that comes now may leave, if the link is not cut then."""
        now_s = time.monotonic()
        if not self.condition.is_shaped:
            return now_s
        losses = self._shaper.losses(self.condition)
        self.tally.lost += losses
        self.tally.delayed += 1
        return self._shaper.departure_s(self.condition, now_s, size) + held_s(losses, first_timeout_s)

    async def pass_through(self, departure_s: float) -> None:
        """Until then, and until the link is open; a link that does not delay any more delays nothing at all."""
        while self.condition.is_shaped and (left_s := departure_s - time.monotonic()) > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), left_s)
        if self.condition.is_cut:
            self.tally.cut += 1
        while self.condition.is_cut:
            await self._changed.wait()

    async def pass_handshake(self) -> None:
        await self.pass_through(self.departure_s(0, RETRANSMIT_SYN_S))


class Lane:
    """One direction of one connection: `pump` and `send_waiting` run side by side until one of them ends."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: LinkState) -> None:
        self._reader = reader
        self._writer = writer
        self._link = link
        self._waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_CHUNKS_WAITING_MAX)
        self._is_empty = True

    async def pump(self, first: bytes) -> None:
        """Until the sender ends, and that too has arrived: the end of a stream is news like any other."""
        if first:
            await self._carry(first)
        while data := await self._reader.read(_CHUNK_BYTES):
            await self._carry(data)
        await self._enqueue(b"")
        await self._waiting.join()

    async def send_waiting(self) -> None:
        while True:
            departure_s, data = await self._waiting.get()
            await self._link.pass_through(departure_s)
            if data:
                await self._write(data)
            self._is_empty = self._waiting.empty()
            self._waiting.task_done()
            if not data:
                return

    async def _carry(self, data: bytes) -> None:
        # The way of nearly all bytes.
        if self._is_empty and self._link.condition is SOUND:
            await self._write(data)
        else:
            await self._enqueue(data)

    async def _enqueue(self, data: bytes) -> None:
        self._is_empty = False
        await self._waiting.put((self._link.departure_s(len(data)), data))

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        self._link.tally.bytes += len(data)
        await self._writer.drain()
