"""The received bytes of a connection that are not handled yet: a partial frame, and whole frames in their order."""

from collections import deque
from collections.abc import Callable

from kquorum.wire.errors import DecodeError
from kquorum.wire.protocol.apis import api_name
from kquorum.wire.protocol.frames import FrameDecoder

# What a small frame costs besides its bytes.
_FRAME_OVERHEAD_BYTES = 200
# A frame that is larger has more time: at least so much must come in a second.
_SLOWEST_BYTES_PER_S = 262_144
# The length, and the api key, with which every request begins.
_LENGTH_BYTES, _KEY_BYTES = 4, 2


class ReceiveBuffer:
    """Times are of the loop's clock. The time in which we do not read is not counted against the peer."""

    __slots__ = (
        "_begun_at_s",
        "_decoder",
        "_max_bytes",
        "_paused_at_s",
        "_timeout_s",
        "backlog",
        "queued_bytes",
    )

    def __init__(
        self, max_frame_bytes: int, frame_timeout_ms: int, max_bytes: Callable[[int], int] | None = None
    ) -> None:
        """`max_bytes` tells by api key how long a request may be, where that is less than `max_frame_bytes`."""
        self._max_bytes = max_bytes
        self._decoder = FrameDecoder(max_frame_bytes)
        self._timeout_s = frame_timeout_ms / 1000
        self._begun_at_s = 0.0
        self._paused_at_s = 0.0
        # Frames, each with the time at which it came.
        self.backlog: deque[tuple[bytes, float]] = deque()
        self.queued_bytes = 0

    @property
    def half_read_bytes(self) -> int:
        return self._decoder.buffered_bytes

    def set_max_frame_bytes(self, max_frame_bytes: int) -> None:
        self._decoder.max_frame_bytes = max_frame_bytes

    def feed(self, data: bytes, now_s: float) -> bool:
        """Whether a frame is complete. Raises DecodeError, for one that is too long for its API before it has come."""
        was_amid = self._decoder.buffered_bytes
        frames = self._decoder.feed(data)
        if frames:
            for frame in frames:
                self.backlog.append((frame, now_s))
                self.queued_bytes += len(frame) + _FRAME_OVERHEAD_BYTES
            was_amid = 0
        if not was_amid:
            self._begun_at_s = now_s
        if self._max_bytes is not None and self._decoder.buffered_bytes >= _LENGTH_BYTES + _KEY_BYTES:
            self._check_length(self._max_bytes)
        return bool(frames)

    def _check_length(self, max_bytes: Callable[[int], int]) -> None:
        length = self._decoder.needed_bytes - _LENGTH_BYTES
        beginning = self._decoder.beginning(_LENGTH_BYTES + _KEY_BYTES)
        api_key = int.from_bytes(beginning[_LENGTH_BYTES:], "big", signed=True)
        if length > (most := max_bytes(api_key)):
            raise DecodeError(f"{api_name(api_key)} announces {length} bytes; at most {most} are read of it")

    def pop(self) -> tuple[bytes, float]:
        frame, received_at_s = self.backlog.popleft()
        self.queued_bytes -= len(frame) + _FRAME_OVERHEAD_BYTES
        return frame, received_at_s

    def clear(self) -> None:
        """Forget the whole frames."""
        self.backlog.clear()
        self.queued_bytes = 0

    def end(self) -> None:
        """Forget all; nothing is fed after this."""
        self.clear()
        self._decoder = FrameDecoder(self._decoder.max_frame_bytes)

    def pause(self, now_s: float) -> None:
        self._paused_at_s = now_s

    def resume(self, now_s: float) -> None:
        self._begun_at_s += now_s - self._paused_at_s

    def is_overdue(self, now_s: float) -> bool:
        """Whether a frame was begun and ought to be complete; to be asked only while we read."""
        if not self._decoder.buffered_bytes:
            return False
        allowed_s = self._timeout_s + self._decoder.needed_bytes / _SLOWEST_BYTES_PER_S
        return now_s - self._begun_at_s > allowed_s
