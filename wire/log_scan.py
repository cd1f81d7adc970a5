"""Walks over the batches of a log segment or snapshot and says exactly what is damaged, without giving up early.

Shared by the recovery of a log after a crash, by `log dump` and by the Spark source.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from kquorum.wire.batch_search import next_batch_position, sound_header
from kquorum.wire.drafts import draft_of
from kquorum.wire.errors import BufferUnderflow, CorruptBatch
from kquorum.wire.primitives import Buffer
from kquorum.wire.record_batch import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    BatchHeader,
    check_batch,
    read_batch_header,
)


@dataclass(frozen=True, slots=True)
class ScannedBatch:
    """A whole batch with a valid checksum; `data` is a view of its bytes, from its header on."""

    position: int
    header: BatchHeader
    data: memoryview


# A log has as many of them as batches, and most batches have one record.
_Draft: Final = draft_of(ScannedBatch)


@dataclass(frozen=True, slots=True)
class Damage:
    """Something wrong at byte `position`; `offset` is the offset expected there, where it is known.

    "torn": the bytes end before the batch does, or only zeros are left, as after a crash in the middle of a write.
    "corrupt": the bytes are there, but are not what was written.
    """

    position: int
    offset: int | None
    reason: str
    kind: Literal["torn", "corrupt"]


def scan_batches(
    buffer: Buffer,
    position: int = 0,
    *,
    base_offset: int | None = None,
    resync: range | None = None,
    has_gaps: bool = False,
    has_producers: bool = False,
) -> Iterator[ScannedBatch | Damage]:
    """Yield every sound batch from `position` on, and a Damage for whatever is wrong.

    `base_offset` is the offset that the first batch ought to have. After a batch with a wrong checksum and a
    sensible length the scan goes on behind it; with an unusable header it stops, as nothing says where the
    next batch begins. Base offset and leader epoch are outside the checksum: where they do not continue the
    batch before, a Damage comes first and the batch, sound in itself, after it.

    With `resync`, base offsets that a batch of this file can have, the scan goes on at the next sound batch with one
    of them, wherever it is: each stretch of bytes that is no batch is one Damage. The length of a batch with a wrong
    checksum is believed only if a sound batch follows that continues it.

    `has_gaps`: the log was compacted, so a batch may begin above the offset that is due. `has_producers`: the batches
    that are looked for with `resync` may carry a producer id.
    """
    view = memoryview(buffer)
    expected, epoch = base_offset, -1
    while position < len(view):
        try:
            header = check_batch(view, position)
        except (BufferUnderflow, CorruptBatch) as error:
            damage, end = _broken(view, position, expected, error)
            if resync is not None:
                damage, end = _resynced(view, damage, end, resync, has_gaps, has_producers)
            yield damage
            if end is None:
                return
            position, expected = end, None
            continue
        base_offset = header.base_offset
        following: int | None = base_offset + header.last_offset_delta + 1
        if base_offset != expected or base_offset < 0 or header.partition_leader_epoch < epoch:
            reason = _discontinuity(header, expected, epoch, has_gaps)
            if reason is not None:
                # Either this offset is wrong or batches are missing before it: let the next batch say which.
                following = None
                yield Damage(position, expected, reason, "corrupt")
        end = position + LOG_OVERHEAD_BYTES + header.batch_length
        batch = _Draft()
        batch.position = position
        batch.header = header
        batch.data = view[position:end]
        batch.__class__ = ScannedBatch
        yield batch
        position, expected, epoch = end, following, header.partition_leader_epoch


def _discontinuity(header: BatchHeader, expected: int | None, epoch: int, has_gaps: bool) -> str | None:
    if not _continues(header, expected, has_gaps):
        return f"batch has base offset {header.base_offset} instead of {expected}"
    if header.partition_leader_epoch < epoch:
        return f"batch has leader epoch {header.partition_leader_epoch} after epoch {epoch}"
    return None


def _continues(header: BatchHeader, expected: int | None, has_gaps: bool) -> bool:
    if header.base_offset < 0 or expected is None:
        return header.base_offset >= 0
    return header.base_offset >= expected if has_gaps else header.base_offset == expected


def _broken(
    view: memoryview, position: int, expected: int | None, error: BufferUnderflow | CorruptBatch
) -> tuple[Damage, int | None]:
    """What is wrong with the batch at `position`, and where the next one begins, if its header can be believed."""
    is_torn = isinstance(error, BufferUnderflow)
    end = None if is_torn else _end_of_corrupt(view, position)
    if end is None and _is_zero(view, position):
        return Damage(position, expected, f"only {len(view) - position} zero bytes are left", "torn"), None
    return Damage(position, expected, error.reason, "torn" if is_torn else "corrupt"), end


def _resynced(
    view: memoryview,
    damage: Damage,
    end: int | None,
    base_offsets: range,
    has_gaps: bool,
    has_producers: bool,
) -> tuple[Damage, int | None]:
    """The damage up to the next sound batch, and where that begins."""
    if end is not None and _is_continued(view, damage.position, end, has_gaps):
        return damage, end
    if _is_zero(view, damage.position):
        return damage, None
    found = next_batch_position(view, damage.position + 1, base_offsets, has_producers=has_producers)
    if found is None:
        return damage, None
    skipped, offset = found - damage.position, read_batch_header(view, found).base_offset
    # What a log that grows has behind this place must not change what is said of it.
    what = damage.reason if end is None and damage.kind == "corrupt" else "no batch with a right checksum"
    reason = f"{what}; {skipped} bytes skipped up to the next sound batch, which begins at offset {offset}"
    return replace(damage, kind="corrupt", reason=reason), found


def _is_continued(view: memoryview, position: int, end: int, has_gaps: bool) -> bool:
    """Whether the sound batch at `end` has the offset that the broken one at `position` says is the next."""
    following = sound_header(view, end)
    if following is None:
        return False
    return _continues(following, read_batch_header(view, position).last_offset + 1, has_gaps)


def _end_of_corrupt(view: memoryview, position: int) -> int | None:
    """Where the next batch begins, if the header of the corrupt one can be believed."""
    try:
        end = position + read_batch_header(view, position).size_in_bytes
    except CorruptBatch:
        return None
    return end


def _is_zero(view: memoryview, position: int) -> bool:
    # The header first, so that a large corrupt file is not copied for nothing.
    head = bytes(view[position : position + HEADER_BYTES])
    return not any(head) and not any(bytes(view[position:]).strip(b"\x00"))
