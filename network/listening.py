"""The sockets of a listener, and what comes in at them.

Not `loop.create_server`: with TLS it does not report connections whose handshake is under way or has failed, so nothing
could count or bound them, and it cannot refuse a connection before that costs anything.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Sequence

log = logging.getLogger("network.server")

_BACKLOG = 1024
# Of one turn of the loop, so that a flood of connections leaves time for those that are open.
_ACCEPTED_AT_ONCE = 128
_OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_PAUSE_S = 0.5


async def listening_sockets(
    loop: asyncio.AbstractEventLoop, host: str, port: int
) -> tuple[socket.socket, ...]:
    """One for each address of the host; all addresses of the machine for an empty one. Raises OSError."""
    found = await loop.getaddrinfo(
        host or None,
        port,
        type=socket.SOCK_STREAM,
        flags=socket.AI_PASSIVE,
    )
    sockets: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            try:
                opened = socket.socket(family, kind, protocol)
            except OSError:
                continue  # a family that this machine does not have
            sockets.append(opened)
            _listen(opened, address)
        if not sockets:
            raise OSError(errno.EAFNOSUPPORT, "the machine has no address of this kind")
    except BaseException:
        _close(sockets)
        raise
    return tuple(sockets)


def _listen(opened: socket.socket, address: object) -> None:
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if opened.family == socket.AF_INET6:
        opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    opened.setblocking(False)
    opened.bind(address)  # type: ignore[arg-type]
    opened.listen(_BACKLOG)


def _close(sockets: Sequence[socket.socket]) -> None:
    for each in sockets:
        each.close()


class Listening:
    """`on_accepted` gets each new socket, not blocking, and the peer's address as `accept` tells it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sockets: Sequence[socket.socket],
        on_accepted: Callable[[socket.socket, tuple[object, ...]], None],
    ) -> None:
        self._loop = loop
        self._sockets = tuple(sockets)
        self._on_accepted = on_accepted
        self._timer: asyncio.TimerHandle | None = None
        self.bound_port: int = sockets[0].getsockname()[1]
        self._resume()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._pause()
        _close(self._sockets)

    def _resume(self) -> None:
        for each in self._sockets:
            self._loop.add_reader(each.fileno(), self._accept, each)

    def _pause(self) -> None:
        for each in self._sockets:
            self._loop.remove_reader(each.fileno())

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in _OUT_OF_RESOURCES:
                    self._wait_for_resources(error)
                    return
                continue  # the peer was gone already
            accepted.setblocking(False)
            self._on_accepted(accepted, address)

    def _wait_for_resources(self, error: OSError) -> None:
        """New clients wait in the kernel's queue; those that are connected go on."""
        log.error("no connection can be accepted now (%s); trying again in %s s", error, _PAUSE_S)
        self._pause()
        self._timer = self._loop.call_later(_PAUSE_S, self._resume)
