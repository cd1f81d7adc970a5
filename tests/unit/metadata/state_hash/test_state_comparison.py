"""States are compared at equal offsets, in whichever order nodes reach them."""

from collections.abc import Callable
from uuid import UUID

import pytest

from kquorum.metadata.state_hash.comparison import (
    REMEMBERED_STATES,
    TOLD_AGAIN_AFTER_MS,
    Mismatch,
    StateAt,
    StateComparison,
    annotation_of,
    reports_in,
    reports_message,
    state_of,
)
from kquorum.raft.voters import ReplicaKey

TWO, THREE = ReplicaKey(2, UUID(int=22)), ReplicaKey(3, UUID(int=33))


class Leader:
    def __init__(self) -> None:
        self.told: list[Mismatch] = []
        self.comparison = StateComparison(self.told.append)

    def own(self, offset: int, state_hash: int, now_ms: int = 0) -> None:
        self.comparison.note_own(now_ms, offset, state_hash)

    def report(self, replica: ReplicaKey, offset: int, state_hash: int, now_ms: int = 0) -> None:
        self.comparison.note_report(now_ms, replica, annotation_of(StateAt(offset, state_hash)))


@pytest.mark.parametrize("leader_is_first", [True, False])
def test_equal_states_agree(leader_is_first: bool) -> None:
    leader = Leader()
    steps: list[Callable[[], None]] = [
        lambda: leader.own(7, 1 << 100),
        lambda: leader.report(TWO, 7, 1 << 100),
    ]
    for step in steps if leader_is_first else reversed(steps):
        step()
    (report,) = leader.comparison.reports
    assert (report.replica, report.agreed_offset, report.mismatch) == (TWO, 7, None)
    assert leader.told == []


@pytest.mark.parametrize("leader_is_first", [True, False])
def test_another_state_at_the_same_offset_is_reported_at_once(leader_is_first: bool) -> None:
    leader = Leader()
    steps: list[Callable[[], None]] = [lambda: leader.own(7, 1, 50), lambda: leader.report(TWO, 7, 2, 50)]
    for step in steps if leader_is_first else reversed(steps):
        step()
    assert leader.told == [Mismatch(TWO, 7, 1, 2, 50)]


def test_states_at_other_offsets_are_not_compared() -> None:
    leader = Leader()
    leader.own(7, 1)
    leader.report(TWO, 6, 2)
    leader.report(TWO, 8, 2)
    leader.own(9, 3)
    (report,) = leader.comparison.reports
    assert report.agreed_offset is None
    assert leader.told == []


def test_a_node_of_a_slower_pace_is_compared_with_what_is_remembered() -> None:
    leader = Leader()
    for offset in range(REMEMBERED_STATES + 10):
        leader.own(offset, offset + 1)
    leader.report(TWO, 9, 999)
    assert leader.told == [], "that one is forgotten"
    leader.report(TWO, 10, 999)
    assert [mismatch.offset for mismatch in leader.told] == [10]


def test_a_lasting_condition_is_reported_again_once_a_minute() -> None:
    leader = Leader()
    for number in range(1, 200):
        leader.own(number, number, now_ms=number * 1000)
        leader.report(TWO, number, 77_000 + number, now_ms=number * 1000)
        leader.report(THREE, number, number, now_ms=number * 1000)
    assert [mismatch.offset for mismatch in leader.told] == [1, 61, 121, 181]
    assert {mismatch.found_ms for mismatch in leader.told} == {1000}
    assert {mismatch.replica for mismatch in leader.told} == {TWO}


def test_an_idle_node_that_differs_is_reported_again_too() -> None:
    leader = Leader()
    leader.own(7, 1)
    for now_ms in (0, 500, TOLD_AGAIN_AFTER_MS - 1, TOLD_AGAIN_AFTER_MS):
        leader.report(TWO, 7, 2, now_ms)
    assert len(leader.told) == 2


def test_a_node_that_has_recovered_is_no_longer_named_and_reported_at_once_when_it_differs_again() -> None:
    leader = Leader()
    leader.own(7, 1)
    leader.own(8, 2)
    leader.own(9, 3)
    leader.report(TWO, 7, 5, 0)
    leader.report(TWO, 8, 2, 10)
    assert [(each.agreed_offset, each.mismatch) for each in leader.comparison.reports] == [(8, None)]
    leader.report(TWO, 9, 5, 20)
    assert [mismatch.offset for mismatch in leader.told] == [7, 9]


def test_reports_to_another_leader_are_forgotten() -> None:
    leader = Leader()
    leader.own(7, 1)
    leader.report(TWO, 7, 2)
    leader.comparison.forget_reports()
    assert list(leader.comparison.reports) == []
    leader.report(TWO, 7, 2)
    assert len(leader.told) == 2


@pytest.mark.parametrize("annotation", [b"", b"x", b"\x02" + bytes(24), b"\x01" + bytes(25)])
def test_what_is_not_ours_is_passed_over(annotation: bytes) -> None:
    assert state_of(annotation) is None
    leader = Leader()
    leader.own(0, 1)
    leader.comparison.note_report(0, TWO, annotation)
    assert list(leader.comparison.reports) == []


def test_all_of_it_goes_into_a_message_and_comes_back() -> None:
    leader = Leader()
    leader.own(7, (1 << 127) + 5)
    leader.report(TWO, 7, 2, 99)
    leader.report(THREE, 8, 3)
    own, reports = reports_in(reports_message(leader.comparison).SerializeToString())
    assert own == StateAt(7, (1 << 127) + 5)
    assert [(each.replica, each.newest, each.mismatch) for each in reports] == [
        (TWO, StateAt(7, 2), Mismatch(TWO, 7, (1 << 127) + 5, 2, 99)),
        (THREE, StateAt(8, 3), None),
    ]
    assert reports_in(b"\xff\xff") == (None, ())
    assert reports_in(b"") == (None, ())
