"""A disk that keeps its word about flushes and about nothing else.

Operations since the last flush are applied in order; a crash keeps a random prefix of them, so an append may be
lost, and a truncation may be undone. The election state is written whole or not at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from raft.batches import LogBatch
from raft.ports import LogSummary
from raft.ready import QuorumState


@dataclass
class SimulatedDisk:
    dice: Random
    batches: list[LogBatch] = field(default_factory=list)
    durable: list[LogBatch] = field(default_factory=list)
    pending: list[int | LogBatch] = field(default_factory=list)
    state: QuorumState | None = None

    @property
    def log_end_offset(self) -> int:
        return self.batches[-1].next_offset if self.batches else 0

    def append(self, batches: Sequence[LogBatch]) -> None:
        for batch in batches:
            assert batch.base_offset == self.log_end_offset
            self.batches.append(batch)
            self.pending.append(batch)

    def truncate_to(self, end_offset: int) -> None:
        _apply(self.batches, end_offset)
        self.pending.append(end_offset)

    def begin_flush(self) -> list[int | LogBatch]:
        return list(self.pending)

    def end_flush(self, flushed: list[int | LogBatch]) -> None:
        for operation in flushed:
            _apply(self.durable, operation)
        del self.pending[: len(flushed)]

    def crash(self) -> None:
        kept = self.dice.randint(0, len(self.pending))
        for operation in self.pending[:kept]:
            _apply(self.durable, operation)
        self.pending.clear()
        self.batches = list(self.durable)

    def read(self, start_offset: int, max_bytes: int) -> bytes:
        chunks: list[bytes] = []
        size = 0
        for batch in self._from(start_offset):
            if chunks and size + len(batch.data) > max_bytes:
                break
            chunks.append(batch.data)
            size += len(batch.data)
        return b"".join(chunks)

    def between(self, start_offset: int, end_offset: int) -> list[LogBatch]:
        return [batch for batch in self._from(start_offset) if batch.next_offset <= end_offset]

    def _from(self, start_offset: int) -> list[LogBatch]:
        position = len(self.batches)
        while position > 0 and self.batches[position - 1].last_offset >= start_offset:
            position -= 1
        return self.batches[position:]

    def summary(self) -> LogSummary:
        epochs: list[tuple[int, int]] = []
        for batch in self.batches:
            if not epochs or batch.leader_epoch > epochs[-1][0]:
                epochs.append((batch.leader_epoch, batch.base_offset))
        return LogSummary(0, self.log_end_offset, tuple(epochs))


def _apply(batches: list[LogBatch], operation: int | LogBatch) -> None:
    if isinstance(operation, LogBatch):
        batches.append(operation)
        return
    while batches and batches[-1].last_offset >= operation:
        batches.pop()
