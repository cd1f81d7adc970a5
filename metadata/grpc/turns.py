"""Turns for the streams of the gRPC services: many with a little to do must not fill an iteration of the loop."""

import asyncio
from collections import deque
from typing import Final

# Of up to 100 microseconds each: to wake a stream, to offer it a change, to send a message.
PIECES_AT_ONCE: Final = 32


class SliceTurns:
    """One slice of work of all streams in each iteration of the loop: a hundred streams with a slice each would hold it
    for a second."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> None:
        await self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        try:
            await asyncio.sleep(0)
        finally:
            self._lock.release()


class PieceTurns:
    """`PIECES_AT_ONCE` small pieces of work of all streams in each iteration of the loop, first come, first served."""

    def __init__(self) -> None:
        self._left = PIECES_AT_ONCE
        self._line: deque[asyncio.Future[None]] = deque()
        self._is_renewing = False

    async def take(self) -> None:
        """Return in an iteration that has room for one more piece."""
        loop = asyncio.get_running_loop()
        if self._left > 0:  # the line is empty: it is served first
            self._left -= 1
            self._renew_soon(loop)
            return
        turn: asyncio.Future[None] = loop.create_future()
        self._line.append(turn)
        await turn

    def _renew_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._is_renewing:
            self._is_renewing = True
            loop.call_soon(self._renew, loop)

    def _renew(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_renewing = False
        self._left = PIECES_AT_ONCE
        while self._line and self._left > 0:
            turn = self._line.popleft()
            if not turn.done():  # its stream has not ended meanwhile
                turn.set_result(None)
                self._left -= 1
        if self._left < PIECES_AT_ONCE:
            self._renew_soon(loop)
