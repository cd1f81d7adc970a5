"""Frames: a big-endian int32, the number of bytes that follow, then the bytes (Kafka's protocol guide)."""

import struct

from kquorum.wire.errors import DecodeError

_SIZE = struct.Struct(">i")
_SIZE_BYTES = 4
# So many chunks that are shorter than this are joined.
_SHORT_BYTES, _MOST_SHORT_CHUNKS = 1_024, 64


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

    Holds at most one unfinished frame, in the chunks in which it came: its bytes are copied once, when it is complete.
    `max_frame_bytes` may change as it goes, for the frames to come.
    """

    __slots__ = ("_buffered_bytes", "_chunks", "_needed_bytes", "_short_chunks", "max_frame_bytes")

    def __init__(self, max_frame_bytes: int) -> None:
        assert max_frame_bytes > 0
        self.max_frame_bytes = max_frame_bytes
        # Of the unfinished frame, from its length on.
        self._chunks: list[bytes] = []
        self._buffered_bytes = 0
        # How many chunks at the end of the list have not been joined for being short.
        self._short_chunks = 0
        self._needed_bytes = _SIZE_BYTES

    @property
    def buffered_bytes(self) -> int:
        """Bytes of a frame that is not complete yet; above 0 at the end of a stream, the peer was cut off."""
        return self._buffered_bytes

    @property
    def needed_bytes(self) -> int:
        """How many bytes the unfinished frame will have with its length; until that is known, those of the length."""
        return self._needed_bytes

    def beginning(self, count: int) -> bytes:
        """The first bytes of the unfinished frame, its length among them."""
        if self._chunks and len(self._chunks[0]) < count:
            self._chunks, self._short_chunks = [b"".join(self._chunks)], 0
        return self._chunks[0][:count] if self._chunks else b""

    def feed(self, data: bytes) -> list[bytes]:
        """Answers the frames that `data` completes, without their lengths.

        Raises InvalidFrameLength or FrameTooLarge as soon as a bad length is read, before its bytes arrive.
        The stream has no point to resume at after that: the decoder must not be fed again.
        """
        if not self._chunks:
            # By far the most usual chunk is one whole frame.
            if len(data) > _SIZE_BYTES and self._checked_length(data, 0) == len(data) - _SIZE_BYTES:
                return [data[_SIZE_BYTES:]]
            return self._cut(data, 0, [])
        missing = self._needed_bytes - self._buffered_bytes
        if len(data) < missing:
            self._keep(data)
            return []
        chunks, self._chunks = self._chunks, []
        self._buffered_bytes = self._short_chunks = 0
        if self._needed_bytes == _SIZE_BYTES:
            # Not even the length was there.
            return self._cut(b"".join((*chunks, data)), 0, [])
        chunks[0] = chunks[0][_SIZE_BYTES:]
        with memoryview(data) as view:
            frames = [b"".join((*chunks, view[:missing]))]
        return self._cut(data, missing, frames)

    def _keep(self, data: bytes) -> None:
        """A chunk of the unfinished frame. A peer may send it byte by byte: objects of a few bytes each would take many
        times the memory that is counted."""
        chunks = self._chunks
        chunks.append(data)
        self._buffered_bytes += len(data)
        if len(data) >= _SHORT_BYTES:
            self._short_chunks = 0
            return
        self._short_chunks += 1
        if self._short_chunks == _MOST_SHORT_CHUNKS:
            joined = b"".join(chunks[-_MOST_SHORT_CHUNKS:])
            del chunks[-_MOST_SHORT_CHUNKS:]
            chunks.append(joined)
            self._short_chunks = 0

    def _cut(self, data: bytes, position: int, frames: list[bytes]) -> list[bytes]:
        """`frames`, and those that begin at `position` or behind it."""
        end = len(data)
        self._needed_bytes = _SIZE_BYTES
        while end - position >= _SIZE_BYTES:
            body_start = position + _SIZE_BYTES
            body_end = body_start + self._checked_length(data, position)
            if body_end > end:
                self._needed_bytes = body_end - position
                break
            frames.append(data[body_start:body_end])
            position = body_end
        if position < end:
            self._chunks = [data[position:]]
            self._buffered_bytes = end - position
        return frames

    def _checked_length(self, data: bytes, position: int) -> int:
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
