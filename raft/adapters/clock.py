"""Time as the core is told it: wall time that cannot be set back."""

import time


class MonotonicWallClock:
    """Milliseconds since 1970: wall time read once, then advanced by the monotonic clock.

    Timestamps go into batches, so they must look like wall time; timeouts must not jump when an operator or NTP
    sets the clock. A correction of the machine's clock is therefore seen only after a restart.
    """

    def __init__(self) -> None:
        self._offset_s = time.time() - time.monotonic()

    def now_ms(self) -> int:
        return int((self._offset_s + time.monotonic()) * 1000)
