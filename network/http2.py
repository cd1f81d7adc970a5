"""Where the frames of an HTTP/2 connection begin and end, and what they are (RFC 9113); their payloads are not read.

What a client sends is passed on frame by frame, each when it is paid for: a frame without data costs the server behind
far more than its nine bytes. Who decides is the caller. What no lawful client sends ends the connection.
"""

from collections.abc import Callable
from enum import IntEnum, IntFlag
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADER_BYTES: Final = 9
# Of one block: HEADERS with its CONTINUATION frames. gRPC itself takes 16 KiB of decoded headers.
MAX_HEADER_BLOCK_BYTES: Final = 16_384
# gRPC announces up to 16 MiB where a line is fast, and no message of a client is as long as this.
_MAX_DATA_BYTES: Final = 1_048_576
_MAX_OTHER_BYTES: Final = 16_384
# A client may open streams before it has the server's SETTINGS, then without knowing the limit.
_TIMES_BEFORE_SETTINGS: Final = 4

# What a frame is charged with. A stream is a call, and other frames cost microseconds in gRPC's threads.
STREAM_COST: Final = 10
_FRAME_COST: Final = 1


class FrameType(IntEnum):
    DATA = 0
    HEADERS = 1
    PRIORITY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


class Flag(IntFlag):
    """`ACK` of SETTINGS and PING has the bit that elsewhere is END_STREAM."""

    ACK = 0x1
    END_STREAM = 0x1
    END_HEADERS = 0x4


class ErrorCode(IntEnum):
    PROTOCOL_ERROR = 0x1
    FRAME_SIZE_ERROR = 0x6
    ENHANCE_YOUR_CALM = 0xB


class Http2Violation(Exception):
    """The client's bytes are no HTTP/2, or more than a client may ask for; the text is about it."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        self.code = code
        super().__init__(reason)


def goaway(last_stream_id: int, code: ErrorCode) -> bytes:
    payload = last_stream_id.to_bytes(4, "big") + code.to_bytes(4, "big")
    return len(payload).to_bytes(3, "big") + bytes((FrameType.GOAWAY, 0)) + bytes(4) + payload


class Streams:
    """Those that the client has opened and neither side has ended. `is_crowded`: whether there are too many in all, and
    this client has more than its part."""

    __slots__ = ("_is_crowded", "has_settings", "highest", "max_open", "open")

    def __init__(self, max_open: int, is_crowded: Callable[[], bool] = lambda: False) -> None:
        self.max_open = max_open
        self._is_crowded = is_crowded
        self.open: set[int] = set()
        self.highest = 0
        # The client has acknowledged the server's settings, and so its limit.
        self.has_settings = False

    def check_room(self) -> None:
        """Raises Http2Violation."""
        most = self.max_open if self.has_settings else self.max_open * _TIMES_BEFORE_SETTINGS
        if len(self.open) >= most:
            reason = f"it opened more than the {self.max_open} streams at a time that it may"
            raise Http2Violation(ErrorCode.ENHANCE_YOUR_CALM, reason)
        if self._is_crowded():
            reason = (
                "all clients together have as many calls open as they may, and this one more than its part"
            )
            raise Http2Violation(ErrorCode.ENHANCE_YOUR_CALM, reason)


class ClientFrames:
    """What a client sends. `has_begun` once its preface and the beginning of its SETTINGS have passed."""

    __slots__ = (
        "_block_bytes",
        "_block_stream",
        "_payload_left",
        "_preface_left",
        "_streams",
        "has_begun",
        "is_unpaid",
    )

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._preface_left = len(PREFACE)
        self._payload_left = 0
        # The stream whose header block is not complete yet, or 0.
        self._block_stream = 0
        self._block_bytes = 0
        self.has_begun = False
        # The last `advance` ended before a frame that was not paid for.
        self.is_unpaid = False

    def advance(self, data: bytes, position: int, pay: Callable[[int], bool]) -> int:
        """How far `data` may be passed on, from `position` on. What is behind that is to be given again: the beginning
        of a frame's header, or frames after one that `pay` refused. Raises Http2Violation."""
        end = len(data)
        self.is_unpaid = False
        if self._preface_left:
            position = self._pass_preface(data, position)
        while position < end:
            if self._payload_left:
                passed = min(self._payload_left, end - position)
                self._payload_left -= passed
                position += passed
            elif end - position < HEADER_BYTES:
                break
            elif self._pass_header(data, position, pay):
                position += HEADER_BYTES
            else:
                self.is_unpaid = True
                break
        return position

    def _pass_preface(self, data: bytes, position: int) -> int:
        begin = len(PREFACE) - self._preface_left
        found = data[position : position + self._preface_left]
        if PREFACE[begin : begin + len(found)] != found:
            raise Http2Violation(ErrorCode.PROTOCOL_ERROR, "it does not speak HTTP/2")
        self._preface_left -= len(found)
        return position + len(found)

    def _pass_header(self, data: bytes, position: int, pay: Callable[[int], bool]) -> bool:
        length = int.from_bytes(data[position : position + 3], "big")
        kind, flags = data[position + 3], data[position + 4]
        stream = int.from_bytes(data[position + 5 : position + HEADER_BYTES], "big") & 0x7FFF_FFFF
        self._check(kind, flags, stream, length)
        if not pay(STREAM_COST if kind == FrameType.HEADERS else _FRAME_COST):
            return False
        self._note(kind, flags, stream, length)
        self._payload_left = length
        return True

    def _check(self, kind: int, flags: int, stream: int, length: int) -> None:
        if length > (_MAX_DATA_BYTES if kind == FrameType.DATA else _MAX_OTHER_BYTES):
            raise Http2Violation(ErrorCode.FRAME_SIZE_ERROR, f"it sent a frame of {length} bytes")
        if not self.has_begun and (kind != FrameType.SETTINGS or flags & Flag.ACK):
            raise Http2Violation(ErrorCode.PROTOCOL_ERROR, "its first frame is not SETTINGS")
        if (kind == FrameType.CONTINUATION) is not bool(self._block_stream) or (
            self._block_stream and stream != self._block_stream
        ):
            raise Http2Violation(ErrorCode.PROTOCOL_ERROR, "its frames are not in the order that HTTP/2 has")
        if kind == FrameType.CONTINUATION and self._block_bytes + length > MAX_HEADER_BLOCK_BYTES:
            reason = f"it sent more than {MAX_HEADER_BLOCK_BYTES} bytes of headers for one stream"
            raise Http2Violation(ErrorCode.ENHANCE_YOUR_CALM, reason)
        if kind == FrameType.PUSH_PROMISE or (kind == FrameType.HEADERS and stream % 2 == 0):
            raise Http2Violation(ErrorCode.PROTOCOL_ERROR, "it opened a stream as only a server may")
        if kind == FrameType.HEADERS and stream > self._streams.highest:
            self._streams.check_room()

    def _note(self, kind: int, flags: int, stream: int, length: int) -> None:
        self.has_begun = True
        if kind in (FrameType.HEADERS, FrameType.CONTINUATION):
            self._block_bytes = length + (self._block_bytes if kind == FrameType.CONTINUATION else 0)
            self._block_stream = 0 if flags & Flag.END_HEADERS else stream
        streams = self._streams
        if kind == FrameType.HEADERS and stream > streams.highest:
            streams.highest = stream
            streams.open.add(stream)
        elif kind == FrameType.RST_STREAM:
            streams.open.discard(stream)
        elif kind == FrameType.SETTINGS and flags & Flag.ACK:
            streams.has_settings = True


class ServerFrames:
    """Follows what the server sends (all of it is passed on), to see which streams end. `is_between` two frames."""

    __slots__ = ("_header", "_payload_left", "_streams")

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._header = b""
        self._payload_left = 0

    @property
    def is_between(self) -> bool:
        return not self._header and not self._payload_left

    def note(self, data: bytes) -> None:
        position, end = 0, len(data)
        while position < end:
            if self._payload_left:
                passed = min(self._payload_left, end - position)
                self._payload_left -= passed
                position += passed
                continue
            missing = HEADER_BYTES - len(self._header)
            self._header += data[position : position + missing]
            position += missing
            if len(self._header) == HEADER_BYTES:
                self._note_header(self._header)
                self._header = b""

    def _note_header(self, header: bytes) -> None:
        self._payload_left = int.from_bytes(header[:3], "big")
        kind, flags = header[3], header[4]
        is_end = kind in (FrameType.DATA, FrameType.HEADERS) and flags & Flag.END_STREAM
        if is_end or kind == FrameType.RST_STREAM:
            self._streams.open.discard(int.from_bytes(header[5:], "big") & 0x7FFF_FFFF)
