"""How a shard of a coordinator comes to serve its partition: it reads the log from its start to its end, a part at a
time (rules G1.20 to G1.28)."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, Protocol

from kquorum.broker.log.partition_log import Isolation, PartitionLog
from kquorum.wire.data_batch import data_headers
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.record_batch import BatchHeader

_AT_ONCE_BYTES: Final = 64 * 1024


class ShardState(Enum):
    LOADING = auto()
    ACTIVE = auto()
    CLOSED = auto()
    FAILED = auto()

    @property
    def refusal(self) -> ErrorCode:
        """What a request gets while the shard cannot serve it (rule G1.21)."""
        if self is ShardState.ACTIVE:
            return ErrorCode.none
        loads = self is ShardState.LOADING
        return ErrorCode.coordinator_load_in_progress if loads else ErrorCode.not_coordinator


class LogHolder(Protocol):
    """A partition, of which no more is needed here."""

    log: PartitionLog


class LogLoad:
    """Reads a partition's log up to its end: also what the former leader wrote that is not committed yet. The log may
    be moved to another directory meanwhile: then its copy is read on, which has the same offsets."""

    def __init__(self, partition: LogHolder) -> None:
        self._partition = partition
        self.next_offset = partition.log.log_start_offset

    def next_batches(self, buffer_bytes: int) -> Iterator[tuple[bytes, int, BatchHeader]]:
        """The next whole batches: the bytes, the batch's position in them, its header. Nothing is left when
        `next_offset` stands still. A batch that begins below the place to go on from comes whole.

        Raises LogError and DecodeError; the batch at `next_offset` is then the one that cannot be read.
        """
        log = self._partition.log
        if self.next_offset >= log.log_end_offset:
            return
        found = log.read(
            self.next_offset,
            max_bytes=min(buffer_bytes, _AT_ONCE_BYTES),
            isolation=Isolation.LOG_END,
            at_least_one_batch=True,
        )
        data = b"".join(found.pieces)
        for position, header in data_headers(data):
            yield data, position, header
            self.next_offset = header.next_offset
