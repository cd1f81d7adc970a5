"""The frames of an HTTP/2 connection (RFC 9113), as a proxy in front of a gRPC server has to know them.

What a client sends is passed on frame by frame, each when it is paid for: a frame without data costs the server behind
far more than its nine bytes. The caller decides. Headers are decoded (HPACK, RFC 7541) to see how much they unfold to,
and are passed on as they came. What no gRPC client sends ends the connection.
"""

from collections.abc import Callable
from enum import IntEnum, IntFlag
from typing import Final

import hpack

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADER_BYTES: Final = 9
# Of one block: HEADERS with its CONTINUATION frames, which is passed on in one frame.
MAX_HEADER_BLOCK_BYTES: Final = 16_384
# Of one block when it is decoded, as SETTINGS_MAX_HEADER_LIST_SIZE counts: each header has 32 bytes beside its own.
# gRPC has the same bound, and checks it after it has stored all headers.
MAX_HEADER_LIST_BYTES: Final = 16_384
MAX_HEADERS: Final = 100
# The first three bits of a byte that changes the size of the table of headers.
_SIZE_UPDATE: Final = 0x20
MAX_SIZE_UPDATES: Final = 2
# A client may open streams before it has the server's SETTINGS, then without knowing the limit.
_TIMES_BEFORE_SETTINGS: Final = 4

# What a frame is charged with. A stream is a call, and other frames cost microseconds in gRPC's threads. Long frames
# cost more, except DATA: headers take up to nine milliseconds to decode, and a setting costs gRPC as much as a
# frame.
STREAM_COST: Final = 10
_FRAME_COST: Final = 1
_BYTES_A_TOKEN: Final = 256
_SETTING_BYTES: Final = 6


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
    PADDED = 0x8
    PRIORITY = 0x20


class ErrorCode(IntEnum):
    PROTOCOL_ERROR = 0x1
    FRAME_SIZE_ERROR = 0x6
    COMPRESSION_ERROR = 0x9
    ENHANCE_YOUR_CALM = 0xB


# gRPC announces up to 16 MiB of data where a line is fast, and no message of a client is as long as this. HTTP/2 itself
# fixes the lengths of most others; a GOAWAY may hold some text, and clients have a dozen settings at most.
_MOST_BYTES: Final[dict[int, int]] = {
    FrameType.DATA: 1_048_576,
    FrameType.PRIORITY: 5,
    FrameType.RST_STREAM: 4,
    FrameType.SETTINGS: 32 * _SETTING_BYTES,
    FrameType.PING: 8,
    FrameType.GOAWAY: 1_024,
    FrameType.WINDOW_UPDATE: 4,
}
_PASSED_ON: Final = frozenset(
    (FrameType.RST_STREAM, FrameType.SETTINGS, FrameType.PING, FrameType.GOAWAY, FrameType.WINDOW_UPDATE)
)


class Http2Violation(Exception):
    """The client's bytes are no HTTP/2, or more than a client may ask for; the text is about it."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        self.code = code
        super().__init__(reason)


def frame_header(length: int, kind: int, flags: int, stream: int) -> bytes:
    return length.to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big")


def goaway(last_stream_id: int, code: ErrorCode) -> bytes:
    payload = last_stream_id.to_bytes(4, "big") + code.to_bytes(4, "big")
    return frame_header(len(payload), FrameType.GOAWAY, 0, 0) + payload


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
    """What a client sends. `has_begun` once its preface and its SETTINGS have passed.

    Everything but DATA is passed on frame by frame, once the frame is whole and was checked: a header block in one
    HEADERS frame without padding, and no PRIORITY or frame of an unknown type at all, which a server ignores anyhow.
    """

    __slots__ = (
        "_block",
        "_block_flags",
        "_block_stream",
        "_decoder",
        "_payload_left",
        "_preface_left",
        "_streams",
        "has_begun",
        "is_unpaid",
    )

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._preface_left = len(PREFACE)
        # Of a DATA frame that has begun to pass.
        self._payload_left = 0
        # The stream whose header block is not complete yet, or 0; what of the block has come; the flags of its HEADERS.
        self._block_stream = 0
        self._block = b""
        self._block_flags = 0
        # It keeps the client's table of earlier headers, so each block has to pass through it.
        self._decoder = hpack.Decoder(MAX_HEADER_LIST_BYTES)
        self.has_begun = False
        # The last `advance` ended before a frame that was not paid for.
        self.is_unpaid = False

    def advance(self, data: bytes, position: int, pay: Callable[[int], bool], passed: bytearray) -> int:
        """Add to `passed` what may be passed on of `data`, from `position` on; returns how far that reaches. What is
        behind is to be given again: an incomplete frame, or frames after one that `pay` refused. Raises
        Http2Violation."""
        end = len(data)
        self.is_unpaid = False
        if self._preface_left:
            begin, position = position, self._pass_preface(data, position)
            passed += data[begin:position]
        while position < end:
            if self._payload_left:
                taken = min(self._payload_left, end - position)
                passed += data[position : position + taken]
                self._payload_left -= taken
                position += taken
                continue
            taken = self._pass_frame(data, position, pay, passed)
            if not taken:
                break
            position += taken
        return position

    def _pass_preface(self, data: bytes, position: int) -> int:
        begin = len(PREFACE) - self._preface_left
        found = data[position : position + self._preface_left]
        if PREFACE[begin : begin + len(found)] != found:
            raise Http2Violation(ErrorCode.PROTOCOL_ERROR, "it does not speak HTTP/2")
        self._preface_left -= len(found)
        return position + len(found)

    def _pass_frame(self, data: bytes, position: int, pay: Callable[[int], bool], passed: bytearray) -> int:
        """How many bytes of `data` were dealt with: none where the frame is not whole, or not paid for."""
        body = position + HEADER_BYTES
        if len(data) < body:
            return 0
        length = int.from_bytes(data[position : position + 3], "big")
        kind, flags = data[position + 3], data[position + 4]
        stream = int.from_bytes(data[position + 5 : body], "big") & 0x7FFF_FFFF
        self._check(kind, flags, stream, length)
        if kind == FrameType.DATA:
            if self._is_paid(pay, _FRAME_COST):
                passed += data[position:body]
                self._payload_left = length
                return HEADER_BYTES
            return 0
        if len(data) < body + length or not self._is_paid(pay, _cost(kind, length)):
            return 0
        payload = data[body : body + length]
        if kind in (FrameType.HEADERS, FrameType.CONTINUATION):
            self._add_to_block(kind, flags, stream, payload, passed)
        elif kind in _PASSED_ON:
            if kind == FrameType.RST_STREAM:
                self._streams.open.discard(stream)
            elif kind == FrameType.SETTINGS:
                self.has_begun = True
                self._streams.has_settings |= bool(flags & Flag.ACK)
            passed += data[position : body + length]
        return HEADER_BYTES + length

    def _is_paid(self, pay: Callable[[int], bool], cost: int) -> bool:
        self.is_unpaid = not pay(cost)
        return not self.is_unpaid

    def _check(self, kind: int, flags: int, stream: int, length: int) -> None:
        """What a frame's header alone tells."""
        if length > _MOST_BYTES.get(kind, MAX_HEADER_BLOCK_BYTES):
            raise Http2Violation(ErrorCode.FRAME_SIZE_ERROR, f"it sent a frame of {length} bytes")
        if not self.has_begun and (kind != FrameType.SETTINGS or flags & Flag.ACK):
            raise Http2Violation(ErrorCode.PROTOCOL_ERROR, "its first frame is not SETTINGS")
        if (kind == FrameType.CONTINUATION) is not bool(self._block_stream) or (
            self._block_stream and stream != self._block_stream
        ):
            raise Http2Violation(ErrorCode.PROTOCOL_ERROR, "its frames are not in the order that HTTP/2 has")
        if kind == FrameType.CONTINUATION and len(self._block) + length > MAX_HEADER_BLOCK_BYTES:
            reason = f"it sent more than {MAX_HEADER_BLOCK_BYTES} bytes of headers for one stream"
            raise Http2Violation(ErrorCode.ENHANCE_YOUR_CALM, reason)
        if kind == FrameType.PUSH_PROMISE or (kind == FrameType.HEADERS and stream % 2 == 0):
            raise Http2Violation(ErrorCode.PROTOCOL_ERROR, "it opened a stream as only a server may")
        if kind == FrameType.DATA and not 0 < stream <= self._streams.highest:
            raise Http2Violation(ErrorCode.PROTOCOL_ERROR, "it sent data for a stream that it had not opened")
        if kind == FrameType.HEADERS:
            if stream <= self._streams.highest:
                reason = (
                    "it sent headers for a stream that was opened before; gRPC's clients have no trailers"
                )
                raise Http2Violation(ErrorCode.PROTOCOL_ERROR, reason)
            self._streams.check_room()

    def _add_to_block(self, kind: int, flags: int, stream: int, payload: bytes, passed: bytearray) -> None:
        if kind == FrameType.HEADERS:
            self._streams.highest = self._block_stream = stream
            self._streams.open.add(stream)
            self._block, self._block_flags = _without_padding(payload, flags), flags
        else:
            self._block += payload
        if flags & Flag.END_HEADERS:
            block, self._block, self._block_stream = self._block, b"", 0
            self._check_block(block)
            flags = Flag.END_HEADERS | self._block_flags & Flag.END_STREAM
            passed += frame_header(len(block), FrameType.HEADERS, flags, stream) + block

    def _check_block(self, block: bytes) -> None:
        """A byte can stand for a header of 4 KiB, and gRPC keeps each header in a place of its own."""
        if _begins_with_many_updates(block):
            raise Http2Violation(ErrorCode.COMPRESSION_ERROR, "its headers change the table's size too often")
        try:
            count = sum(1 for _ in self._decoder.decode(block, raw=True))
        except hpack.OversizedHeaderListError:
            reason = f"it sent headers of more than {MAX_HEADER_LIST_BYTES} bytes for one stream"
            raise Http2Violation(ErrorCode.ENHANCE_YOUR_CALM, reason) from None
        except hpack.HPACKError:
            # hpack's own text may quote the rest of the block: 64 KB in a line of the log.
            reason = "its headers are not valid HPACK (RFC 7541)"
            raise Http2Violation(ErrorCode.COMPRESSION_ERROR, reason) from None
        if count > MAX_HEADERS:
            reason = f"it sent {count} headers for one stream, and {MAX_HEADERS} are the most"
            raise Http2Violation(ErrorCode.ENHANCE_YOUR_CALM, reason)


def _begins_with_many_updates(block: bytes) -> bool:
    """Of the size of the table of headers: two at most (RFC 7541, 4.2). 16 KiB of them take 12 ms to decode."""
    position = 0
    for _ in range(MAX_SIZE_UPDATES + 1):
        if position >= len(block) or block[position] & 0xE0 != _SIZE_UPDATE:
            return False
        is_long = block[position] & 0x1F == 0x1F
        position += 1
        if is_long:
            while position < len(block) and block[position] & 0x80:
                position += 1
            position += 1
    return True


def _cost(kind: int, length: int) -> int:
    if kind == FrameType.HEADERS:
        return STREAM_COST + length // _BYTES_A_TOKEN
    if kind == FrameType.SETTINGS:
        return max(_FRAME_COST, length // _SETTING_BYTES)
    return _FRAME_COST + length // _BYTES_A_TOKEN


def _without_padding(payload: bytes, flags: int) -> bytes:
    """Of HEADERS; without the priority, too."""
    begin, end = 0, len(payload)
    if flags & Flag.PADDED:
        begin, end = 1, end - (payload[0] if payload else 1)
    if flags & Flag.PRIORITY:
        begin += 5
    if begin > end:
        raise Http2Violation(ErrorCode.PROTOCOL_ERROR, "its headers are shorter than their padding")
    return payload[begin:end]


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
