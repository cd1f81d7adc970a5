"""Walks over all batches of a damaged file, also those behind a header that cannot be believed.

`wire.log_scan` stops, if not told otherwise, where no length says where the next batch begins, which is right for a
node that opens its log. Who examines a file wants to know what lies behind. Whether offsets and epochs continue from
batch to batch is not looked at here.
"""

from collections.abc import Iterator
from dataclasses import replace

from kquorum.wire.batch_search import next_batch_position
from kquorum.wire.log_scan import Damage, ScannedBatch, scan_batches


def walk_batches(view: memoryview, position: int = 0) -> Iterator[ScannedBatch | Damage]:
    """Every sound batch, and one Damage for each stretch of bytes between them that is none.

    A Damage is "torn" only where no sound batch follows it.
    """
    while True:
        damage = None
        for found, is_broken in _with_breaks(view, position):
            if is_broken:
                damage = found
                break
            yield found
        if not isinstance(damage, Damage):
            return
        follower = next_batch_position(view, damage.position + 1)
        if follower is None:
            yield damage
            return
        skipped = follower - damage.position
        yield replace(
            damage, kind="corrupt", reason=f"{damage.reason}; {skipped} bytes up to the next sound batch"
        )
        position = follower


def _with_breaks(view: memoryview, position: int) -> Iterator[tuple[ScannedBatch | Damage, bool]]:
    """The scan, each item with whether bytes are broken there: a Damage that its own sound batch follows only says
    that offsets or epochs do not continue."""
    held: Damage | None = None
    for found in scan_batches(view, position):
        if isinstance(found, ScannedBatch) and (held is None or held.position == found.position):
            held = None
            yield found, False
        elif held is not None:
            break
        else:
            assert isinstance(found, Damage)
            held = found
    if held is not None:
        yield held, True
