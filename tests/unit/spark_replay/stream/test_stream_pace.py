"""When a stream makes the tables of the state again, in seconds of the monotonic clock."""

import pytest

from kquorum.spark_replay.stream.log_stream import EVERY_SECONDS, NOOPS_SECONDS, RefreshPace
from kquorum.spark_replay.stream.state import BEHIND, FRESH, NOOPS_BEHIND, StreamState

STARTED_AT = [0.0, 3.0, 1e7]


def state(behind: int) -> StreamState:
    return StreamState(input="log", version=1, behind=behind)


@pytest.mark.parametrize("started_at", STARTED_AT)
@pytest.mark.parametrize("behind", [NOOPS_BEHIND, BEHIND])
def test_a_stream_that_never_refreshed_does_it_at_once(started_at: float, behind: int) -> None:
    """Also on a machine that has just started, whose clock is near 0."""
    assert RefreshPace(EVERY_SECONDS).is_due(started_at, state(behind))


def test_fresh_tables_are_left_alone() -> None:
    assert not RefreshPace(EVERY_SECONDS).is_due(1e7, state(FRESH))


@pytest.mark.parametrize("started_at", STARTED_AT)
@pytest.mark.parametrize(("behind", "pause"), [(BEHIND, EVERY_SECONDS), (NOOPS_BEHIND, NOOPS_SECONDS)])
def test_noops_alone_wait_longer(started_at: float, behind: int, pause: float) -> None:
    pace = RefreshPace(EVERY_SECONDS)
    pace.refreshed(started_at, started_at + 1)
    assert not pace.is_due(started_at + pause, state(behind))
    assert pace.is_due(started_at + pause + 1, state(behind))


def test_a_refresh_that_took_long_is_not_repeated_soon() -> None:
    pace = RefreshPace(EVERY_SECONDS)
    pace.refreshed(0, 100)
    assert not pace.is_due(499, state(BEHIND))
    assert pace.is_due(500, state(BEHIND))
