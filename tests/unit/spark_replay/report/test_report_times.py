"""Windows, buckets, ticks and durations of a report."""

import pytest

from kquorum.spark_replay.report.asked import _peaks
from kquorum.spark_replay.report.html import Axis
from kquorum.spark_replay.report.times import (
    MOST_BUCKETS,
    MOST_TICKS,
    duration,
    moment,
    stretch,
    ticks,
    window_of,
)

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
START = 1_773_100_861_234
LENGTHS = (0, 1, 999, 20 * MINUTE, HOUR, 2 * DAY, 31 * DAY, 730 * DAY, 40_000 * DAY)


@pytest.mark.parametrize("length", LENGTHS)
def test_a_window_of_any_length_has_few_buckets_that_cover_it(length: int) -> None:
    window = window_of(START, START + length)
    assert 1 <= window.buckets <= MOST_BUCKETS
    assert window.bucket_start(0) <= START < window.bucket_start(1)
    assert window.bucket_start(window.buckets - 1) <= window.end_ms < window.bucket_start(window.buckets)


def test_buckets_are_of_lengths_that_people_count_in() -> None:
    lengths = (20 * MINUTE, 2 * DAY, 730 * DAY)
    assert [window_of(START, START + each).bucket_ms for each in lengths] == [10_000, 30 * MINUTE, 5 * DAY]


@pytest.mark.parametrize("length", LENGTHS)
def test_ticks_are_few_in_order_and_within_the_window(length: int) -> None:
    window = window_of(START, START + length)
    found = [at_ms for at_ms, _ in ticks(window)]
    assert found == sorted(set(found))
    assert len(found) <= MOST_TICKS + 1
    assert all(window.start_ms <= each <= window.end_ms for each in found)
    assert found or length < 1000


def test_the_day_is_written_where_it_begins() -> None:
    evening = window_of(1_773_180_000_000, 1_773_180_000_000 + 6 * HOUR)  # 2026-03-10 22:00
    assert [label for _, label in ticks(evening)] == [
        *("10 Mar 22:00", "23:00", "11 Mar", "01:00", "02:00", "03:00", "04:00"),
    ]


def test_ticks_of_years_are_months() -> None:
    window = window_of(1_704_067_200_000, 1_704_067_200_000 + 730 * DAY)  # 2024
    assert [label for _, label in ticks(window)] == ["2024", "Apr", "Jul", "Oct", "2025", "Apr", "Jul", "Oct"]


def test_durations_have_two_units() -> None:
    lengths = (0, 265, 1_300, 59_999, 472_000, 2 * HOUR, 51 * HOUR + 5 * MINUTE)
    assert list(map(duration, lengths)) == ["0 ms", "265 ms", "1.3 s", "59 s", "7 min 52 s", "2 h", "2 d 3 h"]


def test_times_out_of_any_calendar_are_reported_as_numbers() -> None:
    assert moment(10**18) == "1000000000000000000 ms"
    assert stretch(START, START + 1000) == "2026-03-10 00:01:01\u201300:01:02"
    assert ticks(window_of(10**18, 10**18 + DAY)) == []


def test_a_level_goes_on_through_buckets_without_any_change() -> None:
    # Up by 3, down by 1 in bucket 1; nothing in 2; down by 1 after the beginning of 3, and at that of 4.
    assert _peaks({1: (2, 3), 3: (-1, 0), 4: (-1, -1)}, 5) == (0, 3, 2, 2, 0)


def test_bars_stay_within_the_picture_and_can_be_seen() -> None:
    axis = Axis(window_of(START, START + HOUR))
    late = axis.bar(START + HOUR, START + HOUR, "end", style="s")
    assert 'x="99.82%" width="0.18%"' in late
    early = axis.bar(START - DAY, START + DAY, "all", style="s")
    assert 'x="0%" width="100%"' in early
