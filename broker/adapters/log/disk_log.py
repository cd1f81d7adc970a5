"""A partition's log on disk, in Kafka's folder: the `PartitionLog` of a broker.

All calls belong to one thread, but `FlushWork.run`. Batches are handed to the kernel as they came: the leader's
validator patches the header in place, and a read answers bytes of the file. A batch's records are looked at only where
a search by time, a transaction marker or a rule of the validator needs them.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from uuid import UUID

from kquorum.broker.adapters.log.loading import CLEANED_SUFFIX, SWAP_SUFFIX, LoadedLog, Loading
from kquorum.broker.adapters.log.log_dir import LogDir
from kquorum.broker.adapters.log.partition_metadata import FILE_NAME as METADATA_FILE
from kquorum.broker.adapters.log.partition_metadata import encode_topic_id, read_topic_id
from kquorum.broker.log.cleanable import Cleanable, cleanable
from kquorum.broker.log.errors import (
    CorruptRecord,
    InconsistentTopicId,
    KafkaStorageError,
    NoSpaceLeft,
    OffsetOutOfRange,
    RecordListTooLarge,
    UnexpectedAppendOffset,
)
from kquorum.broker.log.leader_epochs import LeaderEpochs
from kquorum.broker.log.log_config import DELETE, LogConfig, validation_rules
from kquorum.broker.log.partition_log import (
    AbortedTransaction,
    ActiveProducer,
    AppendedBatches,
    AppendOrigin,
    EpochEnd,
    Isolation,
    LogSlice,
    TimestampedOffset,
    VerificationGuard,
)
from kquorum.broker.log.producer_state import (
    KeptBatch,
    PreparedAppend,
    ProducerSettings,
    ProducerStates,
)
from kquorum.broker.log.transactions import AbortedEntry, aborted_between, last_stable_offset
from kquorum.broker.log.validation import analyze, validate_and_assign
from kquorum.storage.durable_files import remove_file, replace_file, sync_folder
from kquorum.storage.errors import EnvironmentFault, StorageFailed, StorageFull, storage_failure
from kquorum.storage.file_system import FileSystem
from kquorum.storage.leader_epoch_checkpoint import write_epochs
from kquorum.storage.partition_segment import SEGMENT_BYTES_MAX, BadBatch, PartitionSegment
from kquorum.wire.data_batch import first_record_since
from kquorum.wire.errors import DecodeError
from kquorum.wire.record_batch import BatchHeader
from kquorum.wire.uuids import ZERO_UUID

logger = logging.getLogger("broker.log")
NOTHING_FOUND = TimestampedOffset(-1, -1, -1)
_NO_RECORDS: tuple[bytes, ...] = ()
# About ten ms.
_BATCHES_A_SEARCH = 4_000
# Records choose their timestamps, so a producer can have each of them begin a segment, which takes four files, some KB
# of memory and 16 KB of the disk. A log of that many segments ends none for its age or its index that is so small.
MOST_SMALL_SEGMENTS = 1_000
SMALL_SEGMENT_BYTES = 1_048_576
# Each takes some ten calls of the system; the next check of the log goes on.
MOST_DELETED_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class FlushWork:
    """What a flush up to `end_offset` writes to the disk: `run` may be called in any thread, and `DiskLog.flushed`
    after it."""

    folder: Path
    end_offset: int
    segments: Sequence[PartitionSegment]
    snapshot_offsets: Sequence[int]
    is_folder_due: bool
    cuts: int
    """How often the log had been cut, or its folder renamed, when this work began."""
    log: DiskLog

    def run(self) -> None:
        """Raises StorageFailed or FsyncFailed. A folder that was removed meanwhile needs nothing (KAFKA-15391)."""
        # The snapshots first: the recovery point must not be beyond one that was lost.
        for offset in self.snapshot_offsets:
            self.log.snapshots.sync(offset)
        for segment in self.segments:
            segment.sync()
        if self.is_folder_due:
            try:
                sync_folder(self.folder, self.log.fs)
            except StorageFailed as error:
                if not isinstance(error.error, FileNotFoundError):
                    raise


def _make_folder(folder: Path, fs: FileSystem) -> None:
    """Raises StorageFull or StorageFailed."""
    try:
        fs.make_folder(folder)
    except OSError as error:
        raise storage_failure("make", folder, error) from error
    sync_folder(folder.parent, fs)


class Cancellable(Protocol):
    def cancel(self) -> None: ...


class DiskLog:
    """Satisfies PartitionLog. After an error of the disk the whole log directory is offline: each call then raises
    KafkaStorageError. A disk that is merely full refuses appends, and the log stays as it was."""

    def __init__(
        self,
        log_dir: LogDir,
        folder: Path,
        topic: str,
        partition: int,
        topic_id: UUID,
        config: LogConfig,
        loaded: LoadedLog,
        *,
        roll_jitter_ms: int = 0,
    ) -> None:
        self._dir = log_dir
        self.fs = log_dir.fs
        self.folder = folder
        self._topic = topic
        self._partition = partition
        self._topic_id = topic_id
        self._config = config
        self._rules = validation_rules(config)
        self._segments = loaded.segments
        self._bases = [segment.base_offset for segment in loaded.segments]
        self._epochs: LeaderEpochs = loaded.epochs
        self._producers: ProducerStates = loaded.producers
        self.snapshots = loaded.snapshots
        self._start = self._high_watermark = loaded.log_start_offset
        self._end = loaded.log_end_offset
        self._recovery_point = loaded.recovery_point
        self._unsynced_snapshots: set[int] = set()
        self._roll_jitter_ms = roll_jitter_ms
        self._size = sum(segment.size for segment in loaded.segments)
        self._is_closed = False
        # Written with the next change: until then, the next start finds out again what this one did.
        self._is_epochs_file_due = loaded.is_epochs_file_due
        self.last_flush_ms = log_dir.now_ms
        self._cuts = 0
        self._lowered = 0
        """The count of the directory's lowered recovery points when this one went back the last time."""
        self.cleaned_offset: int | None = None
        """Where the next cleaning of a compacted log begins; None before the first one."""
        self.cleaning: Cancellable | None = None
        """The cleaning that is under way."""
        self._producers.on_high_watermark(self._high_watermark)

    @classmethod
    def open(
        cls,
        log_dir: LogDir,
        folder: Path,
        topic: str,
        partition: int,
        config: LogConfig,
        *,
        topic_id: UUID | None = None,
        is_clean: bool = False,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        was_cleaned: bool = False,
        now_ms: int,
        producers: ProducerSettings | None = None,
        roll_jitter_ms: int = 0,
    ) -> DiskLog:
        """Open a folder, which is made if it is not there. `is_clean`: the log directory was stopped in order.

        Raises InconsistentTopicId; NoSpaceLeft where not even the reserved space was enough; and KafkaStorageError
        after another error of the disk, which the directory then knows.
        """
        log_dir.check()

        def attempt() -> DiskLog:
            return cls._open(
                log_dir,
                folder,
                topic,
                partition,
                config,
                topic_id=topic_id,
                is_clean=is_clean,
                recovery_point=recovery_point,
                log_start_offset=log_start_offset,
                was_cleaned=was_cleaned,
                now_ms=now_ms,
                producers=producers or ProducerSettings(),
                roll_jitter_ms=roll_jitter_ms,
            )

        try:
            return log_dir.space.with_space(attempt)
        except StorageFull as error:
            log_dir.space.note_full()
            raise NoSpaceLeft(str(error)) from error
        except (EnvironmentFault, OSError, ValueError, BadBatch) as error:
            raise log_dir.fail(error) from error

    @classmethod
    def _open(
        cls,
        log_dir: LogDir,
        folder: Path,
        topic: str,
        partition: int,
        config: LogConfig,
        *,
        topic_id: UUID | None,
        is_clean: bool,
        recovery_point: int,
        log_start_offset: int,
        was_cleaned: bool,
        now_ms: int,
        producers: ProducerSettings,
        roll_jitter_ms: int,
    ) -> DiskLog:
        """May be called again after StorageFull."""
        if not log_dir.fs.exists(folder):
            _make_folder(folder, log_dir.fs)
        found_id = read_topic_id(folder, log_dir.fs)
        if topic_id is not None and found_id is not None and topic_id != found_id:
            raise InconsistentTopicId(
                f"{folder} holds the topic with the id {found_id}, not {topic_id}: it is of a deleted topic "
                "of this name; move the folder away"
            )
        states = ProducerStates(
            expiration_ms=producers.expiration_ms,
            max_transaction_timeout_ms=producers.max_transaction_timeout_ms,
            verifies_transactions=producers.verifies_transactions,
        )
        loaded = Loading(
            folder,
            log_dir.fs,
            config,
            states,
            now_ms,
            is_clean,
            recovery_point,
            log_start_offset,
            was_cleaned,
            log_dir.open_segments,
        ).load()
        if topic_id is not None and found_id is None:
            replace_file(folder / METADATA_FILE, encode_topic_id(topic_id), log_dir.fs)
        return cls(
            log_dir,
            folder,
            topic,
            partition,
            found_id or topic_id or ZERO_UUID,
            config,
            loaded,
            roll_jitter_ms=roll_jitter_ms,
        )

    def move_into(self, log_dir: LogDir) -> None:
        """The log was opened beside the loop, for a directory of its own; from now on its failures are those of this
        one."""
        self._dir = log_dir

    # What it says of itself

    @property
    def topic(self) -> str:
        return self._topic

    @property
    def partition(self) -> int:
        return self._partition

    @property
    def topic_id(self) -> UUID:
        return self._topic_id

    @property
    def directory_id(self) -> UUID:
        return self._dir.directory_id

    @property
    def log_dir(self) -> LogDir:
        return self._dir

    @property
    def log_start_offset(self) -> int:
        return self._start

    @property
    def log_end_offset(self) -> int:
        return self._end

    @property
    def high_watermark(self) -> int:
        return self._high_watermark

    @property
    def last_stable_offset(self) -> int:
        return last_stable_offset(self._producers.first_unstable_offset, self._start, self._high_watermark)

    @property
    def latest_epoch(self) -> int | None:
        return self._epochs.latest

    @property
    def leader_epochs(self) -> tuple[tuple[int, int], ...]:
        """(epoch, start offset), ascending."""
        return self._epochs.entries

    @property
    def size_bytes(self) -> int:
        return self._size

    @property
    def recovery_point(self) -> int:
        """All below was written to the disk."""
        return self._recovery_point

    @property
    def config(self) -> LogConfig:
        return self._config

    @property
    def producers(self) -> ProducerStates:
        return self._producers

    def active_producers(self, most: int) -> Sequence[ActiveProducer]:
        return self._producers.active(most)

    @property
    def segments(self) -> Sequence[PartitionSegment]:
        return self._segments

    @property
    def has_partial_start(self) -> bool:
        """Whether the log begins inside its first segment: only then a checkpoint must keep where."""
        return self._start > self._segments[0].base_offset

    def change_config(self, config: LogConfig) -> None:
        """In force from the next append or check on."""
        self._config = config
        self._rules = validation_rules(config)
        self._active.index_interval_bytes = config.index_interval_bytes
        if not config.is_compacted:
            self._cancel_cleaning()

    def assign_topic_id(self, topic_id: UUID) -> None:
        """Note whose folder this is; nothing changes where it is noted. Raises InconsistentTopicId."""
        if self._topic_id == topic_id:
            return
        if self._topic_id != ZERO_UUID:
            raise InconsistentTopicId(
                f"{self.folder} holds the topic with the id {self._topic_id}, not {topic_id}"
            )
        self._check_usable()
        content = encode_topic_id(topic_id)
        try:
            self._dir.space.with_space(lambda: replace_file(self.folder / METADATA_FILE, content, self.fs))
        except StorageFailed as error:
            raise self._failed(error) from error
        self._topic_id = topic_id

    @property
    def _active(self) -> PartitionSegment:
        return self._segments[-1]

    def _check_usable(self) -> None:
        self._dir.check()
        if self._is_closed:
            raise KafkaStorageError(f"the log of {self._topic}-{self._partition} is closed")

    def _failed(self, error: StorageFailed) -> KafkaStorageError:
        if isinstance(error, StorageFull):
            self._dir.space.note_full()
            return NoSpaceLeft(str(error))
        return self._dir.fail(error)

    # Appending

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
        self._check_usable()
        analysis = analyze(records, origin=origin, max_message_bytes=self._config.max_message_bytes)
        validated = validate_and_assign(
            records,
            analysis,
            first_offset=self._end,
            leader_epoch=leader_epoch,
            now_ms=now_ms,
            origin=origin,
            rules=self._rules,
        )
        headers = validated.batches
        size = len(validated.records)
        if size > min(self._config.segment_bytes, SEGMENT_BYTES_MAX):
            raise RecordListTooLarge(
                f"{self._topic}-{self._partition}: {size} bytes do not fit into a segment of "
                f"{self._config.segment_bytes} (segment.bytes)"
            )
        prepared = self._producers.prepare(
            headers,
            validated.records,
            origin=origin,
            guard=guard,
            transaction_version=transaction_version,
        )
        if prepared.duplicate is not None:
            return self._duplicate(prepared.duplicate)
        return self._append(
            validated.records,
            headers,
            prepared,
            now_ms=now_ms,
            max_timestamp_ms=validated.max_timestamp_ms,
            log_append_time_ms=validated.log_append_time_ms,
        )

    def append_as_follower(
        self, records: bytes | memoryview, *, leader_epoch: int, now_ms: int
    ) -> AppendedBatches:
        self._check_usable()
        analysis = analyze(
            records,
            origin=AppendOrigin.REPLICATION,
            max_message_bytes=None,
            from_leader_epoch=leader_epoch,
        )
        headers = analysis.batches
        if not headers:
            return self._nothing_appended()
        first = headers[0]
        if first.base_offset < self._end:
            raise UnexpectedAppendOffset(
                f"{self._topic}-{self._partition} ends at offset {self._end}, but the leader sent offset "
                f"{first.base_offset}",
                first_offset=first.base_offset,
                last_offset=headers[-1].last_offset,
            )
        taken = memoryview(records)[: analysis.valid_bytes]
        prepared = self._producers.prepare(headers, taken, origin=AppendOrigin.REPLICATION)
        return self._append(
            taken,
            headers,
            prepared,
            now_ms=now_ms,
            max_timestamp_ms=max(each.max_timestamp_ms for each in headers),
        )

    def start_verification(
        self, producer_id: int, *, sequence: int, epoch: int, supports_epoch_bump: bool, now_ms: int
    ) -> VerificationGuard | None:
        self._check_usable()
        return self._producers.start_verification(
            producer_id,
            sequence=sequence,
            epoch=epoch,
            supports_epoch_bump=supports_epoch_bump,
            now_ms=now_ms,
        )

    def awaits_marker(self, producer_id: int, epoch: int) -> bool:
        return self._producers.awaits_marker(producer_id, epoch)

    def has_late_transaction(self, now_ms: int) -> bool:
        return self._producers.has_late_transaction(now_ms)

    def _nothing_appended(self) -> AppendedBatches:
        return AppendedBatches(-1, -1, -1, -1, self._start, 0)

    def _duplicate(self, batch: KeptBatch) -> AppendedBatches:
        return AppendedBatches(
            batch.first_offset, batch.last_offset, -1, batch.timestamp_ms, self._start, 0, duplicate=True
        )

    def _append(
        self,
        records: bytes | bytearray | memoryview,
        headers: Sequence[BatchHeader],
        prepared: PreparedAppend,
        *,
        now_ms: int,
        max_timestamp_ms: int,
        log_append_time_ms: int = -1,
    ) -> AppendedBatches:
        """Write batches whose offsets, epochs and checksums are right, and whose producers were checked. Raises
        KafkaStorageError with the log as it was."""
        self._dir.check_space()
        self._dir.now_ms = max(self._dir.now_ms, now_ms)
        size = len(records)
        first_offset, last_offset = headers[0].base_offset, headers[-1].last_offset
        try:
            if self._lowered > self._dir.lowered_written:
                self._dir.write_recovery_points()
            if self._must_roll(size, headers, max_timestamp_ms, now_ms):
                self._roll(first_offset, now_ms)
            self._assign_epochs(headers)
            self._active.append(records, headers)
            self._end = last_offset + 1
            self._size += size
            for entry in self._producers.apply(prepared, self._end):
                self._add_aborted(entry)
            if self._end - self._recovery_point >= self._config.flush_messages:
                self.flush()
        except BadBatch as error:
            raise self._corrupt(self._active, error) from error
        except StorageFailed as error:
            raise self._failed(error) from error
        return AppendedBatches(
            first_offset=first_offset,
            last_offset=last_offset,
            log_append_time_ms=log_append_time_ms,
            max_timestamp_ms=max_timestamp_ms,
            log_start_offset=self._start,
            size_bytes=size,
        )

    def _assign_epochs(self, headers: Sequence[BatchHeader]) -> None:
        for header in headers:
            if header.magic < 2:
                self._is_epochs_file_due |= self._epochs.clear()
            elif header.partition_leader_epoch >= 0:
                self._is_epochs_file_due |= self._epochs.assign(
                    header.partition_leader_epoch, header.base_offset
                )
        self._write_epochs()

    def _write_epochs(self) -> None:
        """Raises StorageFull or StorageFailed."""
        if self._is_epochs_file_due:
            write_epochs(self.folder, self._epochs.entries, self.fs)
            self._is_epochs_file_due = False

    def _write_epochs_or_later(self) -> None:
        """Where not even the reserved space is enough, the file waits for the next change, an append at the latest: an
        opening cuts from it what the log lacks. Raises StorageFailed."""
        try:
            self._dir.space.with_space(self._write_epochs)
        except StorageFull:
            self._dir.space.note_full()

    def _add_aborted(self, entry: AbortedEntry) -> None:
        self._active.aborted.add_entry(
            entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset
        )

    def _must_roll(
        self, size: int, headers: Sequence[BatchHeader], max_timestamp_ms: int, now_ms: int
    ) -> bool:
        segment, config = self._active, self._config
        if segment.size > config.segment_bytes - size:
            return True
        if not segment.holds_offset(headers[-1].last_offset):
            return True
        if not segment.size:
            return False
        if len(self._segments) >= MOST_SMALL_SEGMENTS and segment.size < SMALL_SEGMENT_BYTES:
            return False
        first_ms = segment.first_timestamp_ms
        waited_ms = max_timestamp_ms - first_ms if first_ms >= 0 else now_ms - segment.opened_ms
        return waited_ms > config.roll_after_ms - self._roll_jitter_ms or segment.is_index_full(
            config.segment_index_bytes
        )

    def roll(self, now_ms: int) -> None:
        """Begin a new segment at the end of the log, unless the last one is empty. Raises KafkaStorageError."""
        self._check_usable()
        if self._active.is_empty:
            return
        try:
            self._roll(self._end, now_ms)
        except StorageFailed as error:
            raise self._failed(error) from error

    def _roll(self, base_offset: int, now_ms: int) -> None:
        old = self._active
        if base_offset < old.base_offset or (base_offset == old.base_offset and not old.is_empty):
            raise KafkaStorageError(
                f"{self.folder} cannot begin a segment at {base_offset}: {old.path.name} is there"
            )
        if base_offset == old.base_offset:
            old.create(now_ms)
            return
        old.write_indexes(closing=True)
        if base_offset > self.snapshots.latest:
            self.snapshots.write(base_offset, self._producers.snapshot_bytes())
            self._unsynced_snapshots.add(base_offset)
        self._add_segment(base_offset, now_ms)

    def _add_segment(self, base_offset: int, now_ms: int) -> None:
        segment = PartitionSegment(
            self.folder,
            base_offset,
            self.fs,
            index_interval_bytes=self._config.index_interval_bytes,
            open_segments=self._dir.open_segments,
        )
        try:
            segment.create(now_ms)
        except StorageFailed:
            # The old segment goes on beyond this offset, and the next start would take this one for the end of the log.
            segment.close_files()
            self._remove_files(segment)
            raise
        self._segments.append(segment)
        self._bases.append(base_offset)

    def _remove_files(self, segment: PartitionSegment) -> None:
        """Raises StorageFailed."""
        for path in (segment.path, segment.offsets.path, segment.times.path):
            remove_file(path, self.fs)

    # Reading

    def read(
        self, offset: int, *, max_bytes: int, isolation: Isolation, at_least_one_batch: bool
    ) -> LogSlice:
        self._check_usable()
        if offset < self._start or offset > self._end:
            raise OffsetOutOfRange(
                f"{self._topic}-{self._partition} holds the offsets {self._start} to {self._end - 1}, not {offset}"
            )
        bound = self._bound(isolation)
        found = None if offset >= bound else self._read(offset, bound, max_bytes, at_least_one_batch)
        aborted: Sequence[AbortedTransaction] | None = None
        if isolation is Isolation.COMMITTED:
            aborted = () if found is None else self._aborted(offset, *found)
        data = b"" if found is None else found[2]
        return LogSlice(offset, (data,) if data else _NO_RECORDS, len(data), aborted)

    def _bound(self, isolation: Isolation) -> int:
        if isolation is Isolation.LOG_END:
            return self._end
        return self._high_watermark if isolation is Isolation.HIGH_WATERMARK else self.last_stable_offset

    def _read(
        self, offset: int, bound: int, max_bytes: int, at_least_one: bool
    ) -> tuple[int, int, bytes] | None:
        """The segment's index, where the data begin, and the data; None where no batch ends below the bound."""
        segment = self._active
        try:
            for index in range(self._index_of(offset), len(self._segments)):
                segment = self._segments[index]
                found = segment.position_of(offset)
                if found is None:
                    continue
                is_last = index == len(self._segments) - 1
                end = segment.end_of(bound) if is_last or self._bases[index + 1] > bound else segment.size
                if end <= found[0]:
                    return None
                return index, found[0], segment.read(*found, end, max_bytes, at_least_one=at_least_one)
        except BadBatch as error:
            raise self._corrupt(segment, error) from error
        except StorageFailed as error:
            raise self._failed(error) from error
        return None

    def _index_of(self, offset: int) -> int:
        return max(0, bisect_right(self._bases, offset) - 1)

    def _corrupt(self, segment: PartitionSegment, error: BadBatch) -> CorruptRecord:
        logger.error("%s is damaged: %s", segment.path, error)
        return CorruptRecord(f"{segment.path} is damaged: {error}")

    def _aborted(self, offset: int, index: int, position: int, data: bytes) -> Sequence[AbortedTransaction]:
        if not data:
            return ()
        upper = self._segments[index].offsets.offset_beyond(position + len(data))
        if upper is None:
            upper = self._bases[index + 1] if index + 1 < len(self._bases) else self._end
        found: list[AbortedTransaction] = []
        for segment in self._segments[index:]:
            more, is_complete = aborted_between(segment.aborted.content, offset, upper)
            found += more
            if is_complete:
                break
        return found

    def update_high_watermark(self, offset: int) -> int:
        self._high_watermark = min(max(offset, self._start), self._end)
        self._producers.on_high_watermark(self._high_watermark)
        return self._high_watermark

    # Leader epochs

    def assign_epoch_start(self, leader_epoch: int) -> None:
        self._check_usable()
        self._is_epochs_file_due |= self._epochs.assign(leader_epoch, self._end)
        try:
            self._write_epochs_or_later()
        except StorageFailed as error:
            raise self._failed(error) from error

    def end_of_epoch(self, leader_epoch: int) -> EpochEnd:
        return self._epochs.end_of(leader_epoch, self._end)

    # Searching by time

    def search_time(self, timestamp_ms: int, from_offset: int) -> TimestampedOffset | int:
        self._check_usable()
        first = max(from_offset, self._start)
        left = _BATCHES_A_SEARCH
        segment = self._active
        try:
            for segment in self._segments[self._index_of(first) :]:
                # Its batches' times alone: where they have none, the file's own time says nothing of them.
                if segment.greatest_timestamp[0] < timestamp_ms:
                    continue
                start = max(segment.times.offset_below(timestamp_ms), first)
                for position, header in segment.headers(segment.offsets.position_at_or_before(start)):
                    if header.last_offset < start:
                        continue
                    if not left:
                        return header.base_offset
                    left -= 1
                    if header.max_timestamp_ms < timestamp_ms:
                        continue
                    found = self._first_since(segment, position, header, timestamp_ms, self._start)
                    if found is not None:
                        return found
        except BadBatch as error:
            raise self._corrupt(segment, error) from error
        except StorageFailed as error:
            raise self._failed(error) from error
        return NOTHING_FOUND

    def _first_since(
        self,
        segment: PartitionSegment,
        position: int,
        header: BatchHeader,
        timestamp_ms: int,
        least_offset: int,
    ) -> TimestampedOffset | None:
        data = segment.read_at(position, header.size_in_bytes)
        try:
            found = first_record_since(data, 0, header, timestamp_ms, least_offset)
        except DecodeError as error:
            raise BadBatch(position, error.reason) from None
        return None if found is None else TimestampedOffset(*found, header.partition_leader_epoch)

    def offset_of_max_time(self) -> TimestampedOffset:
        self._check_usable()
        segment = self._active
        try:
            segment = max(self._segments, key=lambda each: each.greatest_timestamp[0])
            timestamp_ms, offset = segment.greatest_timestamp
            if timestamp_ms < 0:
                return NOTHING_FOUND
            for position, header in segment.headers(segment.offsets.position_at_or_before(offset)):
                if header.max_timestamp_ms != timestamp_ms:
                    continue
                found = self._first_since(segment, position, header, timestamp_ms, 0)
                if found is not None:
                    return found
        except BadBatch as error:
            raise self._corrupt(segment, error) from error
        except StorageFailed as error:
            raise self._failed(error) from error
        return NOTHING_FOUND

    # Removing

    def advance_log_start_offset(self, offset: int) -> bool:
        self._check_usable()
        if offset > self._high_watermark:
            raise OffsetOutOfRange(
                f"{self._topic}-{self._partition}: the start cannot move to {offset}, above the high watermark "
                f"{self._high_watermark}"
            )
        if offset <= self._start:
            return False
        self._set_start(offset)
        try:
            self._write_epochs_or_later()
        except StorageFailed as error:
            raise self._failed(error) from error
        return True

    def _set_start(self, offset: int) -> None:
        self._start = offset
        self._recovery_point = max(self._recovery_point, offset)
        self._high_watermark = max(self._high_watermark, offset)
        self._is_epochs_file_due |= self._epochs.cut_start(offset)
        self._producers.on_log_start(offset)

    def truncate_to(self, offset: int) -> bool:
        self._check_usable()
        if offset < 0:
            raise ValueError(f"a log cannot be truncated to the negative offset {offset}")
        if offset >= self._end:
            self._is_epochs_file_due |= self._epochs.cut_end(self._end)
            self._write_epochs_or_fail()
            return False
        if offset < self._bases[0]:
            self.truncate_fully_and_start_at(offset)
            return True
        try:
            self._truncate(offset)
        except BadBatch as error:
            raise self._dir.fail(error) from error
        except StorageFailed as error:
            raise self._failed(error) from error
        return True

    def _truncate(self, offset: int) -> None:
        keep = bisect_right(self._bases, offset)
        if keep < len(self._bases):
            self._cancel_cleaning()
            # From the end, and durably: one that a power cut brought back would hold offsets that come to be others.
            self._retire_segments(reversed(self._segments[keep:]))
            sync_folder(self.folder, self.fs)
            del self._segments[keep:], self._bases[keep:]
            if self.cleaned_offset is not None:
                self.cleaned_offset = min(self.cleaned_offset, self._active.base_offset)
        self._active.truncate_to(offset, self._dir.now_ms)
        self._active.next_offset = offset
        self._end = offset
        self._size = sum(segment.size for segment in self._segments)
        self._lower_recovery_point(offset)
        self._start = min(self._start, offset)
        self._high_watermark = min(self._high_watermark, offset)
        self._is_epochs_file_due |= self._epochs.cut_end(offset)
        self._write_epochs_or_later()
        self._rebuild_producers(offset)

    def truncate_fully_and_start_at(self, offset: int, *, log_start_offset: int | None = None) -> None:
        self._check_usable()
        self._cancel_cleaning()
        try:
            self._retire_segments(self._segments)
            self._segments.clear()
            self._bases.clear()
            self.snapshots.remove(self.snapshots.offsets)
            self._dir.space.with_space(lambda: self._add_segment(offset, self._dir.now_ms))
            self._end = self._high_watermark = self._start = offset
            self.cleaned_offset = None if self.cleaned_offset is None else min(self.cleaned_offset, offset)
            if log_start_offset is not None:
                self._start = log_start_offset
            self._lower_recovery_point(offset)
            self._size = 0
            self._is_epochs_file_due |= self._epochs.clear()
            self._write_epochs_or_later()
            self._producers.truncate(offset)
            sync_folder(self.folder, self.fs)
        except StorageFailed as error:
            # The old segments are gone, so a disk that has no room for a new one counts as one that failed.
            raise self._dir.fail(error) from error

    def _lower_recovery_point(self, offset: int) -> None:
        self._cuts += 1
        if self._recovery_point > offset:
            self._recovery_point = offset
            self.note_lowered_recovery_point()

    def note_lowered_recovery_point(self) -> None:
        """The disk may have a greater recovery point than is true: it hears of that before the next append."""
        self._dir.was_truncated = True
        self._dir.lowered += 1
        self._lowered = self._dir.lowered

    def _write_epochs_or_fail(self) -> None:
        try:
            self._write_epochs_or_later()
        except StorageFailed as error:
            raise self._failed(error) from error

    def _retire_segments(self, segments: Iterable[PartitionSegment]) -> None:
        """Rename the files now, and remove them after the topic's delay: a reader may hold one still."""
        delay_ms = self._config.file_delete_delay_ms
        for segment in segments:
            segment.close_files()
            for path in (*segment.paths[1:], segment.path):
                if self.fs.exists(path):
                    self._dir.retired.retire(path, delay_ms=delay_ms)

    def _rebuild_producers(self, end: int) -> None:
        """After a truncation: from the newest snapshot that still holds."""
        self.snapshots.remove([each for each in self.snapshots.offsets if each > end or each <= self._start])
        self._unsynced_snapshots.intersection_update(self.snapshots.offsets)
        loading = Loading(
            self.folder, self.fs, self._config, self._producers, self._dir.now_ms, is_clean=True
        )
        loading.rebuild_producers(self._segments, self._start, self.snapshots)
        self._producers.on_high_watermark(self._high_watermark)

    def delete_old_segments(self, now_ms: int) -> int:
        """Retention: by the log's start, by size, by time. How many segments went: if MOST_DELETED_AT_ONCE or more,
        others may be due. Raises KafkaStorageError."""
        self._check_usable()
        self._dir.now_ms = max(self._dir.now_ms, now_ms)
        count = self._delete_while(self._is_below_start)
        if DELETE not in self._config.cleanup_policy:
            return count
        return count + self._delete_by_size() + self._delete_by_time(now_ms)

    def _is_below_start(self, index: int) -> bool:
        return index + 1 < len(self._bases) and self._bases[index + 1] <= self._start

    def _delete_by_size(self) -> int:
        if self._config.retention_bytes < 0:
            return 0
        spare = self._size - self._config.retention_bytes

        def is_spare(index: int) -> bool:
            nonlocal spare
            spare -= self._segments[index].size
            return spare >= 0

        return self._delete_while(is_spare)

    def _delete_by_time(self, now_ms: int) -> int:
        if self._config.retention_ms < 0:
            return 0
        least_ms = now_ms - self._config.retention_ms
        return self._delete_while(lambda index: self._segments[index].retention_timestamp_ms < least_ms)

    def _delete_while(self, may_go: Callable[[int], bool]) -> int:
        """Delete segments from the oldest on, up to the first that stays: none with a record that is not replicated."""
        count = 0
        for index, segment in enumerate(self._segments):
            end = self._bases[index + 1] if index + 1 < len(self._bases) else self._end
            is_last_and_empty = index + 1 == len(self._segments) and segment.is_empty
            if end > self._high_watermark or is_last_and_empty or not may_go(index):
                break
            if count == MOST_DELETED_AT_ONCE:
                break
            count += 1
        try:
            if count and count == len(self._segments):
                count = self._roll_to_delete()
            if count:
                self._delete_first(count)
        except StorageFailed as error:
            raise self._failed(error) from error
        return count

    def _roll_to_delete(self) -> int:
        """How many segments may go: all when another has been begun, for which a full disk may have no space."""
        count = len(self._segments)
        try:
            self._dir.space.with_space(lambda: self._roll(self._end, self._dir.now_ms))
        except StorageFull:
            if count == 1:
                raise
            return count - 1
        return count

    def _delete_first(self, count: int) -> None:
        self._cancel_cleaning()
        gone = self._segments[:count]
        self._set_start(max(self._start, self._bases[count]))
        self._write_epochs_or_later()
        self._retire_segments(gone)
        del self._segments[:count], self._bases[:count]
        self._size -= sum(segment.size for segment in gone)
        self._retire_snapshots(each.base_offset for each in gone)

    def _retire_snapshots(self, offsets: Iterable[int]) -> None:
        for offset in offsets:
            if offset in self.snapshots.offsets:
                self._dir.retired.retire(
                    self.snapshots.path(offset), delay_ms=self._config.file_delete_delay_ms
                )
                self.snapshots.forget(offset)
                self._unsynced_snapshots.discard(offset)

    # Compaction

    def _cancel_cleaning(self) -> None:
        if self.cleaning is not None:
            self.cleaning.cancel()

    def cleanable(self, now_ms: int) -> Cleanable:
        """Which part of it can be cleaned now. Raises KafkaStorageError, and CorruptRecord."""
        self._check_usable()
        try:
            return cleanable(
                self._segments,
                checkpoint=self.cleaned_offset,
                log_start_offset=self._start,
                log_end_offset=self._end,
                last_stable_offset=self.last_stable_offset,
                now_ms=now_ms,
                config=self._config,
            )
        except BadBatch as error:
            logger.error("%s is damaged: %s", self.folder, error)
            raise CorruptRecord(f"{self.folder} is damaged: {error}") from error
        except StorageFailed as error:
            raise self._failed(error) from error

    def replace_segments(self, cleaned: PartitionSegment, replaced: Sequence[PartitionSegment]) -> None:
        """Put a durable `.cleaned` segment in the place of these, which follow each other. Raises KafkaStorageError.

        A crash leaves the old ones or the new one, whatever the disk kept of the names: with `.swap` durable the next
        start ends the replacement, and no final name comes before the old ones are gone for good.
        """
        self._check_usable()
        first = self._bases.index(replaced[0].base_offset)
        end = first + len(replaced)
        if self._segments[first:end] != list(replaced):
            raise ValueError(f"{self.folder} no longer has the segments that were cleaned")
        try:
            cleaned.rename_files(CLEANED_SUFFIX, SWAP_SUFFIX)
            sync_folder(self.folder, self.fs)
            self._retire_segments(replaced)
            sync_folder(self.folder, self.fs)
            cleaned.rename_files(SWAP_SUFFIX, "")
            self._retire_snapshots(each.base_offset for each in replaced[1:])
        except StorageFailed as error:
            # No name may be half changed, so a disk that is full counts as one that failed.
            raise self._dir.fail(error) from error
        # A thread has written it.
        cleaned.count_among(self._dir.open_segments)
        self._segments[first:end] = [cleaned]
        self._bases[first:end] = [cleaned.base_offset]
        self._size += cleaned.size - sum(each.size for each in replaced)

    # Flushing and closing

    @property
    def unflushed(self) -> int:
        """How many offsets the disk may not have yet."""
        return self._end - self._recovery_point

    def begin_flush(self, *, up_to: int | None = None) -> FlushWork | None:
        """What a flush has to write; None where all is written. Raises KafkaStorageError."""
        self._check_usable()
        end = self._end if up_to is None else min(up_to, self._end)
        if end <= self._recovery_point and not self._unsynced_snapshots:
            return None
        try:
            for segment in self._segments[self._index_of(self._recovery_point) :]:
                self._write_indexes_or_later(segment)
        except StorageFailed as error:
            raise self._failed(error) from error
        first = self._index_of(self._recovery_point)
        segments = [each for each in self._segments[first:] if each.base_offset < end or each is self._active]
        is_new = any(each.base_offset >= self._recovery_point for each in segments)
        snapshots = tuple(self._unsynced_snapshots)
        return FlushWork(self.folder, end, segments, snapshots, is_new, self._cuts, self)

    def _write_indexes_or_later(self, segment: PartitionSegment) -> None:
        """Without space the memory keeps the entries: those of the last segment, which a start after a crash makes
        again. The records are in the log, so the append that asks for a flush must not fail. Raises StorageFailed."""
        try:
            self._dir.space.with_space(segment.write_indexes)
        except StorageFull:
            self._dir.space.note_full()

    def flushed(self, work: FlushWork) -> None:
        """The work was done. If the log was cut meanwhile, that says nothing of what was written since; if its folder
        was renamed, the work may have found none of the files."""
        if work.cuts == self._cuts:
            self._unsynced_snapshots.difference_update(work.snapshot_offsets)
            self._recovery_point = max(self._recovery_point, work.end_offset)
        self.last_flush_ms = self._dir.now_ms

    def flush(self) -> None:
        work = self.begin_flush()
        if work is None:
            return
        try:
            work.run()
        except StorageFailed as error:
            raise self._failed(error) from error
        self.flushed(work)

    def close(self) -> None:
        """A stop in order: all is flushed, and the producers are written down at the end of the log. Raises
        KafkaStorageError; the files are closed in any case."""
        if self._is_closed:
            return
        try:
            self._dir.check()
            if (
                self._end > self.snapshots.latest
                and self._end > 0
                and (self._producers.end_offset or self._size)
            ):
                content = self._producers.snapshot_bytes()
                self._dir.space.with_space(lambda: self.snapshots.write(self._end, content, durably=True))
            self._dir.space.with_space(lambda: self._active.write_indexes(closing=True))
            self._dir.space.with_space(self._write_epochs)
            self.flush()
        except StorageFailed as error:
            raise self._failed(error) from error
        finally:
            self.close_files()

    def close_files(self) -> None:
        """Let go of the files as they are: the directory failed, or the log was given up."""
        self._is_closed = True
        self._cancel_cleaning()
        for segment in self._segments:
            segment.close_files()

    def move_to(self, folder: Path) -> None:
        """The folder was renamed."""
        self._cancel_cleaning()
        self._cuts += 1
        self.folder = self.snapshots.folder = folder
        for segment in self._segments:
            segment.move_to(folder)
