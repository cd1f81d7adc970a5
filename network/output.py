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
# The same, while others wait for room that this output takes. A peer that sends a frame has to be as fast.
_CROWDED_TIMEOUT_S = 2.0
_CROWDED_PROGRESS_BYTES = 524_288


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


class _Progress:
    """What the peer has taken since a moment at which output waited."""

    __slots__ = ("_since_s", "_taken_then", "_waiting_then")

    def __init__(self) -> None:
        self._since_s = 0.0
        self._taken_then = 0
        self._waiting_then = 0

    def is_behind(self, now_s: float, sent: int, waiting: int, timeout_s: float, least_bytes: int) -> bool:
        """Whether output has waited for longer than `timeout_s`, and the peer has taken neither all of it nor
        `least_bytes` meanwhile. Enough progress begins the period again."""
        taken = sent - waiting
        enough = min(self._waiting_then, least_bytes)
        if not waiting or not self._waiting_then or taken - self._taken_then >= enough:
            self._waiting_then, self._taken_then, self._since_s = waiting, taken, now_s
            return False
        return now_s - self._since_s > timeout_s


class Output:
    """`unsent_bytes` is how much output waited for the peer at the last `look`. With TLS, some 128 KiB that were
    encrypted and wait beneath it are not counted."""

    __slots__ = (
        "_closes_when_sent",
        "_held_by_first",
        "_progress",
        "_progress_when_crowded",
        "_queue",
        "_queued_bytes",
        "_transport",
        "_transport_is_full",
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
        self._progress = _Progress()
        self._progress_when_crowded: _Progress | None = None
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

    def _waiting(self) -> int:
        """The kernel takes more output only when the peer has acknowledged much of what the kernel holds. So these
        bytes count as waiting: a peer that acknowledges them makes progress."""
        waiting = self.look()
        return waiting + self._kernel_bytes() if waiting else 0

    def is_stuck(self, now_s: float, timeout_s: float) -> bool:
        """Whether output has waited for longer than `timeout_s`, and the peer has taken less than
        `_LEAST_PROGRESS_BYTES` of it meanwhile."""
        return self._progress.is_behind(
            now_s, self.sent_bytes, self._waiting(), timeout_s, _LEAST_PROGRESS_BYTES
        )

    def is_too_slow_for_a_crowd(self, now_s: float) -> bool:
        """To be asked every second while others wait for the room that this output takes."""
        if self._progress_when_crowded is None:
            if not self.look():
                return False
            self._progress_when_crowded = _Progress()
        return self._progress_when_crowded.is_behind(
            now_s, self.sent_bytes, self._waiting(), _CROWDED_TIMEOUT_S, _CROWDED_PROGRESS_BYTES
        )
