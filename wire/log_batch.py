"""A log as values: batches with their place in it, whose bytes are only passed along."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kquorum.wire.compression import CompressionCodec
from kquorum.wire.errors import DecodeError
from kquorum.wire.record_batch import check_batch, plain_size, read_batch_header, read_records, write_batch
from kquorum.wire.record_parsing import Record


@dataclass(frozen=True, slots=True)
class OffsetAndEpoch:
    """An offset (exclusive end) and the leader epoch of the record before it."""

    offset: int
    epoch: int


@dataclass(slots=True, init=False)
class LogBatch:
    """One whole record batch of the log.

    Invariant: Final[`data` is a checked v2 batch whose header says the same as the fields.]
    """

    base_offset: Final[int]
    last_offset: Final[int]
    leader_epoch: Final[int]
    is_control: Final[bool]
    data: Final[bytes]

    def __init__(
        self,
        base_offset: int,
        last_offset: int,
        leader_epoch: int,
        is_control: bool,
        data: bytes,
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.leader_epoch = leader_epoch
        self.is_control = is_control
        self.data = data

    @property
    def next_offset(self) -> int:
        return self.last_offset + 1

    @property
    def records(self) -> tuple[Record, ...]:
        """The records, decompressed and split at each use: kept with the batch, they would cost a cache of
        compressed batches many times the memory that it is allowed."""
        return read_records(self.data, 0, read_batch_header(self.data))

    @property
    def has_all_offsets(self) -> bool:
        """Whether each of its offsets has a record, by the counts of its header: compaction alone takes records out."""
        header = read_batch_header(self.data)
        return header.record_count == header.last_offset_delta + 1

    @property
    def plain_bytes(self) -> int:
        """How long its records are when they are decompressed, which is done for this where they are compressed; raises
        DecodeError if they are longer than a batch can be, or have no room for so many."""
        return plain_size(self.data, 0, read_batch_header(self.data))


def log_batch(data: bytes) -> LogBatch:
    """Make a `LogBatch` of one whole batch; raises DecodeError when it is torn or corrupt."""
    header = check_batch(data)
    return LogBatch(
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        leader_epoch=header.partition_leader_epoch,
        is_control=header.is_control,
        data=data,
    )


def parse_batches(data: bytes) -> tuple[LogBatch, ...]:
    """The valid batches at the head of `data`.

    A Fetch response may end in a cut batch (KIP-74), and a peer may send garbage: what follows the first batch
    that is not whole and valid is dropped, so a bad tail can never reach the log.
    """
    batches = []
    position = 0
    while position < len(data):
        try:
            header = check_batch(data, position)
        except DecodeError:
            break
        end = position + header.size_in_bytes
        batches.append(
            LogBatch(
                base_offset=header.base_offset,
                last_offset=header.last_offset,
                leader_epoch=header.partition_leader_epoch,
                is_control=header.is_control,
                data=data[position:end],
            )
        )
        position = end
    return tuple(batches)


def build_batch(
    base_offset: int,
    leader_epoch: int,
    timestamp_ms: int,
    records: Sequence[tuple[bytes | None, bytes | None]],
    *,
    control: bool = False,
    codec: CompressionCodec = CompressionCodec.NONE,
) -> LogBatch:
    """Encode `records` ((key, value) each) as the batch at `base_offset`."""
    data = write_batch(
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        timestamp_ms=timestamp_ms,
        records=records,
        control=control,
        codec=codec,
    )
    return LogBatch(base_offset, base_offset + len(records) - 1, leader_epoch, control, data)
