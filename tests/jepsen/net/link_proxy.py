"""One proxy: it accepts what a node says to the address that it has for another, and carries it on."""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress

from kquorum.node.config.addresses import HostPort
from tests.jepsen.net.lanes import Lane, LinkState

LOOPBACK = "127.0.0.1"
_CHUNK_BYTES = 64 * 1024
_HELD_BYTES_MAX = 1024 * 1024
# SO_LINGER: on, and no time at all; closing then resets.
_RESET_AT_CLOSE = struct.pack("ii", 1, 0)


class Connection:
    """The opener's side of it, and the peer's as soon as there is one."""

    def __init__(self, task: asyncio.Task[None], opener: asyncio.StreamWriter) -> None:
        self._task = task
        self._opener = opener
        self._peer: asyncio.StreamWriter | None = None

    def reached(self, peer: asyncio.StreamWriter) -> None:
        self._peer = peer

    def reset(self) -> None:
        for writer in (self._opener, self._peer):
            near = None if writer is None else writer.get_extra_info("socket")
            if near is not None:
                with suppress(OSError):
                    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
        self.cancel()

    def cancel(self) -> None:
        self._task.cancel()

    def abort(self) -> None:
        for writer in (self._opener, self._peer):
            if writer is not None:
                writer.transport.abort()


class LinkProxy:
    """Carries the connections which `source` opens to `target`."""

    def __init__(self, target_address: HostPort, there: LinkState, back: LinkState) -> None:
        self._target_address = target_address
        self._there = there
        self._back = back
        self._connections: dict[asyncio.Task[None], Connection] = {}

    async def start(self) -> int:
        """Answers the port."""
        self._server = await asyncio.start_server(self.accept, LOOPBACK, 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        self._server.close()
        for connection in self._connections.values():
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def reset(self) -> int:
        """Answers how many connections there were."""
        tasks = list(self._connections)
        for connection in self._connections.values():
            connection.reset()
        await asyncio.gather(*tasks, return_exceptions=True)
        return len(tasks)

    async def accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, said: bytes = b""
    ) -> None:
        """`said` is what was read already."""
        task = asyncio.current_task()
        assert task is not None
        connection = self._connections[task] = Connection(task, writer)
        task.add_done_callback(self._connections.pop)
        # Cancelled when the proxies stop, and by a reset.
        with suppress(OSError, asyncio.CancelledError):
            await self._carry(connection, reader, writer, said)
        connection.abort()

    async def _carry(
        self, connection: Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, said: bytes
    ) -> None:
        held = await _hold(reader, self._handshake, said)
        if held is None:
            return
        peer_reader, peer_writer = await asyncio.open_connection(*self._target_address)
        connection.reached(peer_writer)
        there, back = Lane(reader, peer_writer, self._there), Lane(peer_reader, writer, self._back)
        work = [there.pump(held), there.send_waiting(), back.pump(b""), back.send_waiting()]
        tasks = [asyncio.create_task(each) for each in work]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _handshake(self) -> None:
        """A connection is announced after a round trip."""
        await self._there.pass_handshake()
        await self._back.pass_handshake()


async def _hold(
    reader: asyncio.StreamReader, ready: Callable[[], Awaitable[None]], said: bytes
) -> bytes | None:
    """`said` and what arrived until `ready`; None when the sender gave up before."""
    held = bytearray(said)
    waiting = asyncio.ensure_future(ready())
    try:
        while not waiting.done():
            reading = asyncio.ensure_future(reader.read(_CHUNK_BYTES))
            await asyncio.wait({waiting, reading}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                reading.cancel()
                await asyncio.wait({reading})
                break
            data = reading.result()
            if not data or len(held) > _HELD_BYTES_MAX:
                return None
            held += data
        return bytes(held)
    finally:
        waiting.cancel()
