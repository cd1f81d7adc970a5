"""Walks over all batches of a damaged file, also those behind a header that cannot be believed.

`wire.log_scan` stops where no length says where the next batch begins, which is right for a node that opens its log.
Who examines a file wants to know what lies behind: a batch is found again by the fields that every batch of KRaft has
alike. Whether offsets and epochs continue from batch to batch is not looked at here.
"""

from collections.abc import Iterator
from dataclasses import replace

from wire.errors import DecodeError
from wire.log_scan import Damage, ScannedBatch, scan_batches
from wire.record_batch import MAGIC, check_batch

# Producer id, producer epoch and base sequence of every KRaft batch are -1; where they and the magic stand.
_NO_PRODUCER = b"\xff" * 14
_NO_PRODUCER_POSITION = 43
_MAGIC_POSITION = 16
_CHUNK_BYTES = 1 << 20


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


def next_batch_position(view: memoryview, position: int) -> int | None:
    """Where the first sound batch at or behind `position` begins; None when there is none."""
    overlap = len(_NO_PRODUCER) - 1
    start = position + _NO_PRODUCER_POSITION
    while start < len(view):
        chunk = bytes(view[start : start + _CHUNK_BYTES + overlap])
        found = chunk.find(_NO_PRODUCER)
        while 0 <= found < _CHUNK_BYTES:
            candidate = start + found - _NO_PRODUCER_POSITION
            if view[candidate + _MAGIC_POSITION] == MAGIC and _is_sound(view, candidate):
                return candidate
            found = chunk.find(_NO_PRODUCER, found + 1)
        start += _CHUNK_BYTES
    return None


def _is_sound(view: memoryview, position: int) -> bool:
    try:
        check_batch(view, position)
    except DecodeError:
        return False
    return True
