"""The batches of a partition's segment, each checked, and what of the file is no batch."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kquorum.spark_replay.decode.files import map_listed
from kquorum.wire.batch_search import next_batch_position
from kquorum.wire.data_batch import Record, check_data_batch, read_data_header, read_data_records
from kquorum.wire.errors import BufferUnderflow, CorruptBatch, DecodeError
from kquorum.wire.record_batch import BatchHeader
from kquorum.wire.transaction_markers import TransactionMarker, decode_transaction_marker

# A segment has the offsets that its index can hold: relative to its name, in 31 bits.
_OFFSETS_OF_SEGMENT: Final = 2**31


class DataBatch:
    """A whole batch with a right checksum. Its records are decoded when they are first asked for."""

    def __init__(self, file: str, position: int, header: BatchHeader, buffer: memoryview) -> None:
        self.file = file
        self.position = position
        self.header = header
        self._buffer = buffer

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """Empty where they cannot be decoded (`problem`)."""
        return self._decoded[0]

    @cached_property
    def problem(self) -> str | None:
        return self._decoded[1]

    @cached_property
    def marker(self) -> TransactionMarker | None:
        """Of a batch that ends a transaction."""
        if not self.header.is_control or not self.records:
            return None
        key, value = self.records[0].key, self.records[0].value
        try:
            return decode_transaction_marker(
                None if key is None else bytes(key), None if value is None else bytes(value)
            )
        except DecodeError:
            return None

    @cached_property
    def _decoded(self) -> tuple[tuple[Record, ...], str | None]:
        try:
            return read_data_records(self._buffer, self.position, self.header), None
        except DecodeError as error:
            return (), str(error)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Bytes that are no sound batch. `is_torn`: the file ends before the batch does."""

    position: int
    size_in_bytes: int
    is_torn: bool
    reason: str


def read_segment(path: str, file: str, base_offset: int) -> Iterator[DataBatch | Unreadable]:
    """What the segment holds, in order. Raises OSError, and NotRegular for a link."""
    yield from batches_of(map_listed(path), file, base_offset)


def batches_of(view: memoryview, file: str, base_offset: int) -> Iterator[DataBatch | Unreadable]:
    position, size = 0, len(view)
    offsets = range(base_offset, base_offset + _OFFSETS_OF_SEGMENT)
    while position < size:
        try:
            header = check_data_batch(view, position)
        except (BufferUnderflow, CorruptBatch) as error:
            end = _end_of_broken(view, position, offsets)
            is_torn = isinstance(error, BufferUnderflow) and end == size
            yield Unreadable(position, end - position, is_torn, error.reason)
            position = end
            continue
        yield DataBatch(file, position, header, view)
        position += header.size_in_bytes


def _end_of_broken(view: memoryview, position: int, offsets: range) -> int:
    """Where the next sound batch begins; the end of the file where there is none.

    The length of a broken batch is believed if a sound batch follows it.
    """
    size = len(view)
    try:
        end = position + read_data_header(view, position).size_in_bytes
        if end < size:
            check_data_batch(view, end)
            return end
    except (BufferUnderflow, CorruptBatch):
        pass
    found = next_batch_position(view, position + 1, offsets, has_producers=True)
    return size if found is None else found
