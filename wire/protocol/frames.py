"""Frames: a big-endian int32, the number of bytes that follow, then the bytes (Kafka's protocol guide)."""

import struct

from kquorum.wire.errors import DecodeError

_SIZE = struct.Struct(">i")
_SIZE_BYTES = 4


class InvalidFrameLength(DecodeError):
    """The length is zero or negative: the peer speaks something else, and nothing after it can be trusted."""

    def __init__(self, length: int) -> None:
        self.length = length
        super().__init__(f"a frame announces {length} bytes; every frame has at least a header")


class FrameTooLarge(DecodeError):
    """The length is above the limit.

    Often text or TLS sent to a plain port, whose first bytes read as a huge number.
    """

    def __init__(self, length: int, max_frame_bytes: int) -> None:
        self.length = length
        self.max_frame_bytes = max_frame_bytes
        super().__init__(f"a frame announces {length} bytes; the limit is {max_frame_bytes}")


class FrameDecoder:
    """Cuts a byte stream into frames, however the transport chunked it.

    Holds at most one unfinished frame. `max_frame_bytes` may change as it goes, for the frames to come.
    """

    __slots__ = ("_buffer", "_needed_bytes", "max_frame_bytes")

    def __init__(self, max_frame_bytes: int) -> None:
        assert max_frame_bytes > 0
        self.max_frame_bytes = max_frame_bytes
        self._buffer = bytearray()
        self._needed_bytes = _SIZE_BYTES

    @property
    def buffered_bytes(self) -> int:
        """Bytes of a frame that is not complete yet; above 0 at the end of a stream, the peer was cut off."""
        return len(self._buffer)

    @property
    def needed_bytes(self) -> int:
        """How many bytes the unfinished frame will have with its length; until that is known, those of the length."""
        return self._needed_bytes

    def beginning(self, count: int) -> bytes:
        """The first bytes of the unfinished frame, its length among them."""
        return bytes(self._buffer[:count])

    def feed(self, data: bytes) -> list[bytes]:
        """Answers the frames that `data` completes, without their lengths.

        Raises InvalidFrameLength or FrameTooLarge as soon as a bad length is read, before its bytes arrive.
        The stream has no point to resume at after that: the decoder must not be fed again.
        """
        if not self._buffer:
            # By far the most usual chunk is one whole frame.
            if len(data) > _SIZE_BYTES and self._checked_length(data, 0) == len(data) - _SIZE_BYTES:
                return [data[_SIZE_BYTES:]]
            return self._cut(data)
        self._buffer += data
        # A frame of many chunks is not worth looking at before its last one.
        if len(self._buffer) < self._needed_bytes:
            return []
        joined, self._buffer = self._buffer, bytearray()
        return self._cut(joined)

    def _cut(self, data: bytes | bytearray) -> list[bytes]:
        frames: list[bytes] = []
        position, end = 0, len(data)
        self._needed_bytes = _SIZE_BYTES
        with memoryview(data) as view:
            while end - position >= _SIZE_BYTES:
                body_start = position + _SIZE_BYTES
                body_end = body_start + self._checked_length(data, position)
                if body_end > end:
                    self._needed_bytes = body_end - position
                    break
                frames.append(bytes(view[body_start:body_end]))
                position = body_end
            if position < end:
                self._buffer += view[position:]
        return frames

    def _checked_length(self, data: bytes | bytearray, position: int) -> int:
        length: int = _SIZE.unpack_from(data, position)[0]
        if length <= 0:
            raise InvalidFrameLength(length)
        if length > self.max_frame_bytes:
            raise FrameTooLarge(length, self.max_frame_bytes)
        return length


def encode_frame(*parts: bytes) -> bytes:
    """The length in front of the joined parts."""
    length = sum(map(len, parts))
    assert length > 0, "a frame has at least a header"
    return b"".join((_SIZE.pack(length), *parts))
