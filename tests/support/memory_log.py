"""The log store that forgets: a fake for tests and simulation, held to the same contract as the files."""

from collections.abc import Sequence

from kquorum.raft.ports import LogSummary
from kquorum.raft.voters import QuorumRecord, quorum_records
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch


class MemoryLog:
    """A `LogStore` in memory; satisfies raft.ports.LogStore. What was not flushed is lost by `crash`."""

    def __init__(self, first_voters: Sequence[QuorumRecord] = ()) -> None:
        """`first_voters` stand for the bootstrap checkpoint: records at offset -1."""
        self._before = tuple(first_voters)
        self._batches: list[LogBatch] = []
        self._snapshots: list[OffsetAndEpoch] = []
        self._said: tuple[QuorumRecord, ...] = ()
        self._flushed = 0
        self._empty_at = 0
        self.log_start_offset = 0
        self.flushes = 0

    @property
    def end_offset(self) -> int:
        return self._batches[-1].next_offset if self._batches else self._empty_at

    def summary(self) -> LogSummary:
        epochs: dict[int, int] = {}
        for batch in self._batches:
            if batch.next_offset > self.log_start_offset:
                epochs.setdefault(batch.leader_epoch, max(batch.base_offset, self.log_start_offset))
        return LogSummary(
            self.log_start_offset,
            self.end_offset,
            tuple(epochs.items()),
            self.snapshots(),
            self.quorum_records(),
        )

    def snapshots(self) -> tuple[OffsetAndEpoch, ...]:
        return tuple(sorted(self._snapshots, key=lambda each: (each.epoch, each.offset)))

    def add_snapshot(self, snapshot: OffsetAndEpoch, says: Sequence[QuorumRecord] = ()) -> None:
        """It was written or fetched, and is durable. `says` is what a fetched one says of the quorum."""
        self._snapshots.append(snapshot)
        self._said = tuple(says)

    def quorum_records(self) -> tuple[QuorumRecord, ...]:
        """What the bootstrap checkpoint (at offset -1) or a fetched snapshot, and the log, say of kraft.version and
        voters, ascending."""
        found = (record for batch in self._batches for record in quorum_records(batch))
        return (*self._before, *found)

    def append(self, batches: Sequence[LogBatch]) -> None:
        for batch in batches:
            assert batch.base_offset == self.end_offset, (
                f"batch at {batch.base_offset}, log ends at {self.end_offset}"
            )
            last_epoch = self._batches[-1].leader_epoch if self._batches else -1
            assert batch.leader_epoch >= last_epoch, f"epoch {batch.leader_epoch} after {last_epoch}"
            self._batches.append(batch)

    def truncate_to(self, end_offset: int) -> None:
        keep = [batch for batch in self._batches if batch.next_offset <= end_offset]
        end = keep[-1].next_offset if keep else self._empty_at
        assert self.log_start_offset <= end_offset == end, f"offset {end_offset} is inside a batch"
        self._batches = keep
        self._flushed = min(self._flushed, len(keep))

    def truncate_fully_to(self, offset: int) -> None:
        """Drop all, and start again where a snapshot ends."""
        self._check_snapshot_at(offset)
        self._batches, self._flushed, self._before = [], 0, self._said
        self._empty_at = self.log_start_offset = offset
        self._forget_snapshots()

    def advance_log_start(self, offset: int) -> None:
        """Begin at a later offset, where a snapshot ends. The batches stay, as those of a segment in use would."""
        self._check_snapshot_at(offset)
        assert self.log_start_offset < offset <= self.end_offset, offset
        self.log_start_offset = offset
        self._forget_snapshots()

    def _check_snapshot_at(self, offset: int) -> None:
        assert any(each.offset == offset for each in self._snapshots), (
            f"there is no snapshot at offset {offset}"
        )

    def _forget_snapshots(self) -> None:
        self._snapshots = [each for each in self._snapshots if each.offset >= self.log_start_offset]

    def read_batches(
        self, start_offset: int, max_bytes: int, end_offset: int | None = None
    ) -> Sequence[LogBatch]:
        end = self.end_offset if end_offset is None else min(end_offset, self.end_offset)
        assert start_offset >= self.log_start_offset or start_offset >= end, (
            f"offset {start_offset} is below the log's start"
        )
        found: list[LogBatch] = []
        size = 0
        for batch in self._batches:
            if batch.next_offset <= start_offset or batch.next_offset > end:
                continue
            size += len(batch.data)
            if found and size > max_bytes:
                break
            found.append(batch)
        return found

    def read(self, start_offset: int, max_bytes: int, end_offset: int | None = None) -> bytes:
        return b"".join(batch.data for batch in self.read_batches(start_offset, max_bytes, end_offset))

    def flush(self) -> int:
        end_offset, count = self.end_offset, len(self._batches)
        self._flushed = count
        self.flushes += 1
        return end_offset

    def crash(self) -> None:
        """Lose all that was not flushed."""
        del self._batches[self._flushed :]

    def close(self) -> None:
        self.flush()
