"""What faults make of a link together, and when the pieces that it carries leave it."""

import socket
from random import Random

import pytest

from tests.jepsen.net.conditions import SOUND, Condition, Ledger, Shaper, Tally, held_s
from tests.jepsen.net.network import named
from tests.jepsen.net.relay import Line, Lines

CUT = Condition(is_cut=True)
NEAR, FAR, OTHER = "10.0.0.1", "10.0.0.2", "10.0.0.3"


def packet(source: str, target: str, size: int = 100) -> bytes:
    """Of IPv4, with nothing but its addresses filled in."""
    head = b"\x45" + bytes(11) + socket.inet_aton(source) + socket.inet_aton(target)
    return head + bytes(size - len(head))


def shaper() -> Shaper:
    return Shaper(Random(1))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"delay_ms": -1.0}, "cannot be off"),
        ({"delay_ms": 10.0, "jitter_ms": 11.0}, "a delay of 10.0 ms cannot be off by 11.0 ms"),
        ({"rate_bytes_per_s": 0.0}, "cut it instead"),
        ({"drop_fraction": 1.0}, "cut it instead"),
        ({"drop_fraction": -0.1}, "cut it instead"),
    ],
)
def test_a_condition_that_no_link_can_have_is_refused(fields: dict[str, float], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Condition(is_cut=False, **fields)


def test_faults_of_several_tokens_are_suffered_together() -> None:
    ledger = Ledger([1, 2])
    ledger.add("one", "slow", [(1, 2)], Condition(False, 100, 10, 5_000))
    ledger.add("two", "slow", [(1, 2)], Condition(False, 50, 5, 9_000))
    ledger.add("one", "drop", [(1, 2)], Condition(drop_fraction=0.5))
    ledger.add("two", "drop", [(1, 2)], Condition(drop_fraction=0.5))
    assert ledger.conditions() == {(1, 2): Condition(False, 150, 15, 5_000, 0.75)}


def test_a_fault_of_the_same_token_and_kind_replaces_the_one_before() -> None:
    ledger = Ledger([1, 2])
    ledger.add("one", "slow", [(1, 2)], Condition(delay_ms=100))
    ledger.add("one", "slow", [(1, 2)], Condition(delay_ms=20))
    assert ledger.conditions() == {(1, 2): Condition(delay_ms=20)}


def test_a_token_ends_with_all_of_its_kinds_and_no_other() -> None:
    ledger = Ledger([1, 2, 3])
    ledger.add("one", "cut", [(1, 2), (1, 3)], CUT)
    ledger.add("one", "slow", [(1, 2)], Condition(delay_ms=20))
    ledger.add("two", "cut", [(1, 2)], CUT)
    ledger.end("one")
    assert ledger.conditions() == {(1, 2): CUT}
    ledger.end(None)
    assert ledger.conditions() == {}


def test_departures_are_within_the_jitter_and_in_order() -> None:
    line, condition = shaper(), Condition(delay_ms=100, jitter_ms=50)
    departures = [line.departure_s(condition, 0.001 * number, 100) for number in range(200)]
    assert departures == sorted(departures)
    assert all(
        0.001 * number + 0.05 <= at_s <= 0.001 * number + 0.15 for number, at_s in enumerate(departures)
    )
    assert len(set(departures)) > 5


def test_a_rate_makes_pieces_wait_for_those_before_them_and_an_idle_link_saves_nothing_up() -> None:
    line, condition = shaper(), Condition(rate_bytes_per_s=1_000)
    assert [line.departure_s(condition, at_s, 100) for at_s in (0.0, 0.0, 10.0)] == [0.1, 0.2, 10.1]


def test_a_link_is_full_when_more_than_two_seconds_wait_for_it() -> None:
    line, condition = shaper(), Condition(rate_bytes_per_s=1_000)
    line.departure_s(condition, 0.0, 2_000)
    assert not line.is_full(condition, 0.0)
    line.departure_s(condition, 0.0, 1)
    assert line.is_full(condition, 0.0)
    assert not line.is_full(Condition(delay_ms=5), 0.0)


def test_a_fraction_is_lost() -> None:
    line, condition = shaper(), Condition(drop_fraction=0.3)
    assert 250 < sum(line.is_lost(condition) for _ in range(1_000)) < 350
    assert not any(line.is_lost(SOUND) for _ in range(100))


def test_each_loss_in_a_row_doubles_the_time_until_tcp_tries_again() -> None:
    assert [held_s(losses, 0.2) for losses in range(4)] == pytest.approx([0.0, 0.2, 0.6, 1.4])
    counts = [shaper().losses(Condition(drop_fraction=0.99)) for _ in range(20)]
    assert max(counts) == 6


def test_a_line_sends_what_is_due_and_tells_what_befell_the_rest() -> None:
    line = Line(shaper())
    line.change(Condition(delay_ms=100))
    line.arrive(b"first", 0.0)
    line.arrive(b"second", 0.05)
    assert line.due(0.09) == []
    assert line.due(0.12) == [b"first"]
    line.change(CUT)
    line.arrive(b"third", 0.2)
    assert line.due(10.0) == []
    assert line.tally == Tally(bytes=5, delayed=2, lost=0, cut=2)


def test_what_waits_on_a_line_leaves_at_once_when_it_is_sound_again() -> None:
    line = Line(shaper())
    line.change(Condition(delay_ms=100))
    line.arrive(b"first", 0.0)
    line.change(SOUND)
    line.arrive(b"second", 0.001)
    assert line.due(0.001) == [b"first", b"second"]


def test_a_line_that_gets_its_condition_again_keeps_its_state() -> None:
    line = Line(shaper())
    line.change(Condition(rate_bytes_per_s=1_000))
    line.arrive(b"x" * 100, 0.0)
    line.change(Condition(rate_bytes_per_s=1_000))
    line.arrive(b"x" * 100, 0.0)
    assert [len(line.due(at_s)) for at_s in (0.15, 0.25)] == [1, 1]


def test_packets_find_their_line_by_both_addresses_and_unknown_ones_are_dropped() -> None:
    lines = Lines(Random(1))
    lines.change({f"{NEAR} {FAR}": {"is_cut": True}, f"{NEAR} {OTHER}": {"delay_ms": 10}})
    router_solicitation = b"\x60" + packet(NEAR, OTHER)[1:]
    for each in (packet(NEAR, FAR), packet(NEAR, OTHER), packet(FAR, NEAR), router_solicitation):
        lines.arrive(each, 0.0)
    assert lines.next_s() == 0.01
    assert lines.due(1.0) == [packet(NEAR, OTHER)]
    assert lines.next_s() is None
    assert lines.tallies()[f"{NEAR} {FAR}"] == {"bytes": 0, "delayed": 0, "lost": 0, "cut": 1}


def test_lines_that_are_not_named_are_sound() -> None:
    lines = Lines(Random(1))
    lines.change({f"{NEAR} {FAR}": {"is_cut": True}})
    lines.change({})
    lines.arrive(packet(NEAR, FAR), 0.0)
    assert lines.due(0.0) == [packet(NEAR, FAR)]


def test_counters_name_the_faults_that_were_felt_and_no_others() -> None:
    assert named((1, 2), Tally(bytes=10, lost=3)) == {"1 to 2 bytes": 10, "1 to 2 lost": 3}
