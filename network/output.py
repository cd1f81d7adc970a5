"""The sending side of one connection, and whether its peer takes what is sent."""

import asyncio
import fcntl
import struct
import termios
from collections import deque

_INT = struct.Struct("i")
# asyncio's own default: while more output waits, the connection is not served until the peer has taken most of it.
_HIGH_WATER_BYTES = 65_536
# The transport gets so much at a time. With TLS it encrypts at once all that it is given, and keeps room for as much
# until it is closed: a client that read one answer of 16 MB held 16 MB for as long as it stayed.
_WRITTEN_AT_ONCE = 65_536
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
    """`unsent_bytes` is how much output waited for the peer at the last `look`. With TLS, some 128 KiB that were
    encrypted and wait beneath it are not counted."""

    __slots__ = (
        "_closes_when_sent",
        "_held_by_first",
        "_looked_at_s",
        "_queue",
        "_queued_bytes",
        "_sent_then",
        "_transport",
        "_transport_is_full",
        "_waiting_then",
        "sent_bytes",
        "unsent_bytes",
    )

    def __init__(self, transport: asyncio.Transport, max_unsent_bytes: int) -> None:
        self._transport = transport
        self._transport_is_full = False
        # What the transport gets when it has room again.
        self._queue: deque[memoryview] = deque()
        # The memory that the first of them holds: its own length when it came, or when what was left was copied.
        self._held_by_first = 0
        self._queued_bytes = 0
        self._closes_when_sent = False
        self.sent_bytes = 0
        self.unsent_bytes = 0
        self._waiting_then = 0
        self._sent_then = 0
        self._looked_at_s = 0.0
        transport.set_write_buffer_limits(high=min(_HIGH_WATER_BYTES, max_unsent_bytes))

    @property
    def is_full(self) -> bool:
        """Nothing more is to be served until the peer has taken most of what was written."""
        return self._transport_is_full or bool(self._queue)

    def write(self, frames: list[bytes | memoryview]) -> int:
        """Frames, or pieces of frames, in order; their bytes are not copied. Returns the number of bytes."""
        size = sum(map(len, frames))
        self.sent_bytes += size
        if self._queue or size > _WRITTEN_AT_ONCE:
            self._queue.extend([memoryview(frame) for frame in frames if frame])
            self._queued_bytes += size
            self._pass_on()
        elif len(frames) > 1:
            self._transport.writelines(frames)
        elif size:
            self._transport.write(frames[0])
        return size

    def _pass_on(self) -> None:
        """As much as the transport takes, which says that it is full while it is written to (`set_full`)."""
        if self._transport.is_closing():
            self._forget_queue()
        while self._queue and not self._transport_is_full:
            first = self._queue.popleft()
            self._held_by_first = self._held_by_first or len(first)
            rest = first[_WRITTEN_AT_ONCE:]
            if not rest:
                self._held_by_first = 0
            elif 2 * len(rest) <= self._held_by_first and isinstance(first.obj, bytes):
                # What was sent of a frame is freed when it is half of it, or a peer could hold all of it by its end.
                self._queue.appendleft(memoryview(bytes(rest)))
                self._held_by_first = len(rest)
            else:
                self._queue.appendleft(rest)
            piece = first[:_WRITTEN_AT_ONCE]
            self._queued_bytes -= len(piece)
            self._transport.write(piece)
        if self._closes_when_sent and not self._queue:
            self._close()

    def close(self) -> None:
        """Close the transport when all has gone out."""
        self._closes_when_sent = True
        if not self._queue:
            self._close()

    def _close(self) -> None:
        """Once: asyncio's TLS cannot be aborted any more when it was closed twice."""
        if not self._transport.is_closing():
            self._transport.close()

    def abort(self) -> None:
        """Close the transport at once; what has not gone out is lost."""
        self._forget_queue()
        self._transport.abort()

    def end(self) -> None:
        """The connection is gone."""
        self._forget_queue()
        self.unsent_bytes = 0
        self._transport = LOST

    def _forget_queue(self) -> None:
        self._queue.clear()
        self._queued_bytes = self._held_by_first = 0

    def set_full(self, is_full: bool) -> None:
        """Whether the transport is; if it is not any more, it gets what waited for it."""
        self._transport_is_full = is_full
        if not is_full:
            self._pass_on()
        self.look()

    def look(self) -> int:
        self.unsent_bytes = self._transport.get_write_buffer_size() + self._queued_bytes
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
