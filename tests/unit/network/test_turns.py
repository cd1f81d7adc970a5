"""One turn for all connections of a loop: which are served in it, in which order, and which wait for the next one."""

from collections.abc import Callable

import pytest

from kquorum.network.turns import TURN_S, Turns, goes_first
from kquorum.wire.protocol.api_keys import ApiKey


class Table:
    """Turns with a clock, and an event loop whose next iteration comes when the test calls `iterate`."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.due: list[Callable[[], None]] = []
        self.turns = Turns(self.due.append, lambda: self.now_s)
        self.served: list[str] = []

    def iterate(self) -> list[str]:
        """The names of those that are served in this one."""
        due, self.due[:] = list(self.due), []
        assert len(due) <= 1, "one turn for each iteration"
        self.served.clear()
        for call in due:
            call()
        return list(self.served)


class Peer:
    """A connection whose requests take so long each, in parts of a turn."""

    def __init__(self, table: Table, name: str, *requests: float, is_first: bool = False) -> None:
        self.table = table
        self.name = name
        self.requests = list(requests)
        self.is_first = is_first

    def goes_first(self) -> bool:
        return self.is_first

    def take_turn(self, ends_s: float) -> bool:
        table = self.table
        while True:
            table.served.append(self.name)
            table.now_s += self.requests.pop(0) * TURN_S
            if not self.requests or table.now_s > ends_s:
                return bool(self.requests)


def test_a_connection_alone_is_served_at_once_and_to_the_end_of_the_turn() -> None:
    table = Table()
    peer = Peer(table, "a", *[0.125] * 12)
    assert table.turns.ask(peer), "it waits for the next turn"
    assert table.served == ["a"] * 9
    assert table.iterate() == ["a"] * 3
    assert (table.due, table.turns.waiting) == ([], 0)


def test_those_that_ask_in_one_iteration_share_its_turn() -> None:
    table = Table()
    for name in "abcdef":
        table.turns.ask(Peer(table, name, 0.75))
    assert table.served == ["a", "b"]
    assert [table.iterate() for _ in range(3)] == [["c", "d"], ["e", "f"], []]
    assert table.turns.waiting == 0


def test_what_was_not_used_is_left_for_those_that_come_later_in_the_iteration() -> None:
    table = Table()
    for name in "abcd":
        assert not table.turns.ask(Peer(table, name, 0.25))
    assert table.turns.ask(Peer(table, "e", 0.25))
    assert table.iterate() == ["e"]


def test_with_others_in_line_a_connection_is_served_a_part_of_the_turn_at_a_time() -> None:
    table = Table()
    busy = Peer(table, "busy", *[1.5] * 3)
    table.turns.ask(busy)
    for name in "ab":
        table.turns.ask(Peer(table, name, 0.15, 0.15, 0.15))
    assert table.iterate() == ["busy"]
    assert table.iterate() == ["a", "a", "b", "b", "busy"]
    assert table.iterate() == ["a", "b"]


def test_the_quorums_requests_go_before_others_that_have_waited_longer() -> None:
    table = Table()
    table.turns.ask(Peer(table, "using it up", 1.25))
    for name in "ab":
        table.turns.ask(Peer(table, name, 1.25))
    table.turns.ask(Peer(table, "fetch", 0.01, is_first=True))
    assert table.iterate() == ["fetch", "a"]
    assert table.iterate() == ["b"]


def test_those_that_go_first_leave_half_of_the_turn_to_the_others() -> None:
    table = Table()
    table.turns.ask(Peer(table, "using it up", 1.25))
    table.turns.ask(Peer(table, "usual", 0.25))
    for number in range(10):
        table.turns.ask(Peer(table, str(number), 0.2, is_first=True))
    assert table.iterate() == ["0", "1", "2", "usual", "3"]


def test_an_answer_that_lets_another_connection_go_on_does_not_serve_it_within_the_turn_of_the_first() -> (
    None
):
    table = Table()
    other = Peer(table, "other", 0.1)

    class Answering(Peer):
        def take_turn(self, ends_s: float) -> bool:
            assert table.turns.ask(other)
            return super().take_turn(ends_s)

    table.turns.ask(Answering(table, "answering", 0.1))
    assert table.served == ["answering", "other"]


def test_a_turn_that_failed_is_the_connections_and_the_others_go_on() -> None:
    table = Table()

    class Failing(Peer):
        def take_turn(self, ends_s: float) -> bool:
            raise RuntimeError(self.name)

    table.turns.ask(Peer(table, "using it up", 1.25))
    table.turns.ask(Failing(table, "failing"))
    table.turns.ask(Peer(table, "next", 0.1))
    with pytest.raises(RuntimeError, match="failing"):
        table.iterate()
    assert table.iterate() == ["next"]


@pytest.mark.parametrize("api_key", [ApiKey.FETCH, ApiKey.VOTE, ApiKey.BROKER_HEARTBEAT, ApiKey.API_VERSIONS])
def test_short_requests_that_keep_the_quorum_together_go_first(api_key: ApiKey) -> None:
    frame = api_key.to_bytes(2, "big") + bytes(100)
    assert goes_first(frame)
    assert not goes_first(frame + bytes(4_000)), "it takes long, whatever it asks"


@pytest.mark.parametrize("frame", [b"", b"\0", ApiKey.CREATE_TOPICS.to_bytes(2, "big") + bytes(100)])
def test_others_do_not(frame: bytes) -> None:
    assert not goes_first(frame)
