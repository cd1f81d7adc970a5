"""The sending side of one connection, and whether its peer takes what is sent."""

import asyncio
import fcntl
import struct
import termios

_INT = struct.Struct("i")
# asyncio's own default: while more output waits, the connection is not served until the peer has taken most of it.
_HIGH_WATER_BYTES = 65_536
# What a peer must take within the timeout, or all that waits if that is less; a byte now and then is not enough.
_LEAST_PROGRESS_BYTES = 65_536


class LostTransport(asyncio.Transport):
    """Takes the place of a transport that has closed, so that the transport is freed at once: with TLS it holds 50 to
    300 KB. The connection itself stays while a handler still has one of its requests."""

    def is_closing(self) -> bool:
        return True

    def close(self) -> None:
        """It has."""

    def abort(self) -> None:
        """It has."""

    def pause_reading(self) -> None:
        """Nothing comes."""

    def resume_reading(self) -> None:
        """Nothing comes."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """To no peer."""

    def get_write_buffer_size(self) -> int:
        return 0


LOST = LostTransport()


class Output:
    """`unsent_bytes` is how much output waited for the peer at the last `look`. With TLS, up to 64 KiB in the socket
    are not counted."""

    __slots__ = (
        "_looked_at_s",
        "_sent_then",
        "_transport",
        "_waiting_then",
        "is_full",
        "sent_bytes",
        "unsent_bytes",
    )

    def __init__(self, transport: asyncio.Transport, max_unsent_bytes: int) -> None:
        self._transport = transport
        self.is_full = False
        self.sent_bytes = 0
        self.unsent_bytes = 0
        self._waiting_then = 0
        self._sent_then = 0
        self._looked_at_s = 0.0
        transport.set_write_buffer_limits(high=min(_HIGH_WATER_BYTES, max_unsent_bytes))

    def write(self, frames: list[bytes]) -> int:
        """Returns the number of bytes."""
        if len(frames) == 1:
            size = len(frames[0])
            if size:
                self._transport.write(frames[0])
        else:
            size = sum(map(len, frames))
            self._transport.writelines(frames)
        self.sent_bytes += size
        return size

    def end(self) -> None:
        """The connection is gone."""
        self.unsent_bytes = 0
        self._transport = LOST

    def set_full(self, is_full: bool) -> None:
        self.is_full = is_full
        self.look()

    def look(self) -> int:
        self.unsent_bytes = self._transport.get_write_buffer_size()
        return self.unsent_bytes

    def _kernel_bytes(self) -> int:
        """What the kernel holds and the peer has not acknowledged; 0 where the kernel does not tell."""
        try:
            connection = self._transport.get_extra_info("socket")
            (held,) = _INT.unpack(fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(_INT.size)))
        except (AttributeError, OSError):
            return 0
        return int(held)

    def is_stuck(self, now_s: float, timeout_s: float) -> bool:
        """Whether output has waited for longer than `timeout_s`, and the peer has taken less than
        `_LEAST_PROGRESS_BYTES` of it meanwhile. Enough progress begins the period again."""
        waiting = self.look()
        if waiting:
            # The kernel takes more output only when the peer has acknowledged much of what the kernel holds. So these
            # bytes count as waiting: a peer that acknowledges them makes progress.
            waiting += self._kernel_bytes()
        taken = self.sent_bytes - waiting - (self._sent_then - self._waiting_then)
        if not waiting or not self._waiting_then or taken >= min(self._waiting_then, _LEAST_PROGRESS_BYTES):
            self._waiting_then, self._sent_then, self._looked_at_s = waiting, self.sent_bytes, now_s
            return False
        return now_s - self._looked_at_s > timeout_s
