"""A disk that keeps its word about flushes and about nothing else, and a log on it that behaves as `FileLog` does.

Appends since the last flush are applied in order; a crash keeps a random prefix of them, so that one may be lost or
torn. Cuts and snapshots are durable on return, as the files' are. The election state is written whole or not at all.

The log is kept in segments. To advance its start gives up whole segments and the snapshots below; the next flush
removes them, and a crash before it leaves any part of them. Where the start stood within a segment is kept nowhere: a
log that is opened again begins at 0 if that is there, else at the first snapshot that its segments go on from.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from kquorum.raft.ports import LogSummary
from kquorum.raft.ready import QuorumState
from kquorum.raft.voters import QuorumRecord, VotersAt, quorum_records
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch, parse_batches
from tests.simulation.errors import InvariantBroken
from tests.simulation.snapshot_files import SnapshotFile

FIRST_VOTERS = OffsetAndEpoch(0, 0)


@dataclass
class SimulatedDisk:
    """`batches` is what a reader sees, `durable` what outlives the loss of power; `ends` and `durable_ends` are the
    offsets after each batch of either. `bases` are where segments begin, `unwanted` where those do that the next flush
    removes. `bootstrap` is what the bootstrap checkpoint says of the voters."""

    random_source: Random
    segment_batches: int = 4
    batches: list[LogBatch] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    durable: list[LogBatch] = field(default_factory=list)
    durable_ends: list[int] = field(default_factory=list)
    # None is what a flush need not write any more.
    pending: list[LogBatch | None] = field(default_factory=list)
    bases: list[int] = field(default_factory=lambda: [0])
    unwanted: list[int] = field(default_factory=list)
    log_start_offset: int = 0
    snapshots: dict[OffsetAndEpoch, SnapshotFile] = field(default_factory=dict)
    state: QuorumState | None = None
    bootstrap: tuple[QuorumRecord, ...] = ()
    has_lost_its_state: bool = False
    # Up to where the log was durable before it was damaged; None once it is whole again.
    damaged_until: int | None = None
    voter_sets: list[VotersAt] = field(default_factory=list)

    @property
    def log_end_offset(self) -> int:
        return self.ends[-1] if self.ends else self.bases[-1]

    def append(self, batches: Sequence[LogBatch]) -> None:
        for batch in batches:
            assert batch.base_offset == self.log_end_offset
            if len(self.ends) - bisect_right(self.ends, self.bases[-1]) >= self.segment_batches:
                self.bases.append(batch.base_offset)
            self.batches.append(batch)
            self.ends.append(batch.last_offset + 1)
            self.pending.append(batch)
            if batch.is_control:
                self.voter_sets.extend(_voter_sets([batch]))

    def truncate_to(self, end_offset: int) -> None:
        assert self.log_start_offset <= end_offset <= self.log_end_offset, end_offset
        _truncate(self.batches, self.ends, end_offset)
        _truncate(self.durable, self.durable_ends, end_offset)
        while len(self.bases) > 1 and self.bases[-1] >= end_offset:
            self.bases.pop()
        while self.voter_sets and self.voter_sets[-1].offset >= end_offset:
            self.voter_sets.pop()
        self.pending = [
            None if batch is None or batch.next_offset > end_offset else batch for batch in self.pending
        ]
        self.pending.append(None)

    def begin_flush(self) -> int:
        """How many of the pending operations the flush that begins now covers."""
        return len(self.pending)

    def end_flush(self, operations: int) -> None:
        self._harden(self.pending[:operations])
        del self.pending[:operations]
        if self.unwanted:
            self._remove_segments(len(self.unwanted))
        if len(self.snapshots) > 1:
            self._remove_snapshots()

    def flush_now(self) -> None:
        """All that is pending, beside a flush that may be under way."""
        self._harden(self.pending)
        self.pending = [None] * len(self.pending)

    def _harden(self, operations: Iterable[LogBatch | None]) -> None:
        for batch in operations:
            if batch is not None:
                self.durable.append(batch)
                self.durable_ends.append(batch.last_offset + 1)

    def _remove_segments(self, count: int) -> None:
        """Those that were given up, the oldest first."""
        del self.unwanted[:count]
        first = bisect_right(self.durable_ends, (self.unwanted or self.bases)[0])
        del self.durable[:first], self.durable_ends[:first]

    def _remove_snapshots(self) -> None:
        for snapshot_id in [each for each in self.snapshots if each.offset < self.log_start_offset]:
            del self.snapshots[snapshot_id]

    # Snapshots

    def put_snapshot(self, snapshot: SnapshotFile) -> None:
        self.snapshots[snapshot.snapshot_id] = snapshot

    def newest_snapshot(self) -> SnapshotFile | None:
        """Epochs count before offsets."""
        newest = max(self.snapshots, key=lambda each: (each.epoch, each.offset), default=None)
        return None if newest is None else self.snapshots[newest]

    def snapshot_at(self, offset: int) -> SnapshotFile | None:
        return next((file for each, file in self.snapshots.items() if each.offset == offset), None)

    def advance_log_start(self, offset: int) -> None:
        assert self.log_start_offset < offset <= self.log_end_offset, offset
        self.log_start_offset = offset
        # A segment is given up if it is durable and another begins at or below the new start.
        durable_end = self.durable_ends[-1] if self.durable_ends else 0
        count = bisect_right(self.bases, min(offset, durable_end)) - 1
        if count > 0:
            self.unwanted += self.bases[:count]
            del self.bases[:count]
            first = bisect_right(self.ends, self.bases[0])
            del self.batches[:first], self.ends[:first]
        self.pending.append(None)

    def drop_log_for(self, snapshot: SnapshotFile) -> None:
        """Begin again where a snapshot ends that is there already."""
        assert snapshot.snapshot_id in self.snapshots
        for emptied in (
            self.batches,
            self.ends,
            self.durable,
            self.durable_ends,
            self.pending,
            self.unwanted,
        ):
            emptied.clear()
        self.bases = [snapshot.snapshot_id.offset]
        self.log_start_offset = snapshot.snapshot_id.offset
        self.voter_sets = [record for record in snapshot.quorum_records if isinstance(record, VotersAt)]
        self._remove_snapshots()

    def drop_half_the_log(self) -> None:
        """The last segments go first; the power is lost before all are gone."""
        first_gone = self.bases[int(self.random_source.random() * len(self.bases))]
        _truncate(self.durable, self.durable_ends, first_gone)
        self.pending.clear()

    # Crashes

    def crash(self) -> None:
        """Power is lost, or (a quarter of the time) only the process: then what it wrote is still there."""
        roll = self.random_source.random()
        kept = (
            len(self.pending) if roll < 0.25 else int(self.random_source.random() * (len(self.pending) + 1))
        )
        self._harden(self.pending[:kept])
        if kept < len(self.pending) and roll > 0.7:
            self._tear(self.pending[kept])
        if self.unwanted:
            self._remove_segments(int(self.random_source.random() * (len(self.unwanted) + 1)))
        self.reopen()

    def _tear(self, batch: LogBatch | None) -> None:
        """The first part of a batch reached the disk; recovery reads the file and keeps what is whole."""
        if batch is not None:
            torn = batch.data[: int(self.random_source.random() * len(batch.data))]
            for whole in parse_batches(torn):
                self._harden([whole])

    def reopen(self) -> None:
        """What `open_log` makes of the files."""
        self.pending.clear()
        self.batches = list(self.durable)
        self.ends = list(self.durable_ends)
        self.bases, self.unwanted = self.unwanted + self.bases, []
        while len(self.bases) > 1 and self.bases[-1] >= (self.ends[-1] if self.ends else 0):
            self.bases.pop()
        if self.damaged_until is not None and self.log_end_offset >= self.damaged_until:
            self.damaged_until = None
        newest = self.newest_snapshot()
        if newest is not None and self._is_ahead(newest.snapshot_id):
            self.drop_log_for(newest)
            self.damaged_until = None
            return
        start = self._snapshot_at_start()
        self.log_start_offset = 0 if start is None else start.snapshot_id.offset
        before = [] if start is None else list(start.quorum_records)
        first = bisect_right(self.ends, self.log_start_offset)
        self.voter_sets = [record for record in before if isinstance(record, VotersAt)]
        self.voter_sets += _voter_sets(self.batches[first:])

    def _is_ahead(self, newest: OffsetAndEpoch) -> bool:
        """Whether a snapshot stands for more than the log, and for all that was damaged in it."""
        if self.damaged_until is not None and newest.offset < self.damaged_until:
            return False
        if not self.batches:
            return newest.offset > self.log_end_offset
        last = self.durable_batch_before(newest.offset)
        if last is not None and last.base_offset < newest.offset:
            # What a snapshot stands for is committed; another record in its place is not.
            return last.leader_epoch != newest.epoch
        return newest.offset > self.log_end_offset

    def _snapshot_at_start(self) -> SnapshotFile | None:
        """None if the log begins at 0."""
        base_offset, end_offset = self.bases[0], self.log_end_offset
        if base_offset == 0:
            return None
        usable = [each for each in self.snapshots if base_offset <= each.offset <= end_offset]
        if usable:
            return self.snapshots[min(usable, key=lambda each: each.offset)]
        if self.damaged_until is None:
            raise InvariantBroken(
                f"a log begins at offset {base_offset}, and no snapshot ends there or later in it"
            )
        return self._begin_without_start()

    def _begin_without_start(self) -> SnapshotFile | None:
        """What nothing leads up to is of no use: the log is as good as lost from the newest snapshot on."""
        newest = self.newest_snapshot()
        start_offset = 0 if newest is None else newest.snapshot_id.offset
        self.damaged_until = max(start_offset + 1, self.damaged_until or 0, self.log_end_offset)
        for emptied in (self.batches, self.ends, self.durable, self.durable_ends):
            emptied.clear()
        self.bases = [start_offset]
        return newest

    # Damage: what was durable is not there any more, and that is noticed when the disk is opened again

    def damage_log(self, amount: int) -> bool:
        """The log is sound up to some batch only; answers whether there was anything to be damaged."""
        self.reopen()
        if not self.durable or self.damaged_until is not None:
            return False
        self.damaged_until = self.durable_ends[-1]
        _keep(self.durable, self.durable_ends, max(0, len(self.durable) - amount))
        self.reopen()
        return True

    def damage_snapshot(self) -> bool:
        """The oldest one is lost, which may be the one at the start of the log."""
        self.reopen()
        if not self.snapshots or self.damaged_until is not None:
            return False
        damaged = min(self.snapshots, key=lambda each: each.offset)
        del self.snapshots[damaged]
        base_offset, end_offset = self.bases[0], self.log_end_offset
        if base_offset > 0 and not any(base_offset <= each.offset <= end_offset for each in self.snapshots):
            self.damaged_until = end_offset
            self._begin_without_start()
        self.reopen()
        return True

    # Reading

    def read(self, start_offset: int, max_bytes: int) -> bytes:
        if start_offset < min(self.log_start_offset, self.log_end_offset):
            raise InvariantBroken(
                f"offset {start_offset} is read, but the log begins at {self.log_start_offset}"
            )
        position = bisect_right(self.ends, start_offset)
        if position >= len(self.batches):
            return b""
        data = self.batches[position].data
        size = len(data)
        chunks = [data]
        for batch in self.batches[position + 1 :]:
            size += len(batch.data)
            if size > max_bytes:
                break
            chunks.append(batch.data)
        return b"".join(chunks)

    def between(self, start_offset: int, end_offset: int) -> list[LogBatch]:
        """The whole batches from `start_offset` up to `end_offset`."""
        first = bisect_right(self.ends, start_offset)
        return self.batches[first : bisect_right(self.ends, end_offset)]

    def durable_batch_before(self, end_offset: int) -> LogBatch | None:
        """The durable batch that holds the record just below `end_offset`."""
        position = bisect_right(self.durable_ends, end_offset - 1)
        return self.durable[position] if position < len(self.durable) else None

    def summary(self) -> LogSummary:
        epochs: list[tuple[int, int]] = []
        first = bisect_right(self.ends, self.log_start_offset)
        for batch in self.batches[first:]:
            if not epochs or batch.leader_epoch > epochs[-1][0]:
                epochs.append((batch.leader_epoch, max(batch.base_offset, self.log_start_offset)))
        logged = [
            record for batch in self.batches[first:] if batch.is_control for record in quorum_records(batch)
        ]
        at_start = self.snapshot_at(self.log_start_offset)
        before = self.bootstrap if at_start is None else at_start.quorum_records
        snapshots = [each for each in self.snapshots if each.offset >= self.log_start_offset]
        if self.bootstrap and self.log_start_offset == 0:
            snapshots.append(FIRST_VOTERS)
        snapshots.sort(key=lambda each: (each.epoch, each.offset))
        return LogSummary(
            self.log_start_offset, self.log_end_offset, tuple(epochs), tuple(snapshots), (*before, *logged)
        )


def _voter_sets(batches: Iterable[LogBatch]) -> list[VotersAt]:
    controls = (batch for batch in batches if batch.is_control)
    return [record for batch in controls for record in quorum_records(batch) if isinstance(record, VotersAt)]


def _keep(batches: list[LogBatch], ends: list[int], count: int) -> None:
    del batches[count:]
    del ends[count:]


def _truncate(batches: list[LogBatch], ends: list[int], end_offset: int) -> None:
    _keep(batches, ends, bisect_right(ends, end_offset))
