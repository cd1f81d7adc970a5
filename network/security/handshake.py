"""TLS whose server tells the peer why a handshake fails.

OpenSSL has an alert ready then, but asyncio and uvloop close the connection without sending it. To Kafka's clients that
looks like a network's fault, and they try until their time is over; with the alert they know that it is about TLS.
"""

import contextlib
import socket
import ssl
from contextvars import ContextVar
from typing import Any, cast

# Where a handshake that begins in this context takes place.
CONNECTION: ContextVar[socket.socket] = ContextVar("CONNECTION")


class _ServerSide(ssl.SSLObject):
    outgoing: ssl.MemoryBIO
    connection: socket.socket | None

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError:
            self._send_alert()
            raise
        self.connection = None

    def _send_alert(self) -> None:
        """As much as fits: what was sent before has gone out, for the peer has answered it."""
        alert = self.outgoing.read()
        if alert and self.connection is not None:
            with contextlib.suppress(OSError):
                self.connection.send(alert, socket.MSG_DONTWAIT)


class ServerContext(ssl.SSLContext):
    """Handshakes that find no CONNECTION fail without a word."""

    sslobject_class = _ServerSide

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *arguments: Any, **options: Any
    ) -> ssl.SSLObject:
        made = cast(_ServerSide, super().wrap_bio(incoming, outgoing, *arguments, **options))
        made.outgoing, made.connection = outgoing, CONNECTION.get(None)
        return made
