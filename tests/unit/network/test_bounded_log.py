"""What is said of bad peers, within a measure."""

import logging

import pytest

from kquorum.network.bounded_log import BoundedLibrary, BoundedLog


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


def test_the_lines_of_a_library_are_counted_likewise() -> None:
    now_s = 10.0
    bounded = BoundedLibrary("asyncio", lambda: now_s, 2)

    def said(name: str, number: int) -> str | None:
        record = logging.LogRecord(name, logging.ERROR, "x.py", 1, "fault %d", (number,), None)
        return record.getMessage() if bounded.filter(record) else None

    assert [said("asyncio", 1), said("asyncio.events", 2), said("asyncio", 3)] == ["fault 1", "fault 2", None]
    assert said("kquorum.network.server", 4) == "fault 4"
    now_s = 11.5
    assert said("asyncio", 5) == "fault 5 (1 more of such lines were left out before this one)"
    assert said("asyncio", 6) == "fault 6"
