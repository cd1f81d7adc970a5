"""Averages and maxima over the last moments, in Kafka's way: two windows of half a minute (`metrics.num.samples` and
`metrics.sample.window.ms` at their defaults)."""

import math
from dataclasses import dataclass
from typing import Final

WINDOW_MS: Final = 30_000


@dataclass(slots=True)
class _Window:
    began_ms: int
    count: int = 0
    total_ms: int = 0
    max_ms: int = 0


class LatencyMeter:
    """Fed with whole milliseconds; `average` and `maximum` are not a number where nothing came lately."""

    def __init__(self) -> None:
        self._now = _Window(0)
        self._before = _Window(0)

    def record(self, now_ms: int, latency_ms: int) -> None:
        self._turn(now_ms)
        window = self._now
        window.count += 1
        window.total_ms += latency_ms
        window.max_ms = max(window.max_ms, latency_ms)

    def average(self, now_ms: int) -> float:
        self._turn(now_ms)
        count = self._now.count + self._before.count
        return (self._now.total_ms + self._before.total_ms) / count if count else math.nan

    def maximum(self, now_ms: int) -> float:
        self._turn(now_ms)
        if not self._now.count + self._before.count:
            return math.nan
        return float(max(self._now.max_ms, self._before.max_ms))

    def _turn(self, now_ms: int) -> None:
        if now_ms < self._now.began_ms + WINDOW_MS:
            return
        is_next = now_ms < self._now.began_ms + 2 * WINDOW_MS
        self._before = self._now if is_next else _Window(now_ms)
        self._now = _Window(now_ms)


class ElectionMeter:
    """From the moment when this voter begins to stand until a leader is there, itself or another."""

    def __init__(self) -> None:
        self.latency = LatencyMeter()
        self._began_ms: int | None = None

    def handle_role(self, now_ms: int, role: str) -> None:
        if role in ("prospective", "candidate"):
            self._began_ms = now_ms if self._began_ms is None else self._began_ms
        elif role in ("leader", "follower") and self._began_ms is not None:
            self.latency.record(now_ms, now_ms - self._began_ms)
            self._began_ms = None
