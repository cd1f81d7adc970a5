"""The one timer of a driver."""

import asyncio
from collections.abc import Callable

_SHORTEST_MS = 1


class OneTimer:
    """Fires no later than the earliest deadline that it was armed with; too early at times, and then it is armed again.

    A deadline that moves back leaves the timer as it is: most do so with every message, and none need fire exactly.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, now_ms: Callable[[], int], fire: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._now_ms = now_ms
        self._fire = fire
        self._handle: asyncio.TimerHandle | None = None
        self._due_ms = 0

    def arm(self, *deadlines_ms: int | None) -> None:
        """None is no deadline."""
        known = [deadline for deadline in deadlines_ms if deadline is not None]
        if not known or (self._handle is not None and self._due_ms <= min(known)):
            return
        self.cancel()
        self._due_ms = min(known)
        delay_ms = max(_SHORTEST_MS, self._due_ms - self._now_ms())
        self._handle = self._loop.call_later(delay_ms / 1000, self._fired)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _fired(self) -> None:
        self._handle = None
        self._fire()
