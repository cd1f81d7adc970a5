"""The measured rate, by the worked example of Kafka's ClientQuotaManagerTest."""

import pytest

from kquorum.broker.quota.rate import Level, WindowedRate, Windows

SECOND = 1_000


def test_kafkas_example_of_a_violated_quota() -> None:
    rate = WindowedRate(Windows())
    now_ms = 5_000
    for _ in range(10):
        rate.record(now_ms, 400)
        assert rate.throttle_ms(now_ms, 500) == 0
        now_ms += SECOND
    now_ms += 500
    rate.record(now_ms, 2_300)
    # 6,300 bytes in 10.5 s are 600 bytes/s: a fifth too much of 10.5 s.
    assert rate.per_second(now_ms) == 600
    assert rate.throttle_ms(now_ms, 500) == 2_100
    # As in Kafka there may be further delays, until the burst is out of the windows.
    for _ in range(11):
        now_ms += SECOND
        rate.record(now_ms, 400)
    assert rate.throttle_ms(now_ms, 500) == 0


def test_an_idle_client_may_send_at_once_what_all_full_windows_allow() -> None:
    rate = WindowedRate(Windows(number=11, size_ms=SECOND))
    rate.record(0, 5_000)
    assert rate.throttle_ms(0, 500) == 0
    rate.record(0, 5)
    assert rate.throttle_ms(0, 500) == 10


@pytest.mark.parametrize(
    ("number", "size_ms", "most"), [(11, 1_000, 5_000), (5, 2_000, 4_000), (1, 1_000, 500)]
)
def test_the_windows_are_the_config(number: int, size_ms: int, most: int) -> None:
    rate = WindowedRate(Windows(number, size_ms))
    rate.record(0, most)
    assert rate.throttle_ms(0, 500) == 0
    rate.record(0, most * 0.1)
    assert rate.throttle_ms(0, 500) > 0
    assert Windows(number, size_ms).full_ms * 500 / 1_000 == most


def test_what_is_older_than_the_windows_counts_no_more() -> None:
    rate = WindowedRate(Windows(number=3, size_ms=SECOND))
    rate.record(0, 1_000_000)
    assert not rate.is_empty(2_999)
    assert rate.is_empty(3_000)
    assert rate.per_second(3_000) == 0
    rate.record(3_000, 10)
    assert rate.per_second(3_000) == 5


def test_windows_are_bounded_however_often_one_records() -> None:
    rate = WindowedRate(Windows(number=3, size_ms=SECOND))
    for now_ms in range(0, 60_000, 10):
        rate.record(now_ms, 1)
    assert rate.per_second(59_999) == pytest.approx(100, rel=0.05)


def test_a_recent_rate_is_not_spread_over_windows_that_were_empty() -> None:
    rate = WindowedRate(Windows())
    rate.record(0, 1_000)
    assert rate.recent_per_second(0) == 1_000
    assert rate.recent_per_second(2_000) == 500
    assert rate.per_second(2_000) == 100


def test_no_limit_at_all_waits_as_long_as_an_answer_can_say() -> None:
    rate = WindowedRate(Windows())
    rate.record(0, 1)
    assert rate.throttle_ms(0, 0) == 2**31 - 1
    rate.record(0, 10**12)
    assert rate.throttle_ms(0, 1) == 2**31 - 1


def test_what_the_windows_forget_keeps_the_level() -> None:
    level = Level()
    # Sixty seconds' worth, where ten may be sent at once.
    level.record(0, 6_000, 100)
    assert level.throttle_ms(0, 100, 1_000) == 50_000
    assert level.throttle_ms(49_999, 100, 1_000) == 1
    assert level.throttle_ms(50_000, 100, 1_000) == 0
    level.record(50_000, 100, 100)
    assert level.throttle_ms(50_000, 100, 1_000) == 1_000


def test_another_window_begins_when_one_has_its_size() -> None:
    rate = WindowedRate(Windows(number=2, size_ms=SECOND))
    rate.record(0, 10)
    rate.record(SECOND, 7)
    assert rate.per_second(2 * SECOND) == 7


@pytest.mark.parametrize("limit", [5e-324, 1e-300, 1e-9])
def test_the_smallest_limits_make_the_longest_wait(limit: float) -> None:
    """Before: an OverflowError, which ended the connection of each client with such a quota."""
    rate, level = WindowedRate(Windows()), Level()
    rate.record(0, 1_000.0)
    level.record(0, 1_000.0, limit)
    assert rate.throttle_ms(0, limit) == level.throttle_ms(0, limit, 0.0) == 2**31 - 1
