"""The writer's rests, and the turns of threads meanwhile."""

import sys
import threading

import pytest

from kquorum.snapshots.adapters.pace import Pace, Stopped, short_turns


def test_little_work_needs_no_rest_and_much_is_followed_by_one() -> None:
    lazy = Pace(work_s=1e9)
    lazy.begin()
    lazy.stop()
    lazy.rest()
    eager = Pace(work_s=0.0, rest_per_work=0.0)
    eager.begin()
    eager.rest()


def test_stopping_ends_a_rest_at_once() -> None:
    pace = Pace(work_s=0.0, rest_per_work=1e12)
    resting = threading.Event()
    seen: list[BaseException] = []

    def work() -> None:
        pace.begin()
        sum(range(10_000))
        resting.set()
        try:
            pace.rest()
        except Stopped as error:
            seen.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert resting.wait(60)
    pace.stop()
    thread.join(60)
    assert not thread.is_alive()
    assert len(seen) == 1
    with pytest.raises(Stopped):
        pace.rest()


def test_turns_are_short_while_a_client_asks_for_it() -> None:
    usual_s = sys.getswitchinterval()
    with short_turns(usual_s / 10):
        with short_turns(usual_s / 10):
            assert sys.getswitchinterval() == pytest.approx(usual_s / 10)
        assert sys.getswitchinterval() == pytest.approx(usual_s / 10)
    assert sys.getswitchinterval() == pytest.approx(usual_s)


def test_turns_that_are_shorter_already_stay() -> None:
    usual_s = sys.getswitchinterval()
    with short_turns(usual_s * 10):
        assert sys.getswitchinterval() == pytest.approx(usual_s)
