"""When the batches of a metadata log bear out their own leader epochs, which no checksum covers."""

import pytest

from kquorum.raft.adapters.opening import MetadataBatches
from kquorum.wire.log_batch import LogBatch
from kquorum.wire.log_scan import ScannedBatch, scan_batches
from tests.support.raft.log_folders import batches, led


def are_certain(log: list[LogBatch]) -> bool:
    read = MetadataBatches()
    for found in scan_batches(b"".join(each.data for each in log)):
        assert isinstance(found, ScannedBatch)
        read.read(found)
    return read.are_epochs_certain


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ([], True),
        ([*led(0, 4, 1), *led(4, 9, 3)], True),
        # An epoch of one batch, at the end and before it.
        ([*led(0, 4, 1), *led(4, 5, 3)], False),
        ([*led(0, 1, 1), *led(1, 5, 3)], False),
        # An epoch whose leader has written no first batch of its own, at the end and before it.
        ([*led(0, 4, 1), *batches(4, 9, epoch=3)], False),
        ([*led(0, 4, 1), *batches(4, 9, epoch=3), *led(9, 12, 5)], False),
        (batches(0, 4), False),
        # The first batches of the epoch may have been removed with the beginning of the log.
        (batches(10, 14), True),
        ([*batches(10, 14), *batches(14, 20, epoch=2)], False),
    ],
)
def test_every_epoch_needs_its_leaders_first_batch_and_another_one(
    log: list[LogBatch], expected: bool
) -> None:
    assert are_certain(log) == expected
