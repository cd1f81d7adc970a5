"""Token buckets: an operation takes its cost out of the bucket of the principal that pays, and time refills it."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

_BUCKETS_KEPT: Final = 1000
_LONGEST_WAIT_MS: Final = 2**31 - 1


@dataclass(slots=True)
class Bucket:
    """`rate`, permits per second, and `burst` are those of the last filling."""

    tokens: float
    filled_at_ms: int
    rate: float
    burst: float

    def is_full_by(self, now_ms: int) -> bool:
        return self.tokens + self.rate * (now_ms - self.filled_at_ms) / 1000 >= self.burst

    def fill(self, rate: float, burst: float, now_ms: int) -> None:
        """A clock that was set back adds nothing."""
        elapsed_ms = max(0, now_ms - self.filled_at_ms)
        self.tokens = min(burst, self.tokens + rate * elapsed_ms / 1000)
        self.filled_at_ms, self.rate, self.burst = now_ms, rate, burst

    def until_filled_ms(self) -> int:
        """How long until nothing is overdrawn. 0 for a bucket that lacks less than half a millisecond: a client that
        waited as long as it was told must get through.

        A rate may be so small, or 0 in a log of another program, that the answer could not hold the time."""
        debt = max(0.0, -self.tokens)
        if debt * 1000 >= self.rate * _LONGEST_WAIT_MS:
            return _LONGEST_WAIT_MS if debt else 0
        return round(debt / self.rate * 1000)


@dataclass(slots=True)
class Buckets(Generic[Key]):
    """Those of one controller. They are not in the log, so another controller begins with full ones."""

    _kept: dict[Key, Bucket] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._kept)

    def filled(self, key: Key, rate: float, burst: float, now_ms: int) -> Bucket:
        """The bucket of `key` as it is now; a new one is full."""
        bucket = self._kept.get(key)
        if bucket is None:
            self._forget_idle(now_ms)
            bucket = self._kept[key] = Bucket(burst, now_ms, rate, burst)
        bucket.fill(rate, burst, now_ms)
        return bucket

    def _forget_idle(self, now_ms: int) -> None:
        """A bucket that is full by now is as good as a new one."""
        if len(self._kept) >= _BUCKETS_KEPT:
            self._kept = {key: bucket for key, bucket in self._kept.items() if not bucket.is_full_by(now_ms)}
