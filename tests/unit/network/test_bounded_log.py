"""What is said of bad peers, within a measure."""

import logging

import pytest

from kquorum.network.bounded_log import BoundedLog


def test_beyond_its_measure_the_log_counts_and_tells_the_count_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now_s = 10.0
    warnings = BoundedLog(logging.getLogger("test.bounded"), lambda: now_s)
    for number in range(50):
        warnings.warning("bad peer %d", number)
    assert [record.getMessage() for record in caplog.records] == [f"bad peer {n}" for n in range(20)]
    now_s = 11.5
    warnings.warning("bad peer %d", 50)
    warnings.warning("bad peer %d", 51)
    assert [record.getMessage() for record in caplog.records[20:]] == [
        "bad peer 50 (30 more of such lines were left out before this one)",
        "bad peer 51",
    ]
