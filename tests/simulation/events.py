"""One queue of events in virtual time, and the trace of what happened."""

import heapq
from collections.abc import Callable
from typing import Any

Action = Callable[..., None]


class EventQueue:
    def __init__(self, *, is_traced: bool = False, trace: list[str] | None = None) -> None:
        self.is_traced = is_traced
        self.trace: list[str] = [] if trace is None else trace
        self.now_ms = 0
        self.queue: list[tuple[int, int, Action, tuple[Any, ...]]] = []
        self.events = 0

    def at(self, delay_ms: int, action: Action, *arguments: Any) -> None:
        self.events += 1
        heapq.heappush(self.queue, (self.now_ms + delay_ms, self.events, action, arguments))

    def run_until(self, end_ms: int) -> None:
        queue = self.queue
        while queue and queue[0][0] <= end_ms:
            self.now_ms, _, action, arguments = heapq.heappop(queue)
            action(*arguments)
        self.now_ms = end_ms

    def note(self, line: str, *values: Any) -> None:
        """Records a line of the trace if tracing is on: `line` is a %-format."""
        if self.is_traced:
            self.trace.append(f"{self.now_ms:>6} {line % values}")
