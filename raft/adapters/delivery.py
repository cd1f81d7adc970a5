"""What is committed goes to the state machine, a piece at a time, and whoever waited for it hears of it."""

import asyncio
from collections.abc import Callable

from raft.adapters.commit_feed import CommitFeed
from raft.adapters.driver_ports import Clock
from raft.adapters.local_requests import LocalRequests
from raft.ready import Ready
from wire.log_batch import OffsetAndEpoch

Load = Callable[[OffsetAndEpoch, Callable[[object], None]], None]


class Delivery:
    """Belongs to the loop. What does not fit one turn is delivered in the next ones, unless the driver `is_blocked`:
    then the log may be being cut, and `commit` goes on afterwards."""

    def __init__(
        self,
        feed: CommitFeed,
        callers: LocalRequests,
        now_ms: Clock,
        *,
        guarded: Callable[[Callable[[], None]], None],
        is_blocked: Callable[[], bool],
        arm_timer: Callable[[], None],
        load: Load | None,
        forget: Callable[[], None] | None,
    ) -> None:
        """`load` makes a snapshot into a state in its own time, and `forget` gives up what was made ready for it; None
        where there are no snapshots."""
        self._feed = feed
        self._callers = callers
        self._now_ms = now_ms
        self._guarded = guarded
        self._is_blocked = is_blocked
        self._arm_timer = arm_timer
        self._load = load
        self._forget = forget
        self._is_due = False

    @property
    def applied_offset(self) -> int:
        return self._feed.applied_offset

    def commit(self, now_ms: int, ready: Ready) -> None:
        """What a turn says of the high watermark, of who leads, and of reads."""
        if ready.high_watermark is not None:
            self._feed.advance(ready.high_watermark)
            self._feed.deliver(now_ms)
        if ready.leader is not None:
            self._feed.lead_changed(now_ms, ready.leader)
        for outcome in ready.reads:
            self._callers.take_read(outcome)
        self._callers.applied(self._feed.applied_offset)
        self._deliver_rest_soon()

    def hold(self) -> None:
        """Deliver nothing more before the next turn has said what to do: the log is being dropped for a snapshot."""
        self._feed.hold()

    def release(self) -> None:
        """The turn said nothing of loading."""
        if self._feed.release() and self._forget is not None:
            self._forget()

    def load(self, snapshot: OffsetAndEpoch) -> None:
        """Have the state machine start over; nothing is committed to it meanwhile."""
        assert self._load is not None, f"{snapshot} cannot be loaded: there is no loader"
        self._feed.begin_loading(snapshot)
        self._load(snapshot, lambda state: self._loaded(snapshot, state))

    def _loaded(self, snapshot: OffsetAndEpoch, state: object) -> None:
        self._feed.loaded(self._now_ms(), snapshot, state)
        self._tell()

    def _deliver_rest_soon(self) -> None:
        if self._feed.has_more and not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._guarded, self._deliver_rest)

    def _deliver_rest(self) -> None:
        self._is_due = False
        if self._is_blocked():
            return
        self._feed.deliver(self._now_ms())
        self._tell()

    def _tell(self) -> None:
        self._callers.applied(self._feed.applied_offset)
        self._arm_timer()
        self._deliver_rest_soon()
