"""What the core knows of its log, and where two logs agree.

`LogIndex` holds where the log starts and ends, how much is durable, and where each leader epoch began. The functions
below it compare a follower's position with a leader's log.
"""

from bisect import bisect_right

from kquorum.raft.ports import LogSummary
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch


class LogIndex:
    """Offsets and epochs, no bytes.

    Invariants: `log_start_offset <= flushed_offset <= log_end_offset`; epochs and their start offsets ascend.
    """

    def __init__(self, summary: LogSummary) -> None:
        self.log_start_offset = summary.log_start_offset
        self.log_end_offset = summary.log_end_offset
        # What a log holds when it is opened has been made durable by its recovery.
        self.flushed_offset = summary.log_end_offset
        self.truncations = 0
        self.snapshots = summary.snapshots
        self._epochs = [epoch for epoch, _ in summary.epochs]
        self._starts = [start for _, start in summary.epochs]

    @property
    def last_epoch(self) -> int:
        if self._epochs:
            return self._epochs[-1]
        # A damaged log may end below a snapshot that is newer than it.
        ended = (each.epoch for each in reversed(self.snapshots) if each.offset <= self.log_end_offset)
        return next(ended, 0)

    @property
    def first_snapshot(self) -> OffsetAndEpoch | None:
        return self.snapshots[0] if self.snapshots else None

    @property
    def newest_snapshot(self) -> OffsetAndEpoch | None:
        return self.snapshots[-1] if self.snapshots else None

    @property
    def epochs(self) -> tuple[tuple[int, int], ...]:
        return tuple(zip(self._epochs, self._starts, strict=True))

    def append(self, batch: LogBatch) -> None:
        assert batch.base_offset == self.log_end_offset, (batch.base_offset, self.log_end_offset)
        assert batch.leader_epoch >= self.last_epoch, (batch.leader_epoch, self.last_epoch)
        if not self._epochs or batch.leader_epoch > self._epochs[-1]:
            self._epochs.append(batch.leader_epoch)
            self._starts.append(batch.base_offset)
        self.log_end_offset = batch.next_offset

    def flushed(self, end_offset: int, truncations: int) -> None:
        """Take note of a flush; one that began before the last truncation says nothing (see `LogFlushed`)."""
        if truncations == self.truncations:
            self.flushed_offset = max(self.flushed_offset, min(end_offset, self.log_end_offset))

    def truncate_to(self, end_offset: int) -> None:
        assert self.log_start_offset <= end_offset <= self.log_end_offset, (end_offset, self.log_end_offset)
        self.log_end_offset = end_offset
        self.flushed_offset = min(self.flushed_offset, end_offset)
        while self._starts and self._starts[-1] >= end_offset:
            self._starts.pop()
            self._epochs.pop()

    def begin_at(self, snapshot_id: OffsetAndEpoch) -> None:
        """The log was dropped for this snapshot: it is empty, and begins where the snapshot ends."""
        self.log_start_offset = self.log_end_offset = self.flushed_offset = snapshot_id.offset
        self.snapshots = (snapshot_id,)
        self._epochs.clear()
        self._starts.clear()
        self.truncations += 1

    def add_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        assert snapshot_id in self.snapshots or snapshot_id.offset <= self.log_end_offset, snapshot_id
        known = {*self.snapshots, snapshot_id}
        self.snapshots = tuple(sorted(known, key=lambda each: (each.offset, each.epoch)))

    def advance_start(self, log_start_offset: int) -> None:
        """What stood below is gone, and snapshots that ended below with it; one stands exactly at the new start."""
        assert self.log_start_offset <= log_start_offset <= self.log_end_offset, log_start_offset
        self.log_start_offset = log_start_offset
        self.snapshots = tuple(each for each in self.snapshots if each.offset >= log_start_offset)
        position = max(0, bisect_right(self._starts, log_start_offset) - 1)
        del self._epochs[:position], self._starts[:position]
        if self._starts:
            self._starts[0] = max(self._starts[0], log_start_offset)
        if self._starts and self._starts[0] == self.log_end_offset:
            self._epochs.clear()
            self._starts.clear()

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """The end of the newest epoch that is not above `epoch`, and that epoch (KIP-101, KIP-595).

        An epoch older than everything here is answered with the log's start, and the epoch before it.
        """
        position = bisect_right(self._epochs, epoch)
        if position == 0:
            before = self.first_snapshot
            epoch_before = before.epoch if before is not None and before.epoch <= epoch else 0
            return OffsetAndEpoch(self.log_start_offset, epoch_before)
        end = self._starts[position] if position < len(self._starts) else self.log_end_offset
        return OffsetAndEpoch(end, self._epochs[position - 1])


# Where two logs agree


def diverging_point(log: LogIndex, fetch_offset: int, last_fetched_epoch: int) -> OffsetAndEpoch | None:
    """None if a follower at (`fetch_offset`, `last_fetched_epoch`) has a prefix of `log`.

    Otherwise the end of the newest epoch that both may share: the follower cuts its log there and asks again
    (rule R6.2; KIP-595, Fetch; the check is Kafka's `validateOffsetAndEpoch`).
    """
    if fetch_offset == 0 and log.log_start_offset == 0:
        return None
    end = log.end_offset_for_epoch(last_fetched_epoch)
    if end.epoch != last_fetched_epoch or end.offset < fetch_offset:
        return end
    return None


def snapshot_needed(log: LogIndex, fetch_offset: int, last_fetched_epoch: int) -> OffsetAndEpoch | None:
    """The snapshot by which a follower at this position must come in, if the log cannot serve it (KIP-630).

    That is a position before the log's start, or at that start with another history, or in an epoch older than all that
    is left; and a follower that begins at 0 is spared the replay. The bootstrap snapshot (0, 0) is never offered: it is
    in the log.
    """
    first, newest = log.first_snapshot, log.newest_snapshot
    if first is None or newest is None:
        return None
    if fetch_offset == 0 and newest.offset > 0:
        return newest
    if fetch_offset == 0 and log.log_start_offset == 0:
        return None
    is_before = fetch_offset < log.log_start_offset
    is_other_start = fetch_offset == log.log_start_offset and last_fetched_epoch != first.epoch
    return newest if is_before or is_other_start or last_fetched_epoch < first.epoch else None


def truncation_target(log: LogIndex, diverging: OffsetAndEpoch) -> int:
    """How far a follower cuts its own log after an answer of `diverging` (rule R8.2). Each round cuts more or ends the
    search."""
    if diverging.epoch == 0:
        return min(diverging.offset, log.log_end_offset)
    local_end = log.end_offset_for_epoch(diverging.epoch)
    if local_end.epoch == diverging.epoch:
        return min(local_end.offset, diverging.offset)
    return local_end.offset
