"""The stretch of time that a report shows, and the buckets it is counted in."""

import bisect
from dataclasses import dataclass

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
