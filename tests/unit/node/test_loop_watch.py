"""The loop watch tells of a loop that was held up, why, and not too often."""

import asyncio
import logging
import time

import pytest

from kquorum.node.loop_watch import INTERVAL_S, TELL_AGAIN_S, LoopWatch
from tests.support.running_controllers import eventually


class Times:
    """A clock and the processor time of a thread."""

    def __init__(self) -> None:
        self.clock_s = INTERVAL_S
        self.thread_s = 5.0
        self.process_s = 7.0
        self.watch = LoopWatch(lambda: self.clock_s, lambda: self.thread_s, lambda: self.process_s)
        self.watch.look()

    def go_on(self, late_s: float = 0.0, worked_s: float = 0.0, others_s: float = 0.0) -> None:
        self.clock_s += INTERVAL_S + late_s
        self.thread_s += worked_s
        self.process_s += worked_s + others_s
        self.watch.look()


@pytest.fixture
def times() -> Times:
    return Times()


def test_own_work_is_distinguished_from_a_busy_machine(
    times: Times, caplog: pytest.LogCaptureFixture
) -> None:
    times.go_on(late_s=2.5, worked_s=2.6)
    assert "held up for 2.5 s" in caplog.text
    assert "its own work took 2.6 s" in caplog.text
    times.go_on(late_s=TELL_AGAIN_S)
    times.go_on(late_s=2.0 + TELL_AGAIN_S, worked_s=0.2)
    assert "only 0.2 s of that" in caplog.messages[-1]
    times.go_on(late_s=2.0 + TELL_AGAIN_S, worked_s=0.2, others_s=30.0)
    assert "its other threads (of a snapshot, say) took 30.0 s" in caplog.messages[-1]


@pytest.mark.parametrize(
    ("late_s", "worked_s", "others_s"),
    [(15.0, 6.5, 0.0), (2.0, 0.4, 0.0), (15.0, 6.5, 9.0), (60.0, 7.0, 1.0)],
)
def test_own_work_is_not_put_on_the_machine(
    times: Times, caplog: pytest.LogCaptureFixture, late_s: float, worked_s: float, others_s: float
) -> None:
    """A machine with other work as well makes the loop's share of the processor small, not its work."""
    times.go_on(late_s, worked_s, others_s)
    assert f"sent no heartbeat: its own work took {worked_s:.1f} s of processor time at one go" in caplog.text


def test_time_outside_the_loops_own_work_is_reported_too(
    times: Times, caplog: pytest.LogCaptureFixture
) -> None:
    times.go_on(late_s=15.0, worked_s=6.5, others_s=2.0)
    assert "its other threads (of a snapshot, say) took 2.0 s" in caplog.text
    assert "for the other 6.5 s it waited: the machine was busy with something else" in caplog.text


def test_all_of_it_being_own_work_leaves_the_machine_out(
    times: Times, caplog: pytest.LogCaptureFixture
) -> None:
    times.go_on(late_s=6.0, worked_s=5.8)
    assert "the machine" not in caplog.text
    assert "other threads" not in caplog.text


@pytest.mark.parametrize(("worked_s", "others_s"), [(0.2, 0.1), (0.0, 5.0), (0.2, 9.0), (1.2, 0.0)])
def test_the_loops_processor_time_is_always_reported(
    times: Times, caplog: pytest.LogCaptureFixture, worked_s: float, others_s: float
) -> None:
    times.go_on(6.0, worked_s, others_s)
    assert f"its own work took {worked_s:.1f} s" in caplog.text


def test_a_second_is_no_news(times: Times, caplog: pytest.LogCaptureFixture) -> None:
    times.go_on(late_s=0.99, worked_s=0.99)
    times.go_on()
    assert not caplog.records


def test_it_is_logged_once_per_period_with_the_count(times: Times, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(4):
        times.go_on(late_s=2.0, worked_s=2.0)
    assert len(caplog.records) == 1
    for _ in range(int(TELL_AGAIN_S / INTERVAL_S)):
        times.go_on()
    times.go_on(late_s=1.5, worked_s=1.5)
    assert len(caplog.records) == 2
    assert "3 more times" in caplog.messages[-1]
    assert caplog.records[0].levelno == logging.WARNING


def test_it_notices_a_real_loop_that_is_held_up(caplog: pytest.LogCaptureFixture) -> None:
    clock = {"jump_s": 0.0}

    async def run() -> None:
        watch = LoopWatch(lambda: time.monotonic() + clock["jump_s"])
        watch.start()
        clock["jump_s"] = 3.0
        await eventually(lambda: bool(caplog.records))
        watch.close()

    asyncio.run(run())
    assert "the machine was busy with something else" in caplog.text
