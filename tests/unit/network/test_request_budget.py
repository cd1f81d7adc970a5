"""The node's budget of memory: who goes on without room, who waits, and that no caller waits for good."""

from collections.abc import Callable

import pytest

from kquorum.network.limits import BudgetLimits
from kquorum.network.request_budget import AnswerInMaking, RequestBudget
from kquorum.wire.protocol.api_keys import ApiKey
from tests.support.network.budget_peers import Peer

LIMITS = BudgetLimits(max_bytes=100_000, max_requests=4, guaranteed_bytes=1000, guaranteed_requests=2)

FETCH = ApiKey.FETCH.to_bytes(2, "big") + bytes(20)


class Table:
    """A budget whose next turn of the loop comes when the test calls `turn`."""

    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []
        self.budget = RequestBudget(LIMITS, self.due.append)
        self.told: list[str] = []

    def peer(self, name: str) -> Peer:
        return Peer(self.budget, name, self.told)

    def turn(self) -> list[str]:
        """The peers that the budget called in this turn."""
        due, self.due[:] = list(self.due), []
        self.told.clear()
        for call in due:
            call()
        return list(self.told)


def test_with_room_everybody_reads() -> None:
    table = Table()
    one = table.peer("one")
    one.holds(99_999)
    assert table.budget.may_read(one)
    assert table.budget.waiting == 0


def test_without_room_those_with_little_go_on_and_the_others_wait_in_their_order() -> None:
    table = Table()
    large, second, small = table.peer("large"), table.peer("second"), table.peer("small")
    large.holds(98_000, 1)
    second.holds(2_000, 1)
    small.holds(1_000)
    assert table.budget.may_read(small)
    assert not table.budget.may_read(large)
    assert not table.budget.may_read(second)
    assert table.turn() == [], "neither is amid a frame: both get room by being answered"
    small.holds(0)
    assert table.turn() == []
    second.holds(0)
    assert table.turn() == ["large"]
    assert table.turn() == ["second"]
    assert table.budget.waiting == 0


def test_a_frame_larger_than_the_budget_gets_through_alone() -> None:
    table = Table()
    one = table.peer("one")
    one.holds(100_000, amid_frame=True)
    assert not table.budget.may_read(one)
    assert table.turn() == ["one"]
    one.holds(500_000, amid_frame=True)
    assert table.budget.may_read(one), "favoured until the frame is complete"
    one.holds(700_000, amid_frame=True)
    table.budget.frame_is_complete(one)
    assert not table.budget.may_read(one)


def test_half_read_frames_that_fill_the_budget_get_through_one_by_one() -> None:
    table = Table()
    peers = [table.peer(name) for name in "abc"]
    for peer in peers:
        peer.holds(40_000, amid_frame=True)
    assert [table.budget.may_read(peer) for peer in peers] == [False, False, False]
    assert table.turn() == ["a"]
    assert table.turn() == []
    peers[0].holds(60_000, 1)
    table.budget.frame_is_complete(peers[0])
    assert table.turn() == ["b"]
    peers[0].holds(0)
    assert table.turn() == ["c"], "80,000 bytes are held"


def test_the_next_is_favoured_when_the_favoured_one_is_gone() -> None:
    table = Table()
    one, two = table.peer("one"), table.peer("two")
    for peer in (one, two):
        peer.holds(90_000, amid_frame=True)
    assert not table.budget.may_read(one)
    assert not table.budget.may_read(two)
    assert table.turn() == ["one"]
    one.holds(150_000, amid_frame=True)
    table.budget.forget(one)
    assert table.budget.held_bytes == 90_000
    assert table.turn() == ["two"]


def test_beyond_twice_the_budget_those_with_little_wait_too() -> None:
    table = Table()
    large, small, idle = table.peer("large"), table.peer("small"), table.peer("idle")
    large.holds(199_500)
    small.holds(500, amid_frame=True)
    assert not table.budget.may_read(small)
    assert not table.budget.may_read(idle)
    assert table.turn() == [], "what is in hand will be answered"
    large.holds(150_000)
    assert table.turn() == ["small"]
    assert table.turn() == ["idle"]


def test_many_little_half_read_frames_do_not_wait_for_good() -> None:
    table = Table()
    peers = [table.peer(str(number)) for number in range(250)]
    for peer in peers:
        peer.holds(900, amid_frame=True)
    assert not any(table.budget.may_read(peer) for peer in peers)
    assert table.turn() == ["0"]
    peers[0].holds(0)
    table.budget.frame_is_complete(peers[0])
    assert table.turn() == ["1"]


def test_no_connection_is_favoured_while_answers_will_make_room() -> None:
    table = Table()
    busy, large = table.peer("busy"), table.peer("large")
    busy.holds(100_000, 1)
    large.holds(5_000, amid_frame=True)
    assert not table.budget.may_read(large)
    assert table.turn() == []
    busy.holds(0)
    assert table.turn() == ["large"]


def test_requests_beyond_the_guaranteed_wait_for_those_of_others() -> None:
    table = Table()
    busy, other = table.peer("busy"), table.peer("other")
    busy.holds(10, 3)
    other.holds(10, 1)
    assert other.may_serve()
    assert not busy.may_serve()
    other.holds(0, 0)
    assert table.turn() == ["busy"]


def test_beyond_twice_the_requests_those_with_few_wait_too() -> None:
    """With 16 guaranteed to each, a thousand connections once had 16,000 requests in flight."""
    table = Table()
    peers = [table.peer(str(number)) for number in range(12)]
    for peer in peers[:8]:
        assert peer.may_serve()
        peer.holds(10, 1)
    assert not any(peer.may_serve() for peer in peers[8:])
    assert table.budget.waiting == 4
    peers[0].holds(0)
    assert table.turn() == ["8"]
    peers[8].holds(10, 1)
    for peer in peers[1:3]:
        peer.holds(0)
    assert table.turn() == ["9", "10"]


def test_what_goes_first_neither_waits_for_the_requests_of_others_nor_keeps_them_waiting() -> None:
    table = Table()
    followers = [table.peer(str(number)) for number in range(50)]
    for follower in followers:
        assert follower.may_serve(FETCH)
        follower.holds(10, 1, first=1)
    busy, other = table.peer("busy"), table.peer("other")
    assert busy.may_serve()
    busy.holds(10, 8)
    assert not other.may_serve()
    assert other.may_serve(FETCH)


def test_beyond_twice_the_bytes_requests_are_served_one_after_the_other() -> None:
    """A request may hold many times its frame once it is read."""
    table = Table()
    one, two, three = (table.peer(name) for name in ("one", "two", "three"))
    for peer in (one, two, three):
        peer.holds(70_000)
    assert one.may_serve()
    one.holds(90_000, 1)
    assert not two.may_serve()
    assert not three.may_serve()
    assert two.may_serve(FETCH)
    one.holds(80_000)
    assert two.may_serve()
    two.holds(90_000, 1)
    assert not three.may_serve()


def test_room_that_is_given_back_is_not_given_to_all_at_once() -> None:
    table = Table()
    holder = table.peer("holder")
    holder.holds(100_000)
    waiting = [table.peer(str(number)) for number in range(5)]
    for peer in waiting:
        peer.holds(2000)
        assert not table.budget.may_read(peer)
    holder.holds(0)
    assert [table.turn() for _ in range(6)] == [["0"], ["1"], ["2"], ["3"], ["4"], []]


class Answer:
    def __init__(self, table: Table, name: str, address: str = "192.0.2.1") -> None:
        self.making = AnswerInMaking(table.budget, address)
        self._table, self._name = table, name

    def goes_on(self) -> bool:
        return self.making.may_go_on(lambda: self._table.told.append(self._name))


def test_beyond_the_budget_one_answer_at_a_time_is_made() -> None:
    table = Table()
    one, two, three = (Answer(table, name) for name in ("one", "two", "three"))
    for each in (one, two, three):
        assert each.goes_on()
        each.making.note_made(40_000)
    assert table.budget.held_bytes == 120_000
    assert [each.goes_on() for each in (one, two, three)] == [True, False, False]
    one.making.note_made(200_000)
    assert one.goes_on(), "what was begun without room is made to its end"
    assert table.turn() == []
    one.making.end()
    one.making.end()
    assert table.budget.held_bytes == 80_000
    assert table.turn() == ["two"]
    assert two.goes_on()
    assert table.turn() == ["three"]


def test_no_answer_is_made_while_peers_have_a_budget_to_read_and_small_requests_are_served() -> None:
    table = Table()
    slow, other, answer = table.peer("slow"), table.peer("other"), Answer(table, "answer")
    slow.holds(100_000, unsent_bytes=100_000)
    answer.making.note_made(1_000)
    assert not answer.goes_on()
    assert table.turn() == []
    assert table.budget.may_read(other)
    assert other.may_serve()
    slow.holds(150_000, 1, unsent_bytes=99_000)
    assert table.turn() == ["answer"], "a request without an answer does not keep it waiting"
    assert answer.goes_on()


def test_an_address_leaves_room_for_the_answers_of_others() -> None:
    """A peer that reads 64 KiB within 30 seconds is not closed. Many of its connections filled the budget with answers
    that they did not read, and others waited for theirs."""
    table = Table()
    slow = table.peer("slow")
    more, other = Answer(table, "more", slow.address), Answer(table, "other")
    slow.holds(49_000, unsent_bytes=49_000)
    assert more.goes_on()
    slow.holds(50_000, unsent_bytes=50_000)
    assert not more.goes_on()
    assert other.goes_on()
    assert table.turn() == []
    slow.holds(49_000, unsent_bytes=49_000)
    assert table.turn() == ["more"]


def test_the_more_addresses_do_not_read_the_less_each_of_them_may_have() -> None:
    table = Table()
    for number in range(3):
        peer = table.peer(str(number))
        peer.address = f"198.51.100.{number}"
        peer.holds(25_000, unsent_bytes=25_000)
    assert not Answer(table, "more", "198.51.100.1").goes_on()
    assert Answer(table, "other").goes_on()


def test_beyond_the_budget_the_answer_of_the_address_with_the_least_unread_is_made_next() -> None:
    table = Table()
    slow, frames = table.peer("slow"), table.peer("frames")
    answers = [Answer(table, f"of the slow {number}", slow.address) for number in range(3)]
    other = Answer(table, "other")
    frames.holds(100_000, amid_frame=True)
    slow.holds(40_000, unsent_bytes=40_000)
    assert [each.goes_on() for each in (*answers, other)] == [True, False, False, False]
    assert table.turn() == []
    answers[0].making.end()
    assert table.turn() == ["other"]
    assert other.goes_on()
    slow.holds(60_000, unsent_bytes=60_000)
    other.making.end()
    assert table.turn() == []
    slow.holds(45_000, unsent_bytes=45_000)
    assert table.turn() == ["of the slow 1"]


def test_an_address_whose_connections_are_gone_is_forgotten() -> None:
    table = Table()
    slow = table.peer("slow")
    slow.holds(60_000, unsent_bytes=60_000)
    answer = Answer(table, "answer", slow.address)
    assert not answer.goes_on()
    table.budget.forget(slow)
    assert table.turn() == ["answer"]
    assert not table.budget.unsent_by_address


def test_an_answer_whose_client_has_gone_gives_its_bytes_back() -> None:
    table = Table()
    slow, answer = table.peer("slow"), Answer(table, "answer")
    slow.holds(100_000, unsent_bytes=100_000)
    answer.making.note_made(1_000)
    assert not answer.goes_on()
    answer.making.go_on_anyway()
    assert table.told == ["answer"]
    answer.making.end()
    assert (table.budget.held_bytes, table.budget.waiting) == (100_000, 0)


def test_beyond_twice_the_bytes_of_output_no_request_is_served() -> None:
    table = Table()
    slow, other = table.peer("slow"), table.peer("other")
    slow.holds(200_000, unsent_bytes=200_000)
    assert not other.may_serve()
    assert other.may_serve(FETCH)
    slow.holds(0)
    assert table.turn() == ["other"]


def test_a_removed_peer_is_neither_counted_nor_called() -> None:
    table = Table()
    one, two = table.peer("one"), table.peer("two")
    one.holds(150_000)
    two.holds(50_000, 9)
    assert not table.budget.may_read(two)
    table.budget.forget(two)
    assert (table.budget.held_bytes, table.budget.held_requests, table.budget.waiting) == (150_000, 0, 0)
    one.holds(0)
    assert table.turn() == []


@pytest.mark.parametrize("name", ["max_bytes", "max_requests", "guaranteed_requests"])
def test_a_limit_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is 0; it must be at least 1"):
        BudgetLimits(**{name: 0})
