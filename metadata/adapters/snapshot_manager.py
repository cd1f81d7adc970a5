"""The snapshots of a running node: writes them beside the growing log, and deletes old ones and the log below them.

    committed batches -> policy -> a thread writes -> the core knows of it -> retention -> the log begins later

`SnapshotPolicy` (metadata/snapshot.py) decides when a snapshot is due, `snapshots/retention.py` which ones are deleted.

All methods belong to the event loop's thread. A thread of its own encodes and writes a snapshot. Encoding is much work
in Python, which would hold up the event loop, so that thread rests often (`snapshots.adapters.pace`).
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kquorum.metadata.adapters.log_cleaner import LogCleaner, LogWithStart, Replica
from kquorum.metadata.image.delta import MetadataDelta
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.snapshot import SnapshotContent, SnapshotPolicy, SnapshotTriggers, snapshot_batches
from kquorum.raft.adapters.disk_thread import DiskThread
from kquorum.raft.inputs import SnapshotWritten
from kquorum.snapshots.adapters.durable_snapshot import (
    SnapshotExists,
    WrittenOtherwise,
    WrittenSnapshot,
    write_snapshot,
)
from kquorum.snapshots.adapters.inventory import list_files
from kquorum.snapshots.adapters.pace import Pace, Stopped, short_turns
from kquorum.snapshots.retention import RetentionLimits
from kquorum.storage.durable_files import remove_file
from kquorum.storage.errors import FsyncFailed, StorageFailed
from kquorum.storage.file_system import POSIX, FileSystem
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch
from kquorum.wire.record_batch import CompressionCodec

CLEANING_INTERVAL_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSettings:
    """The config keys of `metadata.snapshot` and `snapshots.retention`; the codec is that of the log."""

    max_bytes: int
    max_interval_ms: int
    retention_bytes: int
    retention_ms: int
    codec: CompressionCodec = CompressionCodec.LZ4
    cleaning_interval_ms: int = CLEANING_INTERVAL_MS

    @property
    def triggers(self) -> SnapshotTriggers:
        return SnapshotTriggers(max_bytes=self.max_bytes, max_interval_ms=self.max_interval_ms)

    @property
    def retention(self) -> RetentionLimits:
        return RetentionLimits(max_bytes=self.retention_bytes, max_age_ms=self.retention_ms)


CLOSE_TIMEOUT_MS = 2_000
log = logging.getLogger("metadata.snapshots")


class NoRoom(Exception):
    """A snapshot that grew as the last one did would take the space which the log needs."""

    def __init__(self, free_bytes: int, newest_bytes: int) -> None:
        super().__init__(f"{free_bytes} bytes are free, and the last one has {newest_bytes}")


@dataclass(frozen=True, slots=True)
class _Attempt:
    content: SnapshotContent
    reason: str
    pace: Pace


@dataclass(frozen=True, slots=True)
class _Outcome:
    """`written` is None where there was a snapshot of that name already."""

    written: WrittenSnapshot | None
    took_ms: int


class SnapshotManager:
    """Usage: build it, add `publish` to the publishers of images, and `start` it in the event loop. Then call
    `handle_commit` and `handle_snapshot`, each after the state machine."""

    def __init__(
        self,
        folder: Path,
        settings: SnapshotSettings,
        replica: Replica,
        metadata_log: LogWithStart,
        now_ms: Callable[[], int],
        on_fatal: Callable[[Exception], None],
        fs: FileSystem = POSIX,
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._replica = replica
        self._log = metadata_log
        self._now_ms = now_ms
        self._on_fatal = on_fatal
        self._fs = fs
        self._policy = SnapshotPolicy(settings.triggers, now_ms())
        self._cleaner = LogCleaner(folder, settings.retention, replica, metadata_log, now_ms, fs)
        self._image = MetadataImage.empty()
        self._last_note: bytes | None = None
        self._attempt: _Attempt | None = None
        self._thread: DiskThread | None = None
        self._is_disabled = False

    def start(self) -> None:
        self._thread = DiskThread(asyncio.get_running_loop(), "kquorum-snapshot-writer")
        self._cleaner.start(self._thread, self._settings.cleaning_interval_ms)

    async def close(self) -> None:
        """A snapshot that is being written is given up, and nothing of it stays."""
        thread, self._thread = self._thread, None
        self._cleaner.close()
        if self._attempt is not None:
            self._attempt.pace.stop()
        if thread is not None and not await thread.close(CLOSE_TIMEOUT_MS):
            log.warning("the disk kept a snapshot for more than %d ms; leaving without it", CLOSE_TIMEOUT_MS)

    # What happens

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self._image = image
        if delta.audit_notes:
            self._last_note = delta.audit_notes[-1]

    def handle_commit(self, now_ms: int, batches: Sequence[LogBatch]) -> None:
        self._policy.handle_commit(sum(len(batch.data) for batch in batches))
        self._maybe_begin(now_ms)

    def handle_snapshot(self, now_ms: int, image: MetadataImage, last_audit_note: bytes | None) -> None:
        """The state machine started over from a snapshot."""
        self._image, self._last_note = image, last_audit_note
        self._is_disabled = False
        self._policy.handle_loaded(now_ms, image.end_offset)

    def handle_unsound(self) -> None:
        """A snapshot was found damaged when it was to be served: followers need another one, at the next commit."""
        self._policy.handle_lost()

    def disable(self, reason: str) -> None:
        """Write no more snapshots, because the image lacks something that was committed, and a snapshot of it would
        lose that for good. A snapshot from another node ends this state."""
        if not self._is_disabled:
            log.error("no snapshots are written from now on, and the log is kept: %s", reason)
        self._is_disabled = True
        if self._attempt is not None:
            self._attempt.pace.stop()

    # Writing

    def _maybe_begin(self, now_ms: int) -> None:
        if self._image.is_empty:
            # Kafka writes no snapshot of an empty image either. Its controllers crash on a snapshot that ends where the
            # first transaction of a log begins.
            return
        reason = self._policy.reason_to_begin(now_ms, self._image.provenance)
        if reason is None or self._thread is None or self._is_disabled:
            return
        content = SnapshotContent(
            image=self._image,
            quorum=self._replica.quorum_at(self._image.end_offset),
            last_audit_note=self._last_note,
        )
        attempt = self._attempt = _Attempt(content, reason, Pace())
        self._policy.begun(now_ms)
        write = _Writing(self._folder, self._settings.codec, self._fs)
        self._thread.submit(lambda: write(attempt, now_ms), self._written, self._failed)

    def _end_attempt(self) -> _Attempt:
        attempt, self._attempt = self._attempt, None
        assert attempt is not None, "one snapshot at a time"
        return attempt

    def _written(self, outcome: _Outcome) -> None:
        attempt = self._end_attempt()
        snapshot_id = attempt.content.snapshot_id
        self._policy.succeeded(snapshot_id.end_offset)
        if outcome.written is not None:
            log.info(
                "wrote snapshot %s (%d records, %d bytes, because %s) in %d ms",
                snapshot_id.file_name,
                outcome.written.record_count,
                outcome.written.size_in_bytes,
                attempt.reason,
                outcome.took_ms,
            )
        if snapshot_id.end_offset < self._log.log_start_offset:
            self._drop(snapshot_id.file_name)
            return
        self._replica.receive(SnapshotWritten(OffsetAndEpoch(snapshot_id.end_offset, snapshot_id.epoch)))
        self._cleaner.look()

    def _drop(self, name: str) -> None:
        """A newer snapshot came from the leader meanwhile, and the log begins behind this one."""
        log.info("snapshot %s is out of date already, and is removed", name)
        if self._thread is not None:
            path = self._folder / name
            self._thread.submit(lambda: remove_file(path, self._fs), lambda _: None, _tell_not_removed)

    def _failed(self, error: Exception) -> None:
        name = self._end_attempt().content.snapshot_id.file_name
        delay_ms = self._policy.failed(self._now_ms())
        if isinstance(error, Stopped):
            return
        if isinstance(error, FsyncFailed):
            # Nothing depends on this file yet, and no flush of it is tried again. But the log is on the same disk,
            # and the kernel may report lost pages only once, to whichever caller flushes first.
            self._on_fatal(error)
            return
        log.warning(
            "snapshot %s could not be written (%s); nothing of it is left, and it is tried again in %d s",
            name,
            _told(error),
            delay_ms // 1000,
            exc_info=None if isinstance(error, _EXPECTED) else error,
        )


_EXPECTED = (StorageFailed, WrittenOtherwise, NoRoom)


def _told(error: Exception) -> str:
    """The error in words. The text of StorageFailed itself says that the node stops, but this node goes on."""
    if isinstance(error, StorageFailed):
        return f"{error.path}: {error.error.strerror or error.error}"
    return f"{type(error).__name__}: {error}" if not isinstance(error, _EXPECTED) else str(error)


def _tell_not_removed(error: Exception) -> None:
    log.warning("a snapshot that is out of date could not be removed: %s", _told(error))


@dataclass(frozen=True, slots=True)
class _Writing:
    """What the thread does."""

    folder: Path
    codec: CompressionCodec
    fs: FileSystem

    def __call__(self, attempt: _Attempt, now_ms: int) -> _Outcome:
        started_s = time.monotonic()
        content, rest = attempt.content, attempt.pace.rest
        self._check_room()
        attempt.pace.begin()
        batches = snapshot_batches(content, timestamp_ms=now_ms, codec=self.codec, rest=rest)
        path = self.folder / content.snapshot_id.file_name
        written = None
        try:
            with short_turns():
                written = write_snapshot(path, content.snapshot_id, batches, rest=rest, fs=self.fs)
        except SnapshotExists:
            log.info("snapshot %s is there already", path.name)
        return _Outcome(written, round((time.monotonic() - started_s) * 1000))

    def _check_room(self) -> None:
        """Raise NoRoom rather than fill the disk; what else fails is said when the file is written."""
        try:
            _, snapshots = list_files(self.folder, self.fs)
            free_bytes = self.fs.free_bytes(self.folder)
        except OSError as error:
            raise StorageFailed("look for free space in", self.folder, error) from error
        newest_bytes = max((each.size_in_bytes for each in snapshots), default=0)
        if free_bytes < newest_bytes:
            raise NoRoom(free_bytes, newest_bytes)
