"""The window of time of a report, times and durations as people read them (UTC), and the ticks of a time axis."""

import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

# The stretch of time that a report shows, and the buckets it is counted in.

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
# Every bucket begins at a multiple of its length since 1970, so weeks would begin on Thursdays: there are none.
_LENGTHS = (
    *(count * _SECOND for count in (1, 2, 5, 10, 15, 30)),
    *(count * _MINUTE for count in (1, 2, 5, 10, 15, 30)),
    *(count * _HOUR for count in (1, 2, 3, 6, 12)),
    *(count * _DAY for count in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)),
)
MOST_BUCKETS = 150


@dataclass(frozen=True, slots=True)
class Window:
    """From `start_ms` to `end_ms`, the time of the last record in it, in buckets of `bucket_ms`."""

    start_ms: int
    end_ms: int
    bucket_ms: int

    @property
    def origin_ms(self) -> int:
        """Where the first bucket begins: at or before the window's start."""
        return self.start_ms - self.start_ms % self.bucket_ms

    @property
    def buckets(self) -> int:
        return (self.end_ms - self.origin_ms) // self.bucket_ms + 1

    @property
    def duration_ms(self) -> int:
        return self.end_ms - self.start_ms

    def bucket_start(self, bucket: int) -> int:
        return self.origin_ms + bucket * self.bucket_ms


def window_of(start_ms: int, end_ms: int) -> Window:
    """A window with buckets of a round length, at most `MOST_BUCKETS` of them."""
    least = (end_ms - start_ms) / (MOST_BUCKETS - 1)
    chosen = min(bisect.bisect_left(_LENGTHS, least), len(_LENGTHS) - 1)
    bucket_ms = _LENGTHS[chosen]
    while bucket_ms < least:
        bucket_ms *= 10
    return Window(start_ms, end_ms, bucket_ms)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (_SECOND, "s"))
_STEPS = (
    *(count * _SECOND for count in (1, 2, 5, 10, 15, 30)),
    *(count * _MINUTE for count in (1, 2, 5, 10, 15, 30)),
    *(count * _HOUR for count in (1, 2, 3, 6, 12)),
    *(count * _DAY for count in (1, 2, 4, 7, 14)),
)
_MONTH_STEPS = (1, 2, 3, 6, 12, 24, 60, 120, 600, 1200)
MOST_TICKS = 10


def moment(at_ms: int) -> str:
    """`2026-01-31 12:00:05`; milliseconds are left to the offsets, which tell records apart anyway."""
    when = _datetime(at_ms)
    return f"{at_ms} ms" if when is None else f"{when:%Y-%m-%d %H:%M:%S}"


def stretch(start_ms: int, end_ms: int) -> str:
    """Both ends, the day only once where it is the same."""
    start, end = moment(start_ms), moment(end_ms)
    return f"{start}\u2013{end[11:]}" if start[:10] == end[:10] else f"{start} \u2013 {end}"


def duration(length_ms: int) -> str:
    """Its two largest units, `2 d 3 h` or `7 min 52 s`."""
    if length_ms < 10 * _SECOND:
        return f"{length_ms / 1000:.1f} s" if length_ms >= _SECOND else f"{length_ms} ms"
    for index, (unit_ms, name) in enumerate(_UNITS):
        if length_ms >= unit_ms:
            smaller = _UNITS[index + 1] if index + 1 < len(_UNITS) else None
            rest = (length_ms % unit_ms) // smaller[0] if smaller else 0
            return f"{length_ms // unit_ms} {name}" + (f" {rest} {smaller[1]}" if smaller and rest else "")
    raise AssertionError("the smallest unit is a second")


def ticks(window: Window) -> list[tuple[int, str]]:
    """Round moments in the window with what to write at them, ten at most."""
    least = window.duration_ms / MOST_TICKS
    step = next((each for each in _STEPS if each >= least), None)
    found = list(_by_month(window) if step is None else _by_step(window, step))
    return found if found and found[0][1] else []


def _by_step(window: Window, step: int) -> Iterator[tuple[int, str]]:
    """The day is written where it begins, and at the first tick."""
    day = None
    for at_ms in range(-(-window.start_ms // step) * step, window.end_ms + 1, step):
        when = _datetime(at_ms)
        if when is None:
            return
        is_new_day, day = when.date() != day, when.date()
        date, clock = f"{when.day} {when:%b}", f"{when:%H:%M:%S}" if step < _MINUTE else f"{when:%H:%M}"
        midnight = when.hour == when.minute == when.second == 0
        if step >= _DAY or midnight:
            yield at_ms, date
        else:
            yield at_ms, f"{date} {clock}" if is_new_day else clock


def _by_month(window: Window) -> Iterator[tuple[int, str]]:
    start, end = _datetime(window.start_ms), _datetime(window.end_ms)
    if start is None or end is None:
        return
    months = (end.year - start.year) * 12 + end.month - start.month
    step = next((each for each in _MONTH_STEPS if months / each <= MOST_TICKS), _MONTH_STEPS[-1])
    first = start.year * 12 + start.month - 1
    for number in range(-(-first // step) * step, end.year * 12 + end.month, step):
        year, month = divmod(number, 12)
        at_ms = round((datetime(year, month + 1, 1, tzinfo=UTC) - _EPOCH).total_seconds() * 1000)
        if window.start_ms <= at_ms <= window.end_ms:
            when = datetime(year, month + 1, 1, tzinfo=UTC)
            yield at_ms, f"{when:%Y}" if month == 0 else f"{when:%b}"


def _datetime(at_ms: int) -> datetime | None:
    try:
        return _EPOCH + timedelta(milliseconds=at_ms)
    except OverflowError:
        return None
