"""A high watermark inside a batch waits for the rest of it."""

from collections.abc import Sequence

from raft.adapters.commit_feed import CommitFeed
from raft.adapters.memory_log import MemoryLog
from raft.batches import LogBatch, build_batch


class Heard:
    def __init__(self) -> None:
        self.offsets: list[int] = []

    def handle_commit(self, now_ms: int, batches: Sequence[LogBatch]) -> None:
        self.offsets += [batch.base_offset for batch in batches]

    def handle_leader_change(self, now_ms: int, leader_id: int, leader_epoch: int) -> None: ...

    def handle_time(self, now_ms: int) -> None: ...

    def next_deadline_ms(self) -> int | None:
        return None


def test_a_batch_is_handed_over_when_all_of_it_is_committed() -> None:
    log, heard = MemoryLog(), Heard()
    log.append([build_batch(0, 1, 1, [(None, b"a")]), build_batch(1, 1, 1, [(None, b"b")] * 4)])
    feed = CommitFeed(log, heard, node_id=1, applied_offset=0)
    feed.advance(3)
    feed.deliver(0)
    feed.deliver(0)
    assert (heard.offsets, feed.has_more) == ([0], False)
    feed.advance(5)
    feed.deliver(0)
    assert heard.offsets == [0, 1]
