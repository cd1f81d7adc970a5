"""Nodes on loopback, each reaching each peer through a proxy port of its own; needs no rights at all.

    node a ── 127.0.0.1:p(a, b) ── proxy ── 127.0.0.1:port of b

A cut direction is a closed gate in the pump of every connection between the two nodes, whoever opened it: bytes wait
before it, as they would in the kernel's send buffer. Nothing is reset. A connection that is opened while one of the
directions is cut is accepted (the machine's kernel does that) but not carried on until both are open; if its
opener gives up before, the peer never hears of it.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self, TypeVar

from cli.config.addresses import HostPort
from cli.config.materialise import free_ports
from tests.jepsen.net.network import Link

LOOPBACK = "127.0.0.1"
_CHUNK_BYTES = 64 * 1024
_HELD_BYTES_MAX = 1024 * 1024
_CALL_TIMEOUT_S = 10.0
T = TypeVar("T")


class Gates:
    """Which directions are open; all of it within the proxies' loop."""

    def __init__(self) -> None:
        self._open: dict[Link, asyncio.Event] = {}
        self.passed_bytes: dict[Link, int] = {}

    async def pass_through(self, link: Link) -> None:
        await self._gate(link).wait()

    def close(self, links: Iterable[Link]) -> None:
        for link in links:
            self._gate(link).clear()

    def open_all(self) -> None:
        for gate in self._open.values():
            gate.set()

    def count(self, link: Link, size: int) -> None:
        self.passed_bytes[link] = self.passed_bytes.get(link, 0) + size

    def _gate(self, link: Link) -> asyncio.Event:
        if link not in self._open:
            self._open[link] = asyncio.Event()
            self._open[link].set()
        return self._open[link]


class LinkProxy:
    """Carries the connections which `source` opens to `target`."""

    def __init__(self, source: int, target: int, target_address: HostPort, gates: Gates) -> None:
        self._there: Link = (source, target)
        self._back: Link = (target, source)
        self._target_address = target_address
        self._gates = gates
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self) -> int:
        """Answers the port."""
        self._server = await asyncio.start_server(self._accept, LOOPBACK, 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        # Cancelled when the proxies stop.
        with suppress(OSError, asyncio.CancelledError):
            await self._carry(reader, writer)
        writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held = await _hold(reader, self._both_open)
        if held is None:
            return
        peer_reader, peer_writer = await asyncio.open_connection(*self._target_address)
        try:
            if held:
                peer_writer.write(held)
            pumps = {
                asyncio.create_task(self._pump(reader, peer_writer, self._there)),
                asyncio.create_task(self._pump(peer_reader, writer, self._back)),
            }
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
        finally:
            peer_writer.transport.abort()

    async def _both_open(self) -> None:
        await self._gates.pass_through(self._there)
        await self._gates.pass_through(self._back)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: Link) -> None:
        """Until one side ends. The end of a stream is news too, and waits at the gate like any other."""
        while data := await reader.read(_CHUNK_BYTES):
            await self._gates.pass_through(link)
            writer.write(data)
            self._gates.count(link, len(data))
            await writer.drain()
        await self._gates.pass_through(link)


async def _hold(reader: asyncio.StreamReader, ready: Callable[[], Awaitable[None]]) -> bytes | None:
    """What arrived until `ready`; None when the sender gave up before."""
    held = bytearray()
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


class ProxyNetwork:
    """A thread with a loop that runs one LinkProxy for each node and each of its `targets`."""

    name = "proxy"

    def __init__(self, nodes: Sequence[int], targets: Sequence[int]) -> None:
        self._nodes = tuple(nodes)
        self._targets = tuple(targets)
        self._proxies: list[LinkProxy] = []
        self._routes: dict[Link, HostPort] = {}

    def __enter__(self) -> Self:
        self._gates = Gates()
        ports = free_ports(len(self._nodes))
        self._addresses = {
            node: HostPort(LOOPBACK, port) for node, port in zip(self._nodes, ports, strict=True)
        }
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="jepsen-proxies", daemon=True)
        self._thread.start()
        try:
            self._call(self._start_all())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._call(self._stop_all())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_CALL_TIMEOUT_S)
            self._loop.close()

    async def _start_all(self) -> None:
        for source in self._nodes:
            for target in self._targets:
                if source != target:
                    proxy = LinkProxy(source, target, self._addresses[target], self._gates)
                    port = await proxy.start()
                    self._proxies.append(proxy)
                    self._routes[source, target] = HostPort(LOOPBACK, port)

    async def _stop_all(self) -> None:
        for proxy in self._proxies:
            await proxy.stop()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_CALL_TIMEOUT_S)

    def address_of(self, node_id: int) -> HostPort:
        return self._addresses[node_id]

    def route(self, source: int, target: int) -> HostPort:
        return self._addresses[target] if source == target else self._routes[source, target]

    @contextmanager
    def inside(self, node_id: int) -> Iterator[None]:
        yield

    def enter_as_client(self) -> None:
        """All are on loopback."""

    def cut(self, links: Iterable[Link]) -> None:
        async def close() -> None:
            self._gates.close(links)

        self._call(close())

    def heal(self) -> None:
        async def open_all() -> None:
            self._gates.open_all()

        self._call(open_all())

    def counters(self) -> dict[str, int]:
        return {f"{a} to {b}": size for (a, b), size in sorted(self._gates.passed_bytes.items())}
