"""Time: the wall clock of the core, which cannot be set back, and the one timer of a driver."""

import asyncio
import time
from collections.abc import Callable


class MonotonicWallClock:
    """Milliseconds since 1970: wall time read once, then advanced by the monotonic clock.

    Timestamps go into batches, so they must look like wall time; timeouts must not jump when an operator or NTP
    sets the clock. A correction of the machine's clock is therefore seen only after a restart.
    """

    def __init__(self) -> None:
        self._offset_s = time.time() - time.monotonic()

    def now_ms(self) -> int:
        return int((self._offset_s + time.monotonic()) * 1000)


_SHORTEST_MS = 1
# Beyond this the loop was held up, by us or by the machine, and messages wait in the sockets.
_LATE_MS = 50


class OneTimer:
    """Fires no later than the earliest deadline that it was armed with; too early at times, and then it is armed again.

    A deadline that moves back leaves the timer as it is: most do so with every message, and none need fire exactly.
    uvloop runs timers before it reads. One that is late lets it read once more first, or a loop that was held up would
    take a fetch or heartbeat that lies in a socket for one that never came.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, now_ms: Callable[[], int], fire: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._now_ms = now_ms
        self._fire = fire
        self._handle: asyncio.TimerHandle | None = None
        self._due_ms = 0
        self._expected_ms = 0

    def arm(self, *deadlines_ms: int | None) -> None:
        """None is no deadline."""
        known = [deadline for deadline in deadlines_ms if deadline is not None]
        if not known or (self._handle is not None and self._due_ms <= min(known)):
            return
        self.cancel()
        self._due_ms = min(known)
        now_ms = self._now_ms()
        delay_ms = max(_SHORTEST_MS, self._due_ms - now_ms)
        self._expected_ms = now_ms + delay_ms
        self._handle = self._loop.call_later(delay_ms / 1000, self._fired)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _fired(self) -> None:
        if self._now_ms() - self._expected_ms > _LATE_MS:
            self._handle = self._loop.call_later(_SHORTEST_MS / 1000, self._fired_again)
        else:
            self._fired_again()

    def _fired_again(self) -> None:
        self._handle = None
        self._fire()
