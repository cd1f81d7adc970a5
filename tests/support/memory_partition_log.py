"""A partition's log in memory: a fake for tests and simulation, held to the same contract as the log on disk.

It keeps the bytes of real batches, checks their CRC, gives them offsets and epochs, and remembers their producers. Its
last stable offset knows no transactions, and its records have no rules of a topic to obey.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from uuid import UUID

from kquorum.broker.log.errors import (
    CorruptRecord,
    InvalidRecord,
    KafkaStorageError,
    NoSpaceLeft,
    OffsetOutOfRange,
    OffsetsOutOfOrder,
    UnexpectedAppendOffset,
)
from kquorum.broker.log.partition_log import (
    ActiveProducer,
    AppendedBatches,
    AppendOrigin,
    EpochEnd,
    Isolation,
    LogSlice,
    TimestampedOffset,
    VerificationGuard,
)
from kquorum.broker.log.producer_state import PreparedAppend, ProducerStates
from kquorum.wire.errors import DecodeError
from kquorum.wire.record_batch import (
    LOG_OVERHEAD_BYTES,
    BatchHeader,
    check_batch,
    read_batch_header,
    read_records,
)
from tests.support.batches import rewrite_offsets

SOME_TOPIC_ID = UUID(int=1 << 80)
SOME_DIRECTORY_ID = UUID(int=1 << 90)
_NONE_FOUND = TimestampedOffset(-1, -1, -1)


@dataclass(frozen=True, slots=True)
class StoredBatch:
    base_offset: int
    last_offset: int
    leader_epoch: int
    max_timestamp_ms: int
    data: bytes


class MemoryPartitionLog:
    """Implements `broker.log.partition_log.PartitionLog`."""

    def __init__(
        self,
        topic: str = "orders",
        partition: int = 0,
        *,
        topic_id: UUID = SOME_TOPIC_ID,
        directory_id: UUID = SOME_DIRECTORY_ID,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.directory_id = directory_id
        self.batches: list[StoredBatch] = []
        self.producers = ProducerStates()
        self.epochs: list[tuple[int, int]] = []
        """(leader epoch, offset of its first record), both ascending."""
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.flushed_offset = 0
        self.fails = False
        """Whether the directory fails: each access raises KafkaStorageError."""
        self.is_full = False
        """Whether the disk is full: appends and truncations raise NoSpaceLeft."""

    @property
    def last_stable_offset(self) -> int:
        return self.high_watermark

    @property
    def latest_epoch(self) -> int | None:
        return self.epochs[-1][0] if self.epochs else None

    @property
    def size_bytes(self) -> int:
        return sum(len(batch.data) for batch in self.batches)

    # Appends

    def append_as_leader(
        self,
        records: bytes | memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
    ) -> AppendedBatches:
        self._check_space()
        headers = _checked(bytes(records))
        if not headers or sum(header.size_in_bytes for header in headers) != len(records):
            raise InvalidRecord("the records are not whole batches")
        if origin is AppendOrigin.CLIENT and (len(headers) != 1 or headers[0].base_offset != 0):
            raise InvalidRecord("a producer sends one batch, whose offsets begin at 0")
        first_offset, position = self.log_end_offset, 0
        end, placed = first_offset, []
        for header in headers:
            data = bytes(records[position : position + header.size_in_bytes])
            position += header.size_in_bytes
            placed.append(rewrite_offsets(data, end, leader_epoch))
            end += header.last_offset_delta + 1
        prepared = self.producers.prepare(
            [read_batch_header(data) for data in placed],
            b"".join(placed),
            origin=origin,
            guard=guard,
            transaction_version=transaction_version,
        )
        if prepared.duplicate is not None:
            kept = prepared.duplicate
            return AppendedBatches(
                first_offset=kept.first_offset,
                last_offset=kept.last_offset,
                log_append_time_ms=-1,
                max_timestamp_ms=kept.timestamp_ms,
                log_start_offset=self.log_start_offset,
                size_bytes=0,
                duplicate=True,
            )
        self._store_all(placed, prepared)
        return self._appended(first_offset, len(records), headers)

    def append_as_follower(
        self,
        records: bytes | memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
    ) -> AppendedBatches:
        self._check_space()
        data, position, end = bytes(records), 0, self.log_end_offset
        headers = list(
            takewhile(lambda header: header.partition_leader_epoch <= leader_epoch, _checked(data))
        )
        for header in headers:
            if header.base_offset < end:
                if end > self.log_end_offset:
                    raise OffsetsOutOfOrder(f"offset {header.base_offset} comes after {end - 1}")
                raise UnexpectedAppendOffset(
                    f"the log ends at {end}, the batch begins at {header.base_offset}",
                    first_offset=header.base_offset,
                    last_offset=header.last_offset,
                )
            end = header.next_offset
        stored = []
        for header in headers:
            stored.append(data[position : position + header.size_in_bytes])
            position += header.size_in_bytes
        self._store_all(
            stored, self.producers.prepare(headers, data[:position], origin=AppendOrigin.REPLICATION)
        )
        first_offset = headers[0].base_offset if headers else -1
        return self._appended(first_offset, position, headers)

    def start_verification(
        self, producer_id: int, *, sequence: int, epoch: int, supports_epoch_bump: bool, now_ms: int
    ) -> VerificationGuard | None:
        self._check_disk()
        return self.producers.start_verification(
            producer_id,
            sequence=sequence,
            epoch=epoch,
            supports_epoch_bump=supports_epoch_bump,
            now_ms=now_ms,
        )

    def awaits_marker(self, producer_id: int, epoch: int) -> bool:
        return self.producers.awaits_marker(producer_id, epoch)

    def has_late_transaction(self, now_ms: int) -> bool:
        return self.producers.has_late_transaction(now_ms)

    def active_producers(self, most: int) -> list[ActiveProducer]:
        return self.producers.active(most)

    def _store_all(self, batches: list[bytes], prepared: PreparedAppend) -> None:
        for data in batches:
            self._store(data)
        self.producers.apply(prepared, self.log_end_offset)

    def _remember_again(self) -> None:
        """The producers of what a truncation left."""
        self.producers.truncate(self.log_start_offset)
        for batch in self.batches:
            header = read_batch_header(batch.data)
            prepared = self.producers.prepare([header], batch.data, origin=AppendOrigin.REPLICATION)
            self.producers.apply(prepared, header.next_offset)

    def _store(self, data: bytes) -> None:
        header = read_batch_header(data)
        if self.latest_epoch is None or header.partition_leader_epoch > self.latest_epoch:
            self._assign(header.partition_leader_epoch, header.base_offset)
        self.batches.append(
            StoredBatch(
                header.base_offset,
                header.last_offset,
                header.partition_leader_epoch,
                header.max_timestamp_ms,
                data,
            )
        )
        self.log_end_offset = header.next_offset

    def _appended(self, first_offset: int, size_bytes: int, headers: list[BatchHeader]) -> AppendedBatches:
        return AppendedBatches(
            first_offset=first_offset,
            last_offset=self.log_end_offset - 1,
            log_append_time_ms=-1,
            max_timestamp_ms=max((header.max_timestamp_ms for header in headers), default=-1),
            log_start_offset=self.log_start_offset,
            size_bytes=size_bytes,
        )

    # Reads

    def read(
        self, offset: int, *, max_bytes: int, isolation: Isolation, at_least_one_batch: bool
    ) -> LogSlice:
        self._check_disk()
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(
                f"offset {offset} is not between {self.log_start_offset} and {self.log_end_offset}"
            )
        bound = self.log_end_offset if isolation is Isolation.LOG_END else self.high_watermark
        pieces: list[bytes] = []
        size_bytes = 0
        for batch in self.batches[self._place_of(offset) :]:
            if batch.last_offset >= bound:
                break
            is_first = not pieces and at_least_one_batch
            if size_bytes + len(batch.data) > max_bytes and not is_first:
                break
            pieces.append(batch.data)
            size_bytes += len(batch.data)
        return LogSlice(offset, pieces, size_bytes, () if isolation is Isolation.COMMITTED else None)

    def _place_of(self, offset: int) -> int:
        """Of the first batch that ends at `offset` or behind it."""
        low, high = 0, len(self.batches)
        while low < high:
            middle = (low + high) // 2
            if self.batches[middle].last_offset < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def search_time(self, timestamp_ms: int, from_offset: int) -> TimestampedOffset:
        self._check_disk()
        for batch in self.batches:
            if batch.max_timestamp_ms < timestamp_ms or batch.last_offset < from_offset:
                continue
            header = read_batch_header(batch.data)
            for record in read_records(batch.data, 0, header):
                if record.timestamp_ms >= timestamp_ms and record.offset >= self.log_start_offset:
                    return TimestampedOffset(record.timestamp_ms, record.offset, batch.leader_epoch)
        return _NONE_FOUND

    def offset_of_max_time(self) -> TimestampedOffset:
        greatest = max((batch.max_timestamp_ms for batch in self.batches), default=None)
        return _NONE_FOUND if greatest is None else self.search_time(greatest, 0)

    # Watermarks and epochs

    def update_high_watermark(self, offset: int) -> int:
        self.high_watermark = max(self.log_start_offset, min(offset, self.log_end_offset))
        return self.high_watermark

    def assign_epoch_start(self, leader_epoch: int) -> None:
        self._check_disk()
        self._assign(leader_epoch, self.log_end_offset)

    def _assign(self, leader_epoch: int, offset: int) -> None:
        """An epoch without records gives way to the next one. The latest epoch again keeps its start."""
        if self.latest_epoch == leader_epoch and self.epochs[-1][1] <= offset:
            return
        while self.epochs and (self.epochs[-1][0] >= leader_epoch or self.epochs[-1][1] >= offset):
            self.epochs.pop()
        self.epochs.append((leader_epoch, offset))

    def end_of_epoch(self, leader_epoch: int) -> EpochEnd:
        if leader_epoch < 0 or not self.epochs or leader_epoch > self.epochs[-1][0]:
            return EpochEnd(-1, -1)
        if leader_epoch == self.epochs[-1][0]:
            return EpochEnd(leader_epoch, self.log_end_offset)
        later = [(epoch, start) for epoch, start in self.epochs if epoch > leader_epoch]
        earlier = [epoch for epoch, _ in self.epochs if epoch <= leader_epoch]
        return EpochEnd(earlier[-1] if earlier else leader_epoch, later[0][1])

    # Truncation

    def truncate_to(self, offset: int) -> bool:
        self._check_disk()
        self._check_space()
        while self.epochs and self.epochs[-1][1] >= offset:
            self.epochs.pop()
        if offset >= self.log_end_offset:
            return False
        self.batches = [batch for batch in self.batches if batch.last_offset < offset]
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self.high_watermark = min(self.high_watermark, offset)
        self.flushed_offset = min(self.flushed_offset, offset)
        self._remember_again()
        return True

    def truncate_fully_and_start_at(self, offset: int, *, log_start_offset: int | None = None) -> None:
        self._check_disk()
        self.batches, self.epochs = [], []
        self.log_start_offset = offset if log_start_offset is None else log_start_offset
        self.log_end_offset = self.high_watermark = self.flushed_offset = offset
        self.producers.truncate(offset)

    def advance_log_start_offset(self, offset: int) -> bool:
        self._check_disk()
        if offset > self.high_watermark:
            raise OffsetOutOfRange(f"offset {offset} is above the high watermark {self.high_watermark}")
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.batches = [batch for batch in self.batches if batch.last_offset >= offset]
        before = [epoch for epoch, start in self.epochs if start <= offset]
        if before:
            self.epochs = [(before[-1], offset), *(each for each in self.epochs if each[1] > offset)]
        return True

    # The disk

    def flush(self) -> None:
        self._check_disk()
        self.flushed_offset = self.log_end_offset

    def lose_power(self) -> None:
        """What was not flushed is gone."""
        self.truncate_to(self.flushed_offset)

    def _check_space(self) -> None:
        self._check_disk()
        if self.is_full:
            raise NoSpaceLeft(f"no space is left for {self.topic}-{self.partition}")

    def _check_disk(self) -> None:
        if self.fails:
            raise KafkaStorageError(f"the log directory of {self.topic}-{self.partition} failed")


def _checked(data: bytes) -> list[BatchHeader]:
    """The headers of the whole batches. Raises CorruptRecord; a cut batch at the end is left out."""
    headers, position = [], 0
    while position + LOG_OVERHEAD_BYTES < len(data):
        try:
            header = read_batch_header(data, position)
            if position + header.size_in_bytes > len(data):
                break
            headers.append(check_batch(data, position))
        except DecodeError as error:
            if len(data) - position < 61:
                break
            raise CorruptRecord(str(error)) from error
        position += header.size_in_bytes
    return headers
