"""Tells the torn end of an interrupted write from damage, by what the bytes themselves show.

Bytes that were written but not yet flushed reach the disk in any order, by sectors. After a power cut some sectors are
there and others read as zeros, or the file ends before them. A flipped bit, or a block of other bytes, leaves no such
hole. `storage/recovery.py` decides what is cut.
"""

import re
from collections.abc import Iterator

from crc32c import crc32c

from kquorum.storage.file_system import Content
from kquorum.storage.log_rules import CONTIGUOUS, LogRules
from kquorum.wire.errors import DecodeError
from kquorum.wire.record_batch import HEADER_BYTES, MAGIC, BatchHeader, check_batch, read_batch_header

SECTOR_BYTES = 512
_MAGIC_POSITION = 16
_CRC_START = 21


def has_hole(content: Content, start: int, end: int, offset: int) -> bool:
    """Whether a sector (or the part of one) from `start` up to `end` was never written.

    `start` is where the batch of `offset` ought to begin. A batch begins with its offset, whose first bytes are zeros:
    a short part of zeros at `start` is no hole if a sound batch would have zeros there too.
    """
    position = start
    while position < end:
        stop = min(end, end_of_sector(position))
        if not any(content[position:stop]) and (position > start or _was_due(offset, stop - start)):
            return True
        position = stop
    return False


def end_of_sector(position: int) -> int:
    return (position // SECTOR_BYTES + 1) * SECTOR_BYTES


def has_damaged_length(content: Content, position: int) -> bool:
    """Whether the last batch is complete and only the length in its header is wrong: its checksum matches the bytes
    that are there."""
    rest = content[position:]
    return len(rest) >= HEADER_BYTES and crc32c(rest[_CRC_START:]) == int.from_bytes(
        rest[_CRC_START - 4 : _CRC_START], "big"
    )


def _was_due(offset: int, size: int) -> bool:
    """Whether the first `size` bytes of the batch at `offset` hold anything but zeros."""
    return size > 11 or any(offset.to_bytes(8, "big")[:size])


def end_of_batch(content: Content, position: int) -> int:
    """Where the damaged batch at `position` ends, if its header can be believed; else the end of the file."""
    try:
        end = position + read_batch_header(content[position : position + HEADER_BYTES]).size_in_bytes
    except DecodeError:
        return len(content)
    return min(end, len(content))


def is_valid_batch(content: Content, position: int) -> bool:
    return _valid_batch(content, position) is not None


def _valid_batch(content: Content, position: int) -> BatchHeader | None:
    try:
        size = read_batch_header(content[position : position + HEADER_BYTES]).size_in_bytes
        return check_batch(content[position : position + size])
    except DecodeError:
        return None


def valid_batches_behind(
    content: Content, position: int, offset: int, rules: LogRules = CONTIGUOUS
) -> Iterator[tuple[int, BatchHeader]]:
    """The sound batches behind a damaged one, each with its position, found again by what their headers have in common:
    the first bytes of their base offsets, and the magic.

    A damaged length makes a batch in the middle look like a torn end, so walking from batch to batch cannot tell.
    A batch of offsets below `offset`, or of larger ones than the log's rules allow there, is none.
    """
    offset_max = rules.largest_offset_behind(offset, len(content) - position)
    alike = _pattern(offset, offset_max)
    found = alike.search(content, position + _MAGIC_POSITION + 1)
    while found is not None:
        start = found.start() - _MAGIC_POSITION
        header = _valid_batch(content, start)
        follow = found.end()
        if header is not None and offset <= header.base_offset <= offset_max:
            # Record values may hold the bytes of other batches (a backup of a log, say), so none is looked for inside.
            yield start, header
            follow = start + header.size_in_bytes + _MAGIC_POSITION
        found = alike.search(content, follow)


def _pattern(offset: int, offset_max: int) -> re.Pattern[bytes]:
    """Finds the magic of a batch whose base offset is between these. It begins with the magic, a single byte, and looks
    back from there: in a file full of zeros, a search for the zeros with which most offsets begin takes many times as
    long."""
    lowest, highest = offset.to_bytes(8, "big"), offset_max.to_bytes(8, "big")
    shared = next((at for at in range(8) if lowest[at] != highest[at]), 8)
    rest = b".{%d}" % (_MAGIC_POSITION - shared)
    magic = re.escape(bytes([MAGIC]))
    return re.compile(magic + b"(?<=" + re.escape(lowest[:shared]) + rest + magic + b")", re.DOTALL)
