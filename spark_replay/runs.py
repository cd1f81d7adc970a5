"""What `decode.scan` finds in a log file, but sound batches in runs."""

from collections.abc import Iterator
from itertools import islice

from spark_replay.decode import Origin, scan
from spark_replay.rows import DamageRow
from wire.batch_runs import BatchRun, read_run
from wire.log_scan import ScannedBatch


def scan_runs(
    view: memoryview, origin: Origin, start: int, end: int
) -> Iterator[BatchRun | ScannedBatch | DamageRow]:
    """The batches which begin in [start, end), and what is damaged between them, as `scan` finds them.

    From the first damage on they come one by one: `scan` goes on from the last sound batch, which it finds again.
    """
    expected_offset, epoch, position = None if start else origin.first_offset, -1, start
    last_position: int | None = None
    while run := read_run(view, position, end, expected_offset=expected_offset, epoch=epoch):
        yield run
        expected_offset, epoch, position = run.next_offset, run.last_epoch, run.end
        last_position = run.last_position
    if last_position is None:
        yield from scan(view, origin, start, end)
    else:
        yield from islice(scan(view, origin, last_position, end), 1, None)
