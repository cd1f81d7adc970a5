"""The event loop of a node under test: links to other nodes can be cut, and flushes of the disk slowed down.

Only the node's own connections pass it. A link that is cut takes down what is connected, and a connection that is made
over it waits until the link is mended or the node gives up, as with packets that are dropped.
"""

import asyncio
import json
import os
import threading
from collections.abc import Callable
from typing import Any

import uvloop

Address = tuple[str, int]


class FaultyLoop(uvloop.Loop):
    """Reads its faults from `descriptor`, a JSON object a line: `cut` has the addresses that cannot be reached, and
    `flush_delay_ms` how much longer a flush takes. Each line replaces what was before."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._cut: frozenset[Address] = frozenset()
        self._mended = asyncio.Event()
        self._connected: dict[asyncio.BaseTransport, Address] = {}
        self._unread = b""
        self._flushes = _SlowFlushes()
        os.set_blocking(descriptor, False)
        self.add_reader(descriptor, self._read_faults)

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], host: Any = None, port: Any = None, **options: Any
    ) -> tuple[asyncio.BaseTransport, Any]:
        address = (host, port)
        while address in self._cut:
            self._mended.clear()
            await self._mended.wait()
        made: Any = await super().create_connection(protocol_factory, host, port, **options)
        transport, protocol = made
        for known in [each for each in self._connected if each.is_closing()]:
            del self._connected[known]
        self._connected[transport] = address
        if address in self._cut:
            transport.abort()
        return transport, protocol

    def _read_faults(self) -> None:
        data = os.read(self._descriptor, 65_536)
        if not data:
            self.remove_reader(self._descriptor)
            return
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            faults = json.loads(line)
            self._flushes.delay_s = faults["flush_delay_ms"] / 1000
            self._cut = frozenset((host, port) for host, port in faults["cut"])
            self._mended.set()
            for transport, address in list(self._connected.items()):
                if address in self._cut:
                    del self._connected[transport]
                    transport.abort()  # type: ignore[attr-defined]


class _SlowFlushes:
    """Stands in the place of os.fsync and os.fdatasync, which nodes call in threads of their disks."""

    def __init__(self) -> None:
        self.delay_s = 0.0
        self._never = threading.Event()
        for name in ("fsync", "fdatasync"):
            setattr(os, name, self._slowed(getattr(os, name)))

    def _slowed(self, flush: Callable[[int], None]) -> Callable[[int], None]:
        def slowed(descriptor: int) -> None:
            if self.delay_s:
                self._never.wait(self.delay_s)
            flush(descriptor)

        return slowed
