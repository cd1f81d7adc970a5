"""What the core knows of its log: where it starts and ends, what is durable, and where each leader epoch began."""

from bisect import bisect_right

from raft.ports import LogSummary
from wire.log_batch import LogBatch, OffsetAndEpoch


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
