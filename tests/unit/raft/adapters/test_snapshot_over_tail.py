"""A fetched snapshot had its name when the power went, and the log had not been dropped for it yet."""

from pathlib import Path

import pytest

from kquorum.raft.adapters.file_log import FileLog
from kquorum.wire.log_batch import OffsetAndEpoch
from tests.support.raft.log_folders import batches, read_all, write_log, write_snapshot


@pytest.mark.parametrize("tail", [1, 2, 5])
def test_an_uncommitted_tail_of_a_later_epoch_goes(tmp_path: Path, tail: int) -> None:
    """Figure 8 of the Raft paper: the tail is of the epoch of a leader that died with it; the snapshot of an older one,
    committed by a newer leader."""
    write_log(tmp_path, [*batches(0, 3), *batches(3, 3 + tail, epoch=2)], durable=3)
    write_snapshot(tmp_path, 5, epoch=1)
    for _ in range(2):
        log = FileLog(tmp_path)
        assert (log.log_start_offset, log.end_offset, log.damage) == (5, 5, None)
        assert log.snapshots() == (OffsetAndEpoch(5, 1),)
        log.close()


def test_a_log_with_the_very_record_that_the_snapshot_ends_with_stays(tmp_path: Path) -> None:
    write_log(tmp_path, [*batches(0, 5), *batches(5, 8, epoch=2)])
    write_snapshot(tmp_path, 5, epoch=1)
    log = FileLog(tmp_path)
    assert (log.log_start_offset, log.end_offset) == (0, 8)
    assert len(read_all(log)) == 8
    log.close()
