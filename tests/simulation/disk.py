"""A disk that keeps its word about flushes and about nothing else.

Operations since the last flush are applied in order; a crash keeps a random prefix of them, so an append may be
lost or torn, and a truncation may be undone. The election state is written whole or not at all.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from raft.batches import LogBatch, parse_batches
from raft.ports import LogSummary
from raft.quorum_records import QuorumRecord, VotersAt, quorum_records
from raft.ready import QuorumState


@dataclass
class SimulatedDisk:
    """`batches` is what a reader sees, `durable` what outlives the loss of power; `ends` and `durable_ends` are the
    offsets after each batch of either. `bootstrap` is what the bootstrap checkpoint says of the voters."""

    dice: Random
    batches: list[LogBatch] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    durable: list[LogBatch] = field(default_factory=list)
    durable_ends: list[int] = field(default_factory=list)
    pending: list[int | LogBatch] = field(default_factory=list)
    state: QuorumState | None = None
    bootstrap: tuple[QuorumRecord, ...] = ()
    has_lost_its_state: bool = False
    voter_sets: list[VotersAt] = field(default_factory=list)

    @property
    def log_end_offset(self) -> int:
        return self.ends[-1] if self.ends else 0

    def append(self, batches: Sequence[LogBatch]) -> None:
        for batch in batches:
            assert batch.base_offset == self.log_end_offset
            self.batches.append(batch)
            self.ends.append(batch.last_offset + 1)
            self.pending.append(batch)
            if batch.is_control:
                self.voter_sets.extend(_voter_sets(batch))

    def truncate_to(self, end_offset: int) -> None:
        _truncate(self.batches, self.ends, end_offset)
        while self.voter_sets and self.voter_sets[-1].offset >= end_offset:
            self.voter_sets.pop()
        self.pending.append(end_offset)

    def begin_flush(self) -> int:
        """How many of the pending operations the flush that begins now covers."""
        return len(self.pending)

    def end_flush(self, operations: int) -> None:
        self._harden(self.pending[:operations])
        del self.pending[:operations]

    def crash(self) -> None:
        """Power is lost, or (a quarter of the time) only the process: then what it wrote is still there."""
        roll = self.dice.random()
        kept = len(self.pending) if roll < 0.25 else int(self.dice.random() * (len(self.pending) + 1))
        self._harden(self.pending[:kept])
        if kept < len(self.pending) and roll > 0.7:
            self._tear(self.pending[kept])
        self.pending.clear()
        self.batches = list(self.durable)
        self.ends = list(self.durable_ends)
        self.voter_sets = [
            found for batch in self.batches if batch.is_control for found in _voter_sets(batch)
        ]

    def _tear(self, operation: int | LogBatch) -> None:
        """The first part of a batch reached the disk; recovery reads the file and keeps what is whole."""
        if isinstance(operation, LogBatch):
            torn = operation.data[: int(self.dice.random() * len(operation.data))]
            for batch in parse_batches(torn):
                self._harden([batch])

    def _harden(self, operations: Sequence[int | LogBatch]) -> None:
        for operation in operations:
            if isinstance(operation, LogBatch):
                self.durable.append(operation)
                self.durable_ends.append(operation.last_offset + 1)
            else:
                _truncate(self.durable, self.durable_ends, operation)

    # Reading

    def read(self, start_offset: int, max_bytes: int) -> bytes:
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
        for batch in self.batches:
            if not epochs or batch.leader_epoch > epochs[-1][0]:
                epochs.append((batch.leader_epoch, batch.base_offset))
        logged = [record for batch in self.batches if batch.is_control for record in quorum_records(batch)]
        records = (*self.bootstrap, *logged)
        return LogSummary(0, self.log_end_offset, tuple(epochs), quorum_records=records)


def _voter_sets(batch: LogBatch) -> list[VotersAt]:
    return [record for record in quorum_records(batch) if isinstance(record, VotersAt)]


def _truncate(batches: list[LogBatch], ends: list[int], end_offset: int) -> None:
    while ends and ends[-1] > end_offset:
        batches.pop()
        ends.pop()
