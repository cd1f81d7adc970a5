"""Cuts one large segment into pieces that begin at batch boundaries, so that all cores share it.

The offset index gives the boundaries for free. It is only a hint: Kafka rebuilds it at every start, preallocates it
with zeros and may leave it stale. Where it ends, or is of no use, the batches are counted off one by one, from length
to length. Each boundary must prove to be a sound batch which the next one continues: what is found in the pieces
together must not depend on where they begin.
"""

import itertools
import struct
from collections.abc import Iterable, Iterator

from kquorum.wire.batch_search import sound_header

DEFAULT_SPLIT_BYTES = 8 * 1024 * 1024

_INDEX_ENTRY = struct.Struct(">ii")
_OFFSET_AND_LENGTH = struct.Struct(">qi")
_SMALLEST_BATCH_LENGTH = 49


def split_ranges(buffer: memoryview, index: bytes, split_bytes: int) -> list[tuple[int, int]]:
    """[start, end) pairs which cover the buffer, each about `split_bytes` long and beginning at a batch."""
    assert split_bytes > 0, split_bytes
    size = len(buffer)
    if size <= split_bytes:
        return [(0, size)]
    indexed = [position for position in _index_positions(index) if position < size]
    rest = _counted_positions(buffer, indexed[-1] if indexed else 0)
    starts = _spread(itertools.chain(indexed, rest), split_bytes, size)
    if not all(_is_start(buffer, start) for start in starts[1:]):
        starts = _sound_starts(buffer, split_bytes)
    return list(itertools.pairwise([*starts, size]))


def _spread(boundaries: Iterable[int], split_bytes: int, size: int) -> list[int]:
    """The first boundary at or after each multiple of `split_bytes`, from 0."""
    starts = [0]
    for position in boundaries:
        if starts[-1] + split_bytes <= position < size:
            starts.append(position)
    return starts


def _sound_starts(buffer: memoryview, split_bytes: int) -> list[int]:
    starts = [0]
    for position in _counted_positions(buffer, 0):
        if starts[-1] + split_bytes <= position and _is_start(buffer, position):
            starts.append(position)
    return starts


def _index_positions(index: bytes) -> Iterator[int]:
    """Positions of an `.index` file, up to the zeros of its preallocated tail."""
    last = 0
    whole = len(index) - len(index) % _INDEX_ENTRY.size
    for _, position in _INDEX_ENTRY.iter_unpack(index[:whole]):
        if position <= last:
            return
        last = position
        yield position


def _counted_positions(buffer: memoryview, position: int) -> Iterator[int]:
    size = len(buffer)
    while position + _OFFSET_AND_LENGTH.size <= size:
        yield position
        _, length = _OFFSET_AND_LENGTH.unpack_from(buffer, position)
        if length < _SMALLEST_BATCH_LENGTH:
            return
        position += _OFFSET_AND_LENGTH.size + length


def _is_start(buffer: memoryview, position: int) -> bool:
    """Whether a sound batch begins there and the one behind it, sound too, continues it.

    Otherwise what is said about the latter may depend on what is before both, which a reader from here on cannot know.
    A reader that starts at a negative offset or leader epoch reports it as damage, and so does the reader before it.
    """
    first = sound_header(buffer, position)
    if first is None or first.base_offset < 0 or first.partition_leader_epoch < 0:
        return False
    end = position + first.size_in_bytes
    if end == len(buffer):
        return True
    second = sound_header(buffer, end)
    return second is not None and second.base_offset == first.last_offset + 1
