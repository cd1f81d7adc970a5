"""The log store that forgets: a fake for tests and simulation, held to the same contract as the files."""

from collections.abc import Sequence

from raft.batches import LogBatch
from raft.ports import LogSummary
from raft.quorum_records import QuorumRecord, quorum_records


class MemoryLog:
    """A `LogStore` in memory; satisfies raft.ports.LogStore. What was not flushed is lost by `crash`."""

    def __init__(self, first_voters: Sequence[QuorumRecord] = ()) -> None:
        """`first_voters` stand for the bootstrap checkpoint: records at offset -1."""
        self._first_voters = tuple(first_voters)
        self._batches: list[LogBatch] = []
        self._flushed = 0
        self.flushes = 0

    @property
    def end_offset(self) -> int:
        return self._batches[-1].next_offset if self._batches else 0

    def summary(self) -> LogSummary:
        epochs: dict[int, int] = {}
        for batch in self._batches:
            epochs.setdefault(batch.leader_epoch, batch.base_offset)
        return LogSummary(0, self.end_offset, tuple(epochs.items()), quorum_records=self.quorum_records())

    def quorum_records(self) -> tuple[QuorumRecord, ...]:
        """What the bootstrap checkpoint (at offset -1) and the log say of kraft.version and voters, ascending."""
        found = (record for batch in self._batches for record in quorum_records(batch))
        return (*self._first_voters, *found)

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
        assert (keep[-1].next_offset if keep else 0) == end_offset, f"offset {end_offset} is inside a batch"
        self._batches = keep
        self._flushed = min(self._flushed, len(keep))

    def read_batches(
        self, start_offset: int, max_bytes: int, end_offset: int | None = None
    ) -> Sequence[LogBatch]:
        end = self.end_offset if end_offset is None else min(end_offset, self.end_offset)
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
