"""Long output goes to the transport in pieces (network/output.py): with TLS it keeps room for the longest of them."""

import asyncio

import pytest

from kquorum.network.output import Output

ROOM = 65_536


class Transport(asyncio.Transport):
    """Says that it is full from `ROOM` bytes on, while it is written to, as uvloop's and asyncio's do."""

    def __init__(self) -> None:
        super().__init__()
        self.buffer = bytearray()
        self.sent = b""
        self.longest = 0
        self.events: list[str] = []
        self.output = Output(self, 1 << 20)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """It is the test's."""

    def get_write_buffer_size(self) -> int:
        return len(self.buffer)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.buffer += data
        self.longest = max(self.longest, len(data))
        if len(self.buffer) >= ROOM:
            self.output.set_full(True)

    def is_closing(self) -> bool:
        return bool(self.events)

    def close(self) -> None:
        self.events.append("closed")

    def abort(self) -> None:
        self.buffer.clear()
        self.events.append("aborted")

    def peer_takes_all(self) -> None:
        self.sent += bytes(self.buffer)
        self.buffer.clear()
        self.output.set_full(False)


@pytest.fixture
def transport() -> Transport:
    return Transport()


def test_a_long_answer_goes_to_the_transport_as_the_peer_takes_it(transport: Transport) -> None:
    answer, next_one = bytes(range(256)) * 4_000, b"next"
    assert transport.output.write([answer]) == len(answer)
    assert transport.output.write([next_one]) == 4
    most = 0
    while transport.output.is_full:
        most = max(most, len(transport.buffer))
        assert transport.output.look() == len(answer) + 4 - len(transport.sent)
        transport.peer_takes_all()
    transport.peer_takes_all()
    assert transport.sent == answer + next_one
    assert most <= ROOM
    assert transport.longest <= ROOM
    assert transport.output.look() == 0


def test_short_output_goes_at_once_and_in_one_call(transport: Transport) -> None:
    assert transport.output.write([b"one", b"two"]) == 6
    assert (bytes(transport.buffer), transport.output.is_full) == (b"onetwo", False)


def test_a_transport_closes_when_all_has_gone_out(transport: Transport) -> None:
    transport.output.write([bytes(3 * ROOM)])
    transport.output.close()
    transport.peer_takes_all()
    assert transport.events == []
    transport.peer_takes_all()
    assert transport.events == ["closed"]
    assert len(transport.sent) + len(transport.buffer) == 3 * ROOM
    transport.output.close()
    assert transport.events == ["closed"]


def test_what_has_not_gone_out_is_lost_when_the_connection_is_aborted(transport: Transport) -> None:
    transport.output.write([bytes(3 * ROOM)])
    transport.output.close()
    transport.output.abort()
    transport.peer_takes_all()
    assert (transport.events, transport.sent, transport.output.look()) == (["aborted"], b"", 0)


def test_a_peer_that_takes_most_of_an_answer_does_not_keep_the_whole_of_it(transport: Transport) -> None:
    """What counts is what waits, so it must be about what is held."""
    transport.output.write([bytes(64 * ROOM)])
    for _ in range(60):
        transport.peer_takes_all()
    (rest,) = transport.output._queue
    assert len(bytes(rest.obj)) <= 2 * len(rest) + ROOM


@pytest.mark.parametrize(("taken", "is_slow"), [(ROOM, True), (600_000, False)], ids=["a little", "much"])
def test_a_peer_is_too_slow_for_a_crowd_after_two_seconds(
    transport: Transport, taken: int, is_slow: bool
) -> None:
    output = transport.output
    assert not output.is_too_slow_for_a_crowd(0.0)
    output.write([bytes(2_000_000)])
    assert not output.is_too_slow_for_a_crowd(1.0)
    for _ in range(taken // ROOM):
        transport.peer_takes_all()
    assert not output.is_too_slow_for_a_crowd(3.0)
    assert output.is_too_slow_for_a_crowd(3.1) == is_slow
    assert not output.is_stuck(3.1, 30.0)


def test_a_peer_that_takes_all_that_waited_is_fast_however_little_that_is(transport: Transport) -> None:
    output = transport.output
    for second in range(1, 6):
        output.write([bytes(1_000)])
        assert not output.is_too_slow_for_a_crowd(float(second))
        transport.peer_takes_all()
