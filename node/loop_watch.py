"""Tells the operator when a node's event loop was held up: for so long it answered no request and sent no heartbeat."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

log = logging.getLogger("node.loop_watch")

INTERVAL_S: Final = 0.25
HELD_UP_S: Final = 1.0
TELL_AGAIN_S: Final = 30.0
# So much of the processor's time, and the loop's own work was long. In an interval without anything amiss it is less.
_OWN_WORK_S: Final = 0.3
# Of the time held up: as much of the processor's, and the other threads kept the loop from it.
_OTHERS_WORK: Final = 0.5
_AWAY: Final = (
    "the machine was busy with something else, was suspended, or kept the node waiting for its disk or memory"
)


class LoopWatch:
    """`start` it on the loop. A timer that comes late tells how long the loop was busy, or the machine away."""

    def __init__(
        self,
        clock_s: Callable[[], float] = time.monotonic,
        thread_time_s: Callable[[], float] = time.thread_time,
        process_time_s: Callable[[], float] = time.process_time,
    ) -> None:
        """`thread_time_s` is the processor time of the loop's thread, `process_time_s` that of all."""
        self._clock_s = clock_s
        self._thread_time_s = thread_time_s
        self._process_time_s = process_time_s
        self._timer: asyncio.TimerHandle | None = None
        self._last = (0.0, 0.0, 0.0)
        self._told_s: float | None = None
        self._untold = 0

    def start(self) -> None:
        self._last = self._times()
        self._timer = asyncio.get_running_loop().call_later(INTERVAL_S, self._ring)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def look(self) -> None:
        """An interval has passed since the last look, or more."""
        before, now = self._last, self._times()
        self._last = now
        passed_s, loop_s, process_s = (new - old for new, old in zip(now, before, strict=True))
        late_s = passed_s - INTERVAL_S
        if late_s > HELD_UP_S:
            self._tell(now[0], late_s, _why(late_s, loop_s, process_s - loop_s))

    def _times(self) -> tuple[float, float, float]:
        return self._clock_s(), self._thread_time_s(), self._process_time_s()

    def _ring(self) -> None:
        self.look()
        self._timer = asyncio.get_running_loop().call_later(INTERVAL_S, self._ring)

    def _tell(self, now_s: float, late_s: float, why: str) -> None:
        if self._told_s is not None and now_s - self._told_s < TELL_AGAIN_S:
            self._untold += 1
            return
        again = f"; {self._untold} more times since this was told last" if self._untold else ""
        self._told_s, self._untold = now_s, 0
        log.warning(
            "this node was held up for %.1f s, in which it answered no request and sent no heartbeat: %s%s",
            late_s,
            why,
            again,
        )


def _why(late_s: float, loop_s: float, others_s: float) -> str:
    """The loop's own work comes first and is always told: it holds the node up however long the machine takes over it,
    and a machine with other work as well makes it a small share of the time."""
    own = f"its own work took {loop_s:.1f} s"
    others = f"its other threads (of a snapshot, say) took {others_s:.1f} s"
    rest_s = late_s - loop_s - others_s
    if loop_s >= _OWN_WORK_S:
        parts = [f"{own} of processor time at one go"]
        if others_s >= _OWN_WORK_S:
            parts.append(others)
        if rest_s >= HELD_UP_S:
            parts.append(f"for the other {rest_s:.1f} s it waited: {_AWAY}")
        return "; ".join(parts)
    if others_s >= late_s * _OTHERS_WORK:
        return f"{others} of processor time meanwhile, {own}"
    return f"it had the processor for only {loop_s + others_s:.1f} s of that ({own}): {_AWAY}"
