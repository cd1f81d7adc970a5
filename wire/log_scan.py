"""Walks over the batches of a log segment or snapshot and says exactly what is damaged, without giving up early.

Shared by the recovery of a log after a crash, by `log dump` and by the Spark source.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from wire.drafts import draft_of
from wire.errors import BufferUnderflow, CorruptBatch
from wire.primitives import Buffer
from wire.record_batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, BatchHeader, check_batch, read_batch_header


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
    buffer: Buffer, position: int = 0, *, base_offset: int | None = None
) -> Iterator[ScannedBatch | Damage]:
    """Yield every sound batch from `position` on, and a Damage for whatever is wrong.

    `base_offset` is the offset that the first batch ought to have. After a batch with a wrong checksum and a
    sensible length the scan goes on behind it; with an unusable header it stops, as nothing says where the
    next batch begins. Base offset and leader epoch are outside the checksum: where they do not continue the
    batch before, a Damage comes first and the batch, sound in itself, after it.
    """
    view = memoryview(buffer)
    expected, epoch = base_offset, -1
    while position < len(view):
        try:
            header = check_batch(view, position)
        except BufferUnderflow as error:
            yield _torn_or_zeros(view, position, expected, error.reason)
            return
        except CorruptBatch as error:
            end = _end_of_corrupt(view, position)
            if end is None:
                yield _corrupt_or_zeros(view, position, expected, error.reason)
                return
            yield Damage(position, expected, error.reason, "corrupt")
            position, expected = end, None
            continue
        base_offset = header.base_offset
        following: int | None = base_offset + header.last_offset_delta + 1
        if base_offset != expected or base_offset < 0 or header.partition_leader_epoch < epoch:
            reason = _discontinuity(header, expected, epoch)
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


def _discontinuity(header: BatchHeader, expected: int | None, epoch: int) -> str | None:
    if header.base_offset < 0 or (expected is not None and header.base_offset != expected):
        return f"batch has base offset {header.base_offset} instead of {expected}"
    if header.partition_leader_epoch < epoch:
        return f"batch has leader epoch {header.partition_leader_epoch} after epoch {epoch}"
    return None


def _end_of_corrupt(view: memoryview, position: int) -> int | None:
    """Where the next batch begins, if the header of the corrupt one can be believed."""
    try:
        end = position + read_batch_header(view, position).size_in_bytes
    except CorruptBatch:
        return None
    return end


def _torn_or_zeros(view: memoryview, position: int, expected: int | None, reason: str) -> Damage:
    if _is_zero(view, position):
        reason = f"only {len(view) - position} zero bytes are left"
    return Damage(position, expected, reason, "torn")


def _corrupt_or_zeros(view: memoryview, position: int, expected: int | None, reason: str) -> Damage:
    if _is_zero(view, position):
        return Damage(position, expected, f"only {len(view) - position} zero bytes are left", "torn")
    return Damage(position, expected, reason, "corrupt")


def _is_zero(view: memoryview, position: int) -> bool:
    # The header first, so that a large corrupt file is not copied for nothing.
    head = bytes(view[position : position + HEADER_BYTES])
    return not any(head) and not any(bytes(view[position:]).strip(b"\x00"))
