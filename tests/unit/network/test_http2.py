"""Frames of HTTP/2, wherever the network cuts them, and what no lawful client sends."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquorum.network.http2 import (
    HEADER_BYTES,
    PREFACE,
    STREAM_COST,
    ClientFrames,
    ErrorCode,
    Flag,
    FrameType,
    Http2Violation,
    ServerFrames,
    Streams,
    goaway,
)
from tests.support.network.http2_frames import CALL, MESSAGE, OPENING, SETTINGS, SETTINGS_ACK, call, frame

END = Flag.END_HEADERS | Flag.END_STREAM


class Purse:
    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.paid: list[int] = []

    def pay(self, cost: int) -> bool:
        if cost > self.tokens:
            return False
        self.tokens -= cost
        self.paid.append(cost)
        return True


class Reader:
    """Keeps what was not passed on, as a connection does."""

    def __init__(self, purse: Purse, max_open: int = 100) -> None:
        self.streams = Streams(max_open)
        self.frames = ClientFrames(self.streams)
        self.purse = purse
        self.left = b""
        self.passed = b""

    def feed(self, data: bytes) -> None:
        data = self.left + data
        passed = bytearray()
        end = self.frames.advance(data, 0, self.purse.pay, passed)
        self.passed += passed
        self.left = data[end:]


def violation(data: bytes, max_open: int = 100) -> Http2Violation:
    with pytest.raises(Http2Violation) as caught:
        Reader(Purse(10_000_000), max_open).feed(data)
    return caught.value


def split(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return (data[begin:end] for begin, end in pairwise(edges))


WHOLE = OPENING + SETTINGS_ACK + call(1) + frame(FrameType.PING, 0, 0, bytes(8)) + call(3)


@given(st.lists(st.integers(0, 10_000), max_size=30))
def test_it_does_not_matter_where_the_bytes_are_cut(cuts: list[int]) -> None:
    reader = Reader(Purse(1_000))
    for piece in split(WHOLE, cuts):
        reader.feed(piece)
    assert reader.passed == WHOLE
    assert reader.purse.paid == [1, 1, STREAM_COST, 1, 1, STREAM_COST, 1]
    assert reader.streams.open == {1, 3}
    assert (reader.streams.highest, reader.streams.has_settings) == (3, True)


@given(st.lists(st.integers(0, 10_000), max_size=10), st.integers(0, 40))
def test_what_is_not_paid_for_is_not_passed_on_and_goes_on_when_it_is(cuts: list[int], tokens: int) -> None:
    purse = Purse(tokens)
    reader = Reader(purse)
    for piece in split(WHOLE, cuts):
        reader.feed(piece)
    assert WHOLE.startswith(reader.passed)
    assert sum(purse.paid) <= tokens
    if reader.passed != WHOLE:
        assert reader.frames.is_unpaid
        assert len(reader.left) >= HEADER_BYTES
    for _ in range(40):
        purse.tokens += STREAM_COST
        reader.feed(b"")
    assert reader.passed == WHOLE


def test_byte_by_byte() -> None:
    reader = Reader(Purse(1_000))
    begun = []
    for byte in WHOLE:
        reader.feed(bytes((byte,)))
        begun.append(reader.frames.has_begun)
    assert reader.passed == WHOLE
    assert begun.index(True) == len(OPENING) - 1


@given(st.binary(min_size=1, max_size=40))
def test_what_is_not_the_preface_is_refused_with_its_first_wrong_byte(data: bytes) -> None:
    reader = Reader(Purse(1_000))
    if PREFACE.startswith(data[: len(PREFACE)]):
        return
    with pytest.raises(Http2Violation, match="does not speak HTTP/2"):
        reader.feed(data)


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (PREFACE + call(1), ErrorCode.PROTOCOL_ERROR, "first frame is not SETTINGS"),
        (PREFACE + SETTINGS_ACK, ErrorCode.PROTOCOL_ERROR, "first frame is not SETTINGS"),
        (OPENING + frame(FrameType.HEADERS, END, 2), ErrorCode.PROTOCOL_ERROR, "as only a server may"),
        (OPENING + frame(FrameType.PUSH_PROMISE, 4, 1), ErrorCode.PROTOCOL_ERROR, "as only a server may"),
        (OPENING + frame(FrameType.CONTINUATION, 4, 1), ErrorCode.PROTOCOL_ERROR, "not in the order"),
        (
            OPENING + frame(FrameType.HEADERS, 0, 1) + frame(FrameType.PING, 0, 0, bytes(8)),
            ErrorCode.PROTOCOL_ERROR,
            "not in the order",
        ),
        (
            OPENING + frame(FrameType.HEADERS, 0, 1) + frame(FrameType.CONTINUATION, 4, 3),
            ErrorCode.PROTOCOL_ERROR,
            "not in the order",
        ),
        (OPENING + b"\x00\x40\x01\x04\x00\x00\x00\x00\x00", ErrorCode.FRAME_SIZE_ERROR, "16385 bytes"),
        (OPENING + b"\x10\x00\x01\x00\x00\x00\x00\x00\x01", ErrorCode.FRAME_SIZE_ERROR, "1048577 bytes"),
        (OPENING + frame(FrameType.DATA, 0, 1), ErrorCode.PROTOCOL_ERROR, "had not opened"),
        (OPENING + call(1) + frame(FrameType.HEADERS, END, 1, CALL), ErrorCode.PROTOCOL_ERROR, "no trailers"),
        (OPENING + frame(FrameType.SETTINGS, 0, 0, bytes(33 * 6)), ErrorCode.FRAME_SIZE_ERROR, "198 bytes"),
        (OPENING + frame(FrameType.PING, 0, 0, bytes(9)), ErrorCode.FRAME_SIZE_ERROR, "9 bytes"),
        (OPENING + frame(FrameType.GOAWAY, 0, 0, bytes(1_025)), ErrorCode.FRAME_SIZE_ERROR, "1025 bytes"),
        (OPENING + frame(FrameType.HEADERS, END | 8, 1), ErrorCode.PROTOCOL_ERROR, "shorter than"),
        (
            OPENING + frame(FrameType.HEADERS, END | 8, 1, b"\x05abcd"),
            ErrorCode.PROTOCOL_ERROR,
            "shorter than",
        ),
        (OPENING + frame(FrameType.HEADERS, END | 32, 1, b"abcd"), ErrorCode.PROTOCOL_ERROR, "shorter than"),
        (OPENING + frame(FrameType.HEADERS, END, 1, b"\xff"), ErrorCode.COMPRESSION_ERROR, "not valid HPACK"),
    ],
)
def test_what_a_client_may_not_send(data: bytes, code: ErrorCode, words: str) -> None:
    found = violation(data)
    assert found.code is code
    assert words in str(found)


def test_data_may_be_longer_than_other_frames() -> None:
    reader = Reader(Purse(1_000))
    reader.feed(OPENING + call(1) + b"\x00\x40\x01\x00\x00\x00\x00\x00\x01")
    assert reader.left == b""


def test_a_flood_of_continuations_ends_at_its_bound() -> None:
    value = b"\x00\x01a\x7f" + b"\x81\x3f" + bytes(8_192)
    pieces = [frame(FrameType.CONTINUATION, 0, 1, value[begin : begin + 4_096]) for begin in (0, 4_096)]
    lawful = OPENING + frame(FrameType.HEADERS, 0, 1) + b"".join(pieces)
    Reader(Purse(1_000)).feed(
        lawful + frame(FrameType.CONTINUATION, Flag.END_HEADERS, 1, value[8_192:]) + call(3)
    )
    more = frame(FrameType.CONTINUATION, 0, 1, bytes(8_192))
    Reader(Purse(1_000)).feed(lawful + more)
    assert (
        violation(lawful + more + frame(FrameType.CONTINUATION, 0, 1, b"x")).code
        is ErrorCode.ENHANCE_YOUR_CALM
    )


def headers(block: bytes, stream: int = 1) -> bytes:
    return frame(FrameType.HEADERS, END, stream, block)


def literal(name: bytes, value: bytes) -> bytes:
    assert len(name) < 127
    assert len(value) < 127
    return bytes((0x40, len(name))) + name + bytes((len(value),)) + value


ACCEPT_ENCODING_GZIP = b"\x90"


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        # 15,000 bytes stand for 15,000 headers, a place in memory for each at gRPC.
        ([ACCEPT_ENCODING_GZIP * 15_000], "more than 16384 bytes"),
        ([ACCEPT_ENCODING_GZIP * 101], "101 headers"),
        ([b"\x00\x01a\x00" * 101], "101 headers"),
        # The client's own entry of the table, which a byte refers to from then on.
        ([literal(b"x", b"y" * 126), b"\xbe" * 150], "more than 16384 bytes"),
    ],
)
def test_headers_that_unfold_to_too_many_end_the_connection(blocks: list[bytes], words: str) -> None:
    reader = Reader(Purse(10_000))
    calls = [headers(block, 1 + 2 * number) for number, block in enumerate(blocks)]
    reader.feed(OPENING + b"".join(calls[:-1]))
    with pytest.raises(Http2Violation, match=words) as caught:
        reader.feed(calls[-1])
    assert caught.value.code is ErrorCode.ENHANCE_YOUR_CALM
    assert reader.passed == OPENING + b"".join(calls[:-1])


@pytest.mark.parametrize("block", [b"\x7f" + b"\xff" * 16_000, b"\x40\x7f" + b"\xff" * 16_000, b"\x40\xff"])
def test_what_is_said_of_bad_headers_does_not_quote_them(block: bytes) -> None:
    """hpack's own words hold all that is left of the block, and the log takes twenty such lines a second."""
    said = str(violation(OPENING + frame(FrameType.HEADERS, END, 1, block)))
    assert "not valid HPACK" in said
    assert len(said) < 100


@pytest.mark.parametrize("update", [b"\x20", b"\x3f\xe1\x1f", b"\x3f\x00"])
def test_the_size_of_the_table_changes_twice_in_a_block_at_most(update: bytes) -> None:
    reader = Reader(Purse(1_000))
    reader.feed(OPENING + headers(update * 2 + CALL) + headers(update + CALL, 3))
    with pytest.raises(Http2Violation, match="too often") as caught:
        reader.feed(headers(update * 3 + CALL, 5))
    assert caught.value.code is ErrorCode.COMPRESSION_ERROR


def test_a_hundred_headers_pass_as_they_came() -> None:
    reader = Reader(Purse(1_000))
    reader.feed(OPENING + headers(ACCEPT_ENCODING_GZIP * 100))
    assert reader.passed == OPENING + headers(ACCEPT_ENCODING_GZIP * 100)


def test_headers_pass_in_one_frame_without_padding_and_priority() -> None:
    reader = Reader(Purse(1_000))
    padded = bytes((3,)) + bytes(5) + CALL[:4] + bytes(3)
    reader.feed(OPENING + frame(FrameType.HEADERS, Flag.END_STREAM | Flag.PADDED | Flag.PRIORITY, 1, padded))
    assert reader.passed == OPENING
    reader.feed(frame(FrameType.CONTINUATION, 0, 1, CALL[4:5]) + frame(FrameType.CONTINUATION, 0, 1))
    reader.feed(frame(FrameType.CONTINUATION, Flag.END_HEADERS, 1, CALL[5:]))
    assert reader.passed == OPENING + headers(CALL)


def test_what_a_server_ignores_is_not_passed_on_and_costs_the_same() -> None:
    reader = Reader(Purse(1_000))
    ignored = frame(FrameType.PRIORITY, 0, 1, bytes(5)) + frame(77, 0, 0, bytes(100))
    reader.feed(OPENING + ignored + SETTINGS_ACK)
    assert reader.passed == OPENING + SETTINGS_ACK
    assert reader.purse.paid == [1, 1, 1, 1]


def test_each_setting_and_long_headers_cost_more() -> None:
    reader = Reader(Purse(1_000))
    reader.feed(
        OPENING
        + frame(FrameType.SETTINGS, 0, 0, bytes(20 * 6))
        + headers(b"\x00\x01a\x7f" + b"\x81\x07" + bytes(1_024))
    )
    assert reader.purse.paid == [1, 20, STREAM_COST + 4]


@given(st.binary(max_size=300))
def test_any_block_passes_or_ends_the_connection(block: bytes) -> None:
    reader = Reader(Purse(1_000))
    try:
        reader.feed(OPENING + headers(block))
    except Http2Violation:
        assert reader.passed == b""
    else:
        assert reader.passed == OPENING + headers(block)


def test_more_streams_than_announced_end_the_connection_once_the_client_knows_the_limit() -> None:
    calls = b"".join(call(1 + 2 * number) for number in range(3))
    assert violation(OPENING + SETTINGS_ACK + calls, 2).code is ErrorCode.ENHANCE_YOUR_CALM
    Reader(Purse(1_000), 3).feed(OPENING + SETTINGS_ACK + calls)
    # Before that it cannot know.
    Reader(Purse(1_000), 2).feed(OPENING + calls)
    many = violation(OPENING + b"".join(call(1 + 2 * number) for number in range(9)), 2)
    assert many.code is ErrorCode.ENHANCE_YOUR_CALM


def test_streams_that_either_side_has_ended_make_room() -> None:
    reader = Reader(Purse(1_000), 2)
    from_server = ServerFrames(reader.streams)
    reader.feed(OPENING + SETTINGS_ACK + call(1) + call(3))
    assert reader.streams.open == {1, 3}
    from_server.note(frame(FrameType.HEADERS, Flag.END_HEADERS, 1, CALL))
    from_server.note(frame(FrameType.DATA, 0, 1, MESSAGE))
    assert reader.streams.open == {1, 3}
    from_server.note(frame(FrameType.HEADERS, END, 1, CALL))
    assert reader.streams.open == {3}
    reader.feed(call(5) + frame(FrameType.RST_STREAM, 0, 3, bytes(4)))
    from_server.note(frame(FrameType.RST_STREAM, 0, 5, bytes(4)))
    assert reader.streams.open == set()


@given(st.lists(st.integers(0, 10_000), max_size=30))
def test_the_end_of_a_stream_is_seen_wherever_the_servers_bytes_are_cut(cuts: list[int]) -> None:
    said = SETTINGS + frame(FrameType.HEADERS, Flag.END_HEADERS, 1, CALL) + call(1)
    streams = Streams(10)
    streams.open.update((1, 3))
    frames = ServerFrames(streams)
    for piece in split(said, cuts):
        frames.note(piece)
    assert streams.open == {3}
    assert frames.is_between


def test_amid_a_frame_of_the_server_nothing_may_be_said() -> None:
    frames, said = ServerFrames(Streams(1)), frame(FrameType.HEADERS, END, 1, CALL)
    between = []
    for byte in said:
        frames.note(bytes((byte,)))
        between.append(frames.is_between)
    assert between == [False] * (len(said) - 1) + [True]


def test_a_goaway_says_why() -> None:
    assert goaway(5, ErrorCode.ENHANCE_YOUR_CALM) == frame(FrameType.GOAWAY, 0, 0, b"\0\0\0\5\0\0\0\x0b")
