"""The newest batches in memory, so that readers near the end of the log are served without reading the disk."""

from bisect import bisect_right

from kquorum.wire.log_batch import LogBatch


class BatchCache:
    """A contiguous run of batches up to the log's end, at most `capacity_bytes` of them (always the last one).

    A list with a moving head: a deque would drop the oldest as cheaply, but cannot be searched in the middle.
    """

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity_bytes = capacity_bytes
        self._batches: list[LogBatch] = []
        self._next_offsets: list[int] = []
        self._head = 0
        self._bytes = 0
        self._evicted_bytes = 0

    @property
    def first_offset(self) -> int | None:
        """The oldest offset held; None when nothing is."""
        return self._batches[self._head].base_offset if self._head < len(self._batches) else None

    def append(self, batch: LogBatch) -> None:
        """Add the batch which follows the last one held."""
        self._batches.append(batch)
        self._next_offsets.append(batch.next_offset)
        self._bytes += len(batch.data)
        while self._bytes > self._capacity_bytes and self._head < len(self._batches) - 1:
            self._bytes -= len(self._batches[self._head].data)
            self._evicted_bytes += len(self._batches[self._head].data)
            self._head += 1
        # What was evicted still takes its memory until the head is dropped; few or small batches may wait.
        is_long = self._head > 1024 and self._head * 2 > len(self._batches)
        if is_long or self._evicted_bytes > self._capacity_bytes:
            self._drop_head()

    def _drop_head(self) -> None:
        del self._batches[: self._head]
        del self._next_offsets[: self._head]
        self._head = 0
        self._evicted_bytes = 0

    def truncate_to(self, end_offset: int) -> None:
        keep = bisect_right(self._next_offsets, end_offset)
        self._bytes -= sum(len(batch.data) for batch in self._batches[max(keep, self._head) :])
        del self._batches[keep:]
        del self._next_offsets[keep:]
        self._head = min(self._head, len(self._batches))

    def read(self, start_offset: int, max_bytes: int, end_offset: int) -> list[LogBatch] | None:
        """Whole batches from the one that holds `start_offset`, below `end_offset`: at least one, and as many as fit
        `max_bytes`. None when `start_offset` is older than what is held."""
        first_offset = self.first_offset
        if first_offset is None or start_offset < first_offset:
            return None
        start = bisect_right(self._next_offsets, start_offset, lo=self._head)
        end = bisect_right(self._next_offsets, end_offset, lo=start)
        return self._batches[start:end] if end - start <= 1 else self._until(start, end, max_bytes)

    def _until(self, start: int, end: int, max_bytes: int) -> list[LogBatch]:
        size = len(self._batches[start].data)
        stop = start + 1
        while stop < end and (size := size + len(self._batches[stop].data)) <= max_bytes:
            stop += 1
        return self._batches[start:stop]
