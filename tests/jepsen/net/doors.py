"""The one address of a node that all others know, and which node connects to it.

A leader says where it listens, and it says the same to everybody (KIP-853); so do voters in the log. Behind proxies of
which each has one opener only, nodes would go past them from then on, and no fault would touch them. Who comes to a
door says in its first request who it is: the client id of a node's connections ends in its id, as in `raft-client-3`.
Every other connection is a client's, and on no link.
"""

import asyncio
import re
import struct
from collections.abc import Mapping
from contextlib import suppress

from tests.jepsen.net.link_proxy import LOOPBACK, LinkProxy

# The size, the API's key and version, and the correlation id; then the length of the client id.
_HEAD = struct.Struct(">ihhih")
_NODE_ID_AT_END = re.compile(rb"-(\d+)$")


class Door:
    """Takes each connection to the proxy of who opened it."""

    def __init__(self, proxies: Mapping[int, LinkProxy], for_clients: LinkProxy) -> None:
        """`proxies` by their sources."""
        self._proxies = proxies
        self._for_clients = for_clients
        self._visits: set[asyncio.Task[None]] = set()

    async def start(self) -> int:
        """Answers the port."""
        self._server = await asyncio.start_server(self._accept, LOOPBACK, 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        self._server.close()
        for visit in self._visits:
            visit.cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._visits.add(task)
        task.add_done_callback(self._visits.discard)
        # It went away before it said who it is; or the proxies stop.
        with suppress(OSError, EOFError, asyncio.CancelledError):
            said, node_id = await _introduction(reader)
            proxy = self._for_clients if node_id is None else self._proxies.get(node_id, self._for_clients)
            await proxy.accept(reader, writer, said)
        writer.transport.abort()


async def _introduction(reader: asyncio.StreamReader) -> tuple[bytes, int | None]:
    """What was read of the first request, and the node that sent it."""
    said = await reader.readexactly(_HEAD.size)
    length = _HEAD.unpack(said)[-1]
    client_id = await reader.readexactly(max(0, length))
    found = _NODE_ID_AT_END.search(client_id)
    return said + client_id, None if found is None else int(found[1])
