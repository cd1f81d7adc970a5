"""A rate over the last few seconds, counted in windows (Kafka's Rate over a SampledStat)."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Final

_LONGEST_WAIT_MS: Final = 2**31 - 1


def _wait_ms(wait_ms: float) -> int:
    """A limit may be so small that the quotient is infinite, which is no integer."""
    return _LONGEST_WAIT_MS if wait_ms >= _LONGEST_WAIT_MS else round(wait_ms)


@dataclass(frozen=True, slots=True)
class Windows:
    """So many windows are kept, of so many ms; one of them is the one that is being filled (Kafka's
    `quota.window.num` and `quota.window.size.seconds`)."""

    number: int = 11
    size_ms: int = 1_000

    @property
    def full_ms(self) -> int:
        """Of all windows that are full."""
        return max(self.number - 1, 1) * self.size_ms


class WindowedRate:
    """Amounts by the time of their window. A window begins with its first amount."""

    __slots__ = ("_samples", "_total", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        # Start of the window in ms, and the amount in it.
        self._samples: deque[tuple[int, float]] = deque()
        self._total = 0.0

    def record(self, now_ms: int, amount: float) -> None:
        self._expire(now_ms)
        samples = self._samples
        if samples and now_ms - samples[-1][0] < self._windows.size_ms:
            start_ms, before = samples[-1]
            samples[-1] = (start_ms, before + amount)
        else:
            samples.append((now_ms, amount))
            if len(samples) > self._windows.number:
                self._drop_first()
        self._total += amount

    def is_empty(self, now_ms: int) -> bool:
        """Nothing was recorded in the time that counts."""
        self._expire(now_ms)
        return not self._samples

    def window_ms(self, now_ms: int) -> int:
        """The time that `per_second` divides by: since the start of the oldest window, and at least the full windows,
        so that a client that was idle may send at once what they allow."""
        self._expire(now_ms)
        size_ms = self._windows.size_ms
        elapsed_ms = now_ms - self._samples[0][0] if self._samples else 0
        missing = max(self._windows.number - 1 - elapsed_ms // size_ms, 0)
        return max(elapsed_ms + missing * size_ms, size_ms)

    def per_second(self, now_ms: int) -> float:
        window_ms = self.window_ms(now_ms)
        return self._total * 1000 / window_ms

    def recent_per_second(self, now_ms: int) -> float:
        """As `per_second`, but over the time since the oldest window alone, a window at least (Kafka's SimpleRate):
        what begins to flow is not taken for slow."""
        self._expire(now_ms)
        elapsed_ms = now_ms - self._samples[0][0] if self._samples else 0
        return self._total * 1000 / max(elapsed_ms, self._windows.size_ms)

    def throttle_ms(self, now_ms: int, limit: float) -> int:
        """How long to wait until the rate is at the limit again; 0 if it is not above it."""
        window_ms = self.window_ms(now_ms)
        value = self._total * 1000 / window_ms
        if value <= limit:
            return 0
        if limit <= 0:
            return _LONGEST_WAIT_MS
        return _wait_ms((value - limit) / limit * window_ms)

    def _expire(self, now_ms: int) -> None:
        oldest_ms = now_ms - self._windows.number * self._windows.size_ms
        while self._samples and self._samples[0][0] <= oldest_ms:
            self._drop_first()

    def _drop_first(self) -> None:
        self._total -= self._samples.popleft()[1]
        if not self._samples:
            # What rounding left of amounts that are no whole numbers.
            self._total = 0.0


class Level:
    """What was used and is not yet covered by the limit: it rises with each amount, and falls at the limit.

    Windows alone forget: who sent at once as much as a limit allows in twenty seconds would be free again after ten,
    and have twice its rate in the long run.
    """

    __slots__ = ("_amount", "_at_ms")

    def __init__(self) -> None:
        self._amount = 0.0
        self._at_ms = 0

    def record(self, now_ms: int, amount: float, limit: float) -> None:
        self._amount = self._left(now_ms, limit) + amount
        self._at_ms = max(now_ms, self._at_ms)

    def throttle_ms(self, now_ms: int, limit: float, most: float) -> int:
        """How long it takes to fall to `most`."""
        excess = self._left(now_ms, limit) - most
        if excess <= 0:
            return 0
        if limit <= 0:
            return _LONGEST_WAIT_MS
        # A millionth of a ms is what floats leave over.
        return math.ceil(min(excess / limit * 1000 - 1e-6, _LONGEST_WAIT_MS))

    def _left(self, now_ms: int, limit: float) -> float:
        return max(0.0, self._amount - max(now_ms - self._at_ms, 0) * limit / 1000)
