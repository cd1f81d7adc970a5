"""Frames come out as they went in, however the stream was cut; a bad length is refused before its bytes arrive."""

import struct
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquorum.wire.errors import DecodeError
from kquorum.wire.protocol.frames import FrameDecoder, FrameTooLarge, InvalidFrameLength, encode_frame

LIMIT = 1000
FRAMES = st.lists(st.binary(min_size=1, max_size=60), max_size=8)


@given(frames=FRAMES, cuts=st.lists(st.integers(0, 600), max_size=12))
def test_any_cutting_of_the_stream_gives_the_same_frames(frames: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(encode_frame(frame) for frame in frames)
    bounds = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    decoder = FrameDecoder(LIMIT)
    decoded = [frame for start, end in pairwise(bounds) for frame in decoder.feed(stream[start:end])]
    assert decoded == frames
    assert decoder.buffered_bytes == 0


@given(frame=st.binary(min_size=1, max_size=60), data=st.data())
def test_a_truncated_frame_is_kept_and_not_given(frame: bytes, data: st.DataObject) -> None:
    stream = encode_frame(frame)
    cut = data.draw(st.integers(0, len(stream) - 1))
    decoder = FrameDecoder(LIMIT)
    assert decoder.feed(stream[:cut]) == []
    assert decoder.buffered_bytes == cut
    assert decoder.feed(stream[cut:]) == [frame]


def test_a_frame_that_comes_byte_by_byte_takes_no_more_memory_than_its_bytes() -> None:
    frame = bytes(range(256)) * 400
    stream = encode_frame(frame)
    decoder = FrameDecoder(len(frame))
    decoder.feed(stream[:6])
    tracemalloc.start()
    try:
        for position in range(6, len(stream) - 2, 2):
            assert decoder.feed(stream[position : position + 2]) == []
        taken_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert decoder.beginning(6) == stream[:6]
    assert decoder.feed(stream[-2:]) == [frame]
    assert taken_bytes < 2 * len(frame)


def test_a_frame_of_exactly_the_limit_passes_and_one_byte_more_does_not() -> None:
    assert FrameDecoder(LIMIT).feed(encode_frame(b"x" * LIMIT)) == [b"x" * LIMIT]
    with pytest.raises(FrameTooLarge, match="announces 1001 bytes; the limit is 1000"):
        FrameDecoder(LIMIT).feed(struct.pack(">i", LIMIT + 1))


@pytest.mark.parametrize("length", [0, -1, -(2**31)])
def test_a_length_that_is_not_positive_is_refused(length: int) -> None:
    with pytest.raises(InvalidFrameLength, match=f"announces {length} bytes") as refusal:
        FrameDecoder(LIMIT).feed(encode_frame(b"good") + struct.pack(">i", length))
    assert isinstance(refusal.value, DecodeError)


def test_a_bad_length_is_refused_when_its_last_byte_arrives() -> None:
    decoder = FrameDecoder(LIMIT)
    assert decoder.feed(b"\xff\xff\xff") == []
    with pytest.raises(InvalidFrameLength):
        decoder.feed(b"\xff")


def test_parts_are_joined_behind_one_length() -> None:
    assert encode_frame(b"ab", b"", b"c") == b"\x00\x00\x00\x03abc"
