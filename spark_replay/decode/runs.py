"""What `decode.scan` finds in a log file, but sound batches in runs."""

from collections.abc import Iterator
from itertools import islice

from kquorum.spark_replay.decode import Origin, scan
from kquorum.spark_replay.rows import DamageRow
from kquorum.wire.batch_runs import BatchRun, read_run
from kquorum.wire.log_scan import ScannedBatch

_WORTH_A_RUN = 1000


def scan_runs(
    view: memoryview, origin: Origin, start: int, end: int
) -> Iterator[BatchRun | ScannedBatch | DamageRow]:
    """The batches which begin in [start, end), and what is damaged between them, as `scan` finds them.

    From damage on they come one by one, until so many without damage have come that runs are worth while again. `scan`
    begins with the last sound batch, which it finds once more.
    """
    expected_offset, epoch, position = None if start else origin.first_offset, -1, start
    last_position: int | None = None
    while True:
        while run := read_run(view, position, end, expected_offset=expected_offset, epoch=epoch):
            yield run
            expected_offset, epoch, position = run.next_offset, run.last_epoch, run.end
            last_position = run.last_position
        one_by_one = scan(view, origin, start if last_position is None else last_position, end)
        sound = 0
        for item in islice(one_by_one, 0 if last_position is None else 1, None):
            yield item
            sound = 0 if isinstance(item, DamageRow) else sound + 1
            if sound == _WORTH_A_RUN:
                break
        else:
            return
        assert isinstance(item, ScannedBatch)
        header, last_position = item.header, item.position
        expected_offset, epoch = header.last_offset + 1, header.partition_leader_epoch
        position = item.position + header.size_in_bytes
