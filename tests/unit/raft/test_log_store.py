"""What of a log outlives a crash, after MockLogTest; the rest: tests/contracts."""

import pytest

from kquorum.raft.log_index import LogIndex
from kquorum.wire.log_batch import parse_batches
from tests.support.memory_log import MemoryLog
from tests.support.raft.context import batch


def test_what_was_not_flushed_is_lost_by_a_crash() -> None:
    """testUnflushedRecordsLostAfterReopen"""
    log = MemoryLog()
    log.append([batch(0, 1), batch(1, 1)])
    log.flush()
    log.append([batch(2, 2), batch(3, 2)])
    log.crash()
    assert [kept.base_offset for kept in parse_batches(log.read(0, 10_000))] == [0, 1]
    index = LogIndex(log.summary())
    assert (index.log_end_offset, index.flushed_offset, index.last_epoch) == (2, 2, 1)


@pytest.mark.parametrize("end_offset", [0, 1, 2])
def test_a_cut_below_what_was_flushed_leaves_the_rest_safe(end_offset: int) -> None:
    log = MemoryLog()
    log.append([batch(0, 1), batch(1, 1)])
    log.flush()
    log.truncate_to(end_offset)
    log.append([batch(end_offset, 3)])
    log.crash()
    assert log.summary().log_end_offset == end_offset
