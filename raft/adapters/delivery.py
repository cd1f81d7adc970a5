"""What is committed goes to the state machine in log order, each batch once, a piece at a time; so does who leads."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import accumulate

from kquorum.raft.adapters.driver_ports import BatchLog, Clock
from kquorum.raft.adapters.local_requests import LocalRequests
from kquorum.raft.ports import StateMachine
from kquorum.raft.ready import LeaderAndEpoch, Ready
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch

# About 10 ms of work, for votes and fetches wait behind it: decoding and replaying 16 KiB took 2 to 7 ms of new
# partitions, and of changes 6 ms in order and 20 to 30 ms all over the image; 128 KiB took up to 110 ms. Less would be
# dear: each piece makes an image of its own, and half of these bytes cost up to a half more a record.
CHUNK_BYTES = 16 * 1024
# Bytes say little of compressed batches: these are as many records as the smallest in so many bytes.
CHUNK_RECORDS = 1_000
# More records than these are applied in slices. What a record changes may be long, whatever its own bytes: the hash of
# a resource with 64 KB of configs takes 0.15 ms, and 900 small changes of such resources took a broker 140 ms.
UNSLICED_RECORDS = 64
# For so long a follower's state waits for a flush, at most.
LONGEST_WAIT_S = 0.005


class CommitFeed:
    """Delivers in pieces of some batches, so that catching up never holds the loop for long. A piece of many records,
    and the batches of a transaction, whose End is work for all of them, are applied in slices.

    "You lead" waits until all that was committed when the core said so has been handed over; that another node
    or no node leads is reported at once: a state machine must stop deciding even if it lags behind.
    """

    def __init__(self, log: BatchLog, state_machine: StateMachine, node_id: int, applied_offset: int) -> None:
        self._log = log
        self._state_machine = state_machine
        self._node_id = node_id
        self._high_watermark = applied_offset
        self._own_leadership: LeaderAndEpoch | None = None
        self._own_leadership_offset = 0
        # The snapshot that is being made into the state machine's state: nothing is handed over meanwhile.
        self._loading: OffsetAndEpoch | None = None
        self._is_held = False
        # The batches that the state machine has applied in part.
        self._begun: Sequence[LogBatch] | None = None
        self.applied_offset = applied_offset

    @property
    def has_more(self) -> bool:
        """Whether there is something to deliver now."""
        return self._is_ready and self.applied_offset < self._high_watermark

    @property
    def is_behind(self) -> bool:
        return not self._is_ready or self.applied_offset < self._high_watermark

    @property
    def _is_ready(self) -> bool:
        return self._loading is None and not self._is_held

    def advance(self, high_watermark: int) -> None:
        """All below `high_watermark` is committed."""
        self._high_watermark = max(self._high_watermark, high_watermark)

    def hold(self) -> None:
        """Deliver nothing before `begin_loading` or `release`: the log is being dropped for a snapshot."""
        self._is_held = True

    def release(self) -> bool:
        """The state machine is as far as that snapshot already; answers whether anything was held."""
        was_held, self._is_held = self._is_held, False
        return was_held

    def begin_loading(self, snapshot: OffsetAndEpoch) -> None:
        """What was delivered is of no use any more: the state machine starts over from this snapshot."""
        self._is_held = False
        self._loading = snapshot

    def loaded(self, now_ms: int, snapshot: OffsetAndEpoch, state: object) -> None:
        """Hand over what was made of it, unless a newer one is being loaded by now."""
        if snapshot != self._loading:
            return
        self._loading = self._begun = None
        self._state_machine.handle_snapshot(now_ms, state)
        self.applied_offset = snapshot.offset
        self._high_watermark = max(self._high_watermark, snapshot.offset)
        self._maybe_lead(now_ms)

    def lead_changed(self, now_ms: int, leader: LeaderAndEpoch) -> None:
        """Tell who leads, now or when the state machine has caught up."""
        self._own_leadership = None
        if leader.leader_id == self._node_id and self.is_behind:
            self._own_leadership = leader
            self._own_leadership_offset = self._high_watermark
        else:
            self._state_machine.handle_leader_change(now_ms, leader.leader_id, leader.epoch)

    def deliver(self, now_ms: int) -> None:
        """Hand over the next piece, if there is one, and then the leadership that waited for it."""
        if self.has_more:
            batches = self._next_batches()
            if not batches:
                # A high watermark inside a batch, as a follower with a senseless offset can bring about: the batch
                # is committed when all of it is.
                self._high_watermark = self.applied_offset
                return
            assert batches[0].base_offset == self.applied_offset, batches[0].base_offset
            if not self._hand_over(now_ms, batches):
                return
            self.applied_offset = batches[-1].next_offset
        self._maybe_lead(now_ms)

    def _next_batches(self) -> Sequence[LogBatch]:
        if self._begun is not None:
            return self._begun
        batches = self._log.read_batches(self.applied_offset, CHUNK_BYTES, self._high_watermark)
        counts = accumulate(batch.next_offset - batch.base_offset for batch in batches)
        # mypyc evaluates what stands in a slice twice, and the counts can be taken once.
        fitting = sum(count <= CHUNK_RECORDS for count in counts)
        return batches[: max(1, fitting)]

    def _hand_over(self, now_ms: int, batches: Sequence[LogBatch]) -> bool:
        """Whether the state machine has done all of them."""
        is_long = batches[-1].next_offset - batches[0].base_offset > UNSLICED_RECORDS
        if not (is_long or self._begun or self._state_machine.is_in_transaction):
            self._state_machine.handle_commit(now_ms, batches)
            return True
        is_done = self._state_machine.handle_commit_slice(now_ms, batches)
        self._begun = None if is_done else batches
        return is_done

    def _maybe_lead(self, now_ms: int) -> None:
        leader = self._own_leadership
        is_due = self._is_ready and self.applied_offset >= self._own_leadership_offset
        if leader is not None and is_due:
            self._own_leadership = None
            self._state_machine.handle_leader_change(now_ms, leader.leader_id, leader.epoch)


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
        self._wait: asyncio.TimerHandle | None = None

    @property
    def applied_offset(self) -> int:
        return self._feed.applied_offset

    def commit(self, now_ms: int, ready: Ready, *, waits_for_flush: bool = False) -> None:
        """What a turn says of the high watermark, of who leads, and of reads. With `waits_for_flush` what is committed
        is delivered in the next turn, or after `LONGEST_WAIT_S`: a follower's acknowledgement goes first, for which the
        leader's clients wait."""
        if ready.high_watermark is not None:
            self._feed.advance(ready.high_watermark)
        if waits_for_flush and self._feed.has_more and not self._is_due:
            self._is_due = True
            self._wait = asyncio.get_running_loop().call_later(
                LONGEST_WAIT_S, self._guarded, self._deliver_rest
            )
        elif ready.high_watermark is not None or self._wait is not None:
            self._end_wait()
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

    def _end_wait(self) -> None:
        if self._wait is not None:
            self._wait.cancel()
            self._wait = None
            self._is_due = False

    def _deliver_rest(self) -> None:
        self._is_due = False
        self._wait = None
        if self._is_blocked():
            return
        self._feed.deliver(self._now_ms())
        self._tell()

    def _tell(self) -> None:
        self._callers.applied(self._feed.applied_offset)
        self._arm_timer()
        self._deliver_rest_soon()
