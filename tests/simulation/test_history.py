"""The linearizability checker accepts no history that one log cannot explain."""

import pytest

from kquorum.wire.log_batch import LogBatch, build_batch
from tests.simulation.history import Append, History, HistoryBroken


def taken_append(history: History, first_offset: int, *values: bytes) -> Append:
    append = history.begin_append(0, values)
    append.first_offset = first_offset
    history.taken(append)
    return append


def committed(base_offset: int, *values: bytes) -> LogBatch:
    return build_batch(base_offset, 1, 0, [(None, value) for value in values])


def test_a_read_that_began_after_an_acknowledged_append_must_see_it() -> None:
    history = History()
    early = history.begin_read(0)
    history.acknowledge(taken_append(history, 4, b"a"))
    history.end_read(early, 3, 3)
    late = history.begin_read(0)
    with pytest.raises(HistoryBroken, match="answered 4, though 5 was known"):
        history.end_read(late, 4, 9)


def test_a_read_must_not_go_behind_what_an_earlier_read_saw() -> None:
    history = History()
    history.end_read(history.begin_read(0), 3, 7)
    with pytest.raises(HistoryBroken, match="answered 6, though 7 was known"):
        history.end_read(history.begin_read(0), 6, 7)


def test_reads_at_the_same_time_may_answer_in_any_order() -> None:
    history = History()
    one, other = history.begin_read(0), history.begin_read(0)
    history.end_read(one, 7, 7)
    history.end_read(other, 3, 3)
    assert history.linearizable_reads == 2


def test_an_append_that_began_after_a_read_stands_behind_what_it_saw() -> None:
    history = History()
    history.end_read(history.begin_read(0), 7, 7)
    with pytest.raises(HistoryBroken, match="ended at 6"):
        history.acknowledge(taken_append(history, 6, b"a"))


def test_an_append_of_unknown_outcome_may_be_missing_but_not_out_of_order() -> None:
    history = History()
    taken_append(history, 2, b"lost")
    history.end_read(history.begin_read(0), 3, 3)
    taken_append(history, 2, b"too early")
    history.check_against([committed(0, b"x", b"y", b"z")])
    with pytest.raises(HistoryBroken, match="known to be there ended at 2"):
        history.check_against([committed(0, b"x", b"y", b"too early")])


@pytest.mark.parametrize(
    ("log", "complaint"),
    [
        ([], "the acknowledged record at offset 0 is lost"),
        ([committed(0, b"b", b"a")], "the acknowledged record at offset 0 is lost"),
        ([committed(0, b"a", b"a")], "and again at 1"),
        ([committed(0, b"a", b"refused")], "was refused, yet it stands at 1"),
        ([committed(0, b"a", b"half")], r"the group meant for offset 1 stands at \[1, None\]"),
    ],
)
def test_the_log_at_the_end_holds_what_was_said_of_it(log: list[LogBatch], complaint: str) -> None:
    history = History()
    history.acknowledge(taken_append(history, 0, b"a"))
    history.refused(history.begin_append(0, (b"refused",)))
    taken_append(history, 1, b"half", b"whole")
    with pytest.raises(HistoryBroken, match=complaint):
        history.check_against(log)
