"""All partition logs of a broker: its log directories, their checkpoint files, and what is done in the background.

The manager has no clock and no thread. The node calls `tick` every second or so, runs the work that it answers in a
thread (each waits for the disk), and calls `finish` of each on the loop; all other calls belong to the loop as well.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Protocol
from uuid import UUID, uuid4

from kquorum.broker.adapters.clean_shutdown import FILE_NAME as CLEAN_SHUTDOWN
from kquorum.broker.adapters.clean_shutdown import mark_clean_shutdown
from kquorum.broker.adapters.log.cleaning import Cleaning
from kquorum.broker.adapters.log.disk_log import MOST_DELETED_AT_ONCE, DiskLog, FlushWork
from kquorum.broker.adapters.log.log_dir import LogDir
from kquorum.broker.adapters.log.partition_metadata import read_topic_id
from kquorum.broker.log.cleanable import Cleanable
from kquorum.broker.log.compaction import SLOT_BYTES
from kquorum.broker.log.errors import CorruptRecord, KafkaStorageError, LogError, NoSpaceLeft
from kquorum.broker.log.folder_names import FolderKind, folder_name, marked_folder_name, parse_folder_name
from kquorum.broker.log.log_config import LogConfig
from kquorum.broker.log.producer_state import ProducerSettings
from kquorum.storage.durable_files import list_names, remove_file, replace_file, sync_folder
from kquorum.storage.errors import (
    EnvironmentFault,
    FolderRefused,
    StorageFailed,
    StorageFull,
    storage_failure,
)
from kquorum.storage.offset_checkpoints import (
    CLEANED,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    PartitionName,
    encode_offsets,
    read_offsets,
)

logger = logging.getLogger("broker.log_manager")
METADATA_TOPIC_PREFIX = "__cluster_metadata-"
REMOTE_INDEX_CACHE = "remote-log-index-cache"
_LOGS_A_TICK = 200
_PRODUCERS_AS_A_SEGMENT = 1_000
# A topic's configs take half a ms.
_CONFIGS_AT_ONCE = 16
# Their work is done before the next tick, and checkpoints of every few seconds are due there.
_FOLDERS_A_TICK = 200
_FILES_A_TICK = 1_000
# In the folder of a log whose move to another directory failed when the copy took its place.
KEPT_NOTE = "kept-after-failed-move"


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerSettings:
    """The broker configs of the log cleaner, with Kafka's defaults. `pause` is called in the cleaner's thread with the
    bytes that it read or wrote since: there it gives way to the loop, and keeps to a rate."""

    is_enabled: bool = True
    dedupe_buffer_bytes: int = 128 * 1024 * 1024
    pause: Callable[[int], None] = lambda _bytes: None


class DiskWork(Protocol):
    """Work that waits for a disk. `run` is for any thread; `finish` for the loop, with the error that `run` raised."""

    def run(self) -> None: ...

    def finish(self, error: Exception | None) -> None: ...


def run_work(works: Sequence[DiskWork]) -> None:
    """Run and finish all here and now: at a stop, or without a loop."""
    for work in works:
        try:
            work.run()
        except StorageFailed as error:
            work.finish(error)
        else:
            work.finish(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerIntervals:
    """The broker configs of the background work (ms), with Kafka's defaults."""

    retention_check_ms: int = 300_000
    flush_recovery_point_ms: int = 60_000
    flush_start_offset_ms: int = 60_000
    high_watermark_checkpoint_ms: int = 5_000
    producer_expiration_check_ms: int = 600_000
    initial_delay_ms: int = 30_000


class FolderNotOfLog(FolderRefused):
    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(
            f"{folder} cannot be the folder of a partition: {reason}; move it out of the log directory"
        )
        self.folder = folder


class PartitionFoundTwice(FolderRefused):
    def __init__(self, first: Path, second: Path) -> None:
        super().__init__(
            f"{first} and {second} are folders of the same partition: move away the one that is older (left by a move "
            "between log directories that did not end)"
        )


@dataclass(slots=True)
class CheckpointWork:
    """A checkpoint file of a log directory that is written again."""

    log_dir: LogDir
    name: str
    content: bytes
    number: int
    """Orders the contents of this file: an older one never replaces a newer one."""
    lowered: int
    pending: set[tuple[Path, str]]

    def run(self) -> None:
        """Raises StorageFailed."""
        with self.log_dir.checkpoint_lock:
            if self.number > self.log_dir.checkpoints.get(self.name, 0):
                path = self.log_dir.path / self.name
                self.log_dir.space.with_space(lambda: replace_file(path, self.content, self.log_dir.fs))
                self.log_dir.checkpoints[self.name] = self.number

    def finish(self, error: Exception | None) -> None:
        self.pending.discard((self.log_dir.path, self.name))
        if error is None:
            if self.name == RECOVERY_POINTS:
                self.log_dir.lowered_written = max(self.log_dir.lowered_written, self.lowered)
        elif not isinstance(error, StorageFull):
            self.log_dir.fail(error)


@dataclass(slots=True, eq=False)
class OpeningWork:
    """A log that is opened, and made if there is none. The directory hears of a failure on the loop: until then the log
    has a directory of its own."""

    manager: LogManager
    log_dir: LogDir
    name: PartitionName
    config: LogConfig
    open: Callable[[LogDir], DiskLog]
    leader_epoch: int | None
    opened: DiskLog | None = None
    failure: Exception | None = None

    def run(self) -> None:
        log_dir = self.log_dir
        apart = LogDir(log_dir.path, log_dir.directory_id, log_dir.fs, now_ms=log_dir.now_ms)
        try:
            self.opened = self.open(apart)
            if self.leader_epoch is not None and self.opened.latest_epoch is None:
                self.opened.assign_epoch_start(self.leader_epoch)
        except LogError as error:
            logger.debug("%s-%d: %s", *self.name, error)
        self.failure = apart.failure

    def finish(self, error: Exception | None) -> None:
        self.manager.opening.discard(self)
        failure = error or self.failure
        if failure is not None:
            self.log_dir.fail(failure)
        elif self.opened is not None:
            self.manager.take_opened(self, self.opened)


@dataclass(slots=True)
class _Directory:
    """What the manager keeps of a log directory."""

    log_dir: LogDir
    is_clean: bool = False
    is_loaded: bool = False
    recovery_points: Mapping[PartitionName, int] = field(default_factory=dict)
    points_on_disk: dict[PartitionName, int] = field(default_factory=dict)
    """The greatest recovery point that the file may have, now, for each name; also of logs that are gone."""
    log_starts: Mapping[PartitionName, int] = field(default_factory=dict)
    high_watermarks: dict[PartitionName, int] = field(default_factory=dict)
    cleaned: Mapping[PartitionName, int] = field(default_factory=dict)
    """Where the next cleaning of each compacted partition begins."""
    uncleanable: set[PartitionName] = field(default_factory=set)
    """Partitions in which the cleaner found damage: it leaves them alone until the broker is restarted."""
    stray: list[Path] = field(default_factory=list)
    waiting: deque[tuple[int, Path]] = field(default_factory=deque)
    """Folders of removed logs, and when each goes."""
    is_checkpoint_due: bool = False
    is_cleaned_due: bool = False


class LogManager:
    """`config_of` gives a topic's configs as they are in force. `on_offline` hears of a directory that failed, and of
    the partitions whose logs it held."""

    def __init__(
        self,
        log_dirs: Sequence[LogDir],
        *,
        config_of: Callable[[str], LogConfig],
        intervals: ManagerIntervals | None = None,
        cleaner: CleanerSettings | None = None,
        producers: ProducerSettings | None = None,
        delete_delay_ms: int = 60_000,
        new_uuid: Callable[[], UUID] = uuid4,
        jitter_below: Callable[[int], int] = lambda _limit: 0,
        on_offline: Callable[[LogDir, Sequence[PartitionName]], None] = lambda _dir, _lost: None,
    ) -> None:
        self._directories = [_Directory(log_dir) for log_dir in log_dirs]
        self._config_of = config_of
        self._intervals = intervals or ManagerIntervals()
        self._cleaner = cleaner or CleanerSettings()
        self._cleaning: Cleaning | None = None
        self._producers = producers
        self._delete_delay_ms = delete_delay_ms
        self._new_uuid = new_uuid
        self._jitter_below = jitter_below
        self._on_offline = on_offline
        self._logs: dict[PartitionName, DiskLog] = {}
        self._futures: dict[PartitionName, DiskLog] = {}
        self.opening: set[OpeningWork] = set()
        self._due_ms: dict[str, int] = {}
        # Topics whose open logs obey older configs.
        self._stale: dict[str, None] = {}
        self._to_check: deque[PartitionName] = deque()
        self._to_expire: deque[PartitionName] = deque()
        self._pending: set[tuple[Path, str]] = set()
        self._flushing: set[Path] = set()
        for directory in self._directories:
            directory.log_dir.on_failure = self._failed
            directory.log_dir.write_recovery_points = partial(self._write_recovery_points, directory)

    # Loading

    def load(
        self,
        now_ms: int,
        *,
        is_stray: Callable[[str, int, UUID | None], bool] = lambda _topic, _number, _id: False,
    ) -> None:
        """Open every log of every directory; `is_stray` says which this broker does not hold by the metadata.

        A directory whose disk fails is offline from then on. Raises FolderNotOfLog and PartitionFoundTwice.
        """
        for directory in self._directories:
            directory.log_dir.now_ms = now_ms
            if directory.log_dir.is_failed:
                continue
            try:
                directory.log_dir.space.begin()
                self._read_checkpoints(directory)
                for name in list_names(directory.log_dir.path, directory.log_dir.fs):
                    self._load_folder(directory, directory.log_dir.path / name, now_ms, is_stray)
                directory.is_loaded = True
            except FolderRefused:
                raise
            except (EnvironmentFault, NoSpaceLeft) as error:
                # A log that cannot be opened must not be made again, empty.
                directory.log_dir.fail(error)
            except KafkaStorageError:
                continue
        self._set_due(now_ms)

    def _set_due(self, now_ms: int) -> None:
        intervals = self._intervals
        for name, interval_ms in self._interval_by_name().items():
            self._due_ms[name] = now_ms + min(interval_ms, intervals.initial_delay_ms)

    def _interval_by_name(self) -> dict[str, int]:
        intervals = self._intervals
        return {
            "retention": intervals.retention_check_ms,
            RECOVERY_POINTS: intervals.flush_recovery_point_ms,
            LOG_STARTS: intervals.flush_start_offset_ms,
            HIGH_WATERMARKS: intervals.high_watermark_checkpoint_ms,
            "producers": intervals.producer_expiration_check_ms,
        }

    def _read_checkpoints(self, directory: _Directory) -> None:
        """The mark of a stop in order goes first: a crash from here on is a crash."""
        log_dir = directory.log_dir
        directory.is_clean = log_dir.fs.exists(log_dir.path / CLEAN_SHUTDOWN)
        if directory.is_clean:
            remove_file(log_dir.path / CLEAN_SHUTDOWN, log_dir.fs)
            sync_folder(log_dir.path, log_dir.fs)
        directory.recovery_points = read_offsets(log_dir.path / RECOVERY_POINTS, log_dir.fs)
        directory.points_on_disk = dict(directory.recovery_points)
        directory.log_starts = read_offsets(log_dir.path / LOG_STARTS, log_dir.fs)
        directory.high_watermarks = read_offsets(log_dir.path / HIGH_WATERMARKS, log_dir.fs)
        directory.cleaned = read_offsets(log_dir.path / CLEANED, log_dir.fs)

    def _load_folder(
        self,
        directory: _Directory,
        folder: Path,
        now_ms: int,
        is_stray: Callable[[str, int, UUID | None], bool],
    ) -> None:
        log_dir = directory.log_dir
        if not log_dir.fs.is_folder(folder):
            return
        if folder.name == REMOTE_INDEX_CACHE or folder.name.startswith(METADATA_TOPIC_PREFIX):
            return
        try:
            found = parse_folder_name(folder.name)
        except ValueError as error:
            raise FolderNotOfLog(folder, str(error)) from error
        if found.kind is FolderKind.DELETED:
            directory.waiting.append((now_ms + self._delete_delay_ms, folder))
            return
        if found.kind is FolderKind.STRAY:
            directory.stray.append(folder)
            return
        name = (found.topic, found.partition)
        if found.kind is FolderKind.CURRENT and is_stray(*name, read_topic_id(folder, log_dir.fs)):
            self._set_stray(directory, folder, name)
            return
        logs = self._logs if found.kind is FolderKind.CURRENT else self._futures
        if name in logs and not self._let_go_of_one(directory, logs, name, folder):
            return
        logs[name] = self._open(directory, folder, name, now_ms, is_clean=directory.is_clean)

    def _let_go_of_one(
        self, directory: _Directory, logs: dict[PartitionName, DiskLog], name: PartitionName, folder: Path
    ) -> bool:
        """A move that failed in its last step may leave two folders: the one that was kept has a note of that, and the
        other is set aside. Whether that is the one that was loaded. Raises PartitionFoundTwice."""
        known = logs[name]
        other = self._directory_of(known)
        is_kept = known.fs.exists(known.folder / KEPT_NOTE), directory.log_dir.fs.exists(folder / KEPT_NOTE)
        if logs is not self._logs or is_kept[0] == is_kept[1]:
            raise PartitionFoundTwice(known.folder, folder)
        if is_kept[0]:
            self._set_stray(directory, folder, name)
        else:
            known.close_files()
            self._set_stray(other, known.folder, name)
            del logs[name]
        return is_kept[1]

    def _set_stray(self, directory: _Directory, folder: Path, name: PartitionName) -> None:
        target = folder.with_name(marked_folder_name(*name, FolderKind.STRAY, self._new_uuid()))
        logger.warning(
            "%s is not assigned to this broker: it is kept as %s and not served", folder, target.name
        )
        self._rename_folder(directory, folder, target)
        directory.stray.append(target)

    def _rename_folder(self, directory: _Directory, folder: Path, target: Path) -> None:
        try:
            directory.log_dir.fs.rename(folder, target)
        except OSError as error:
            raise storage_failure("rename", folder, error) from error
        sync_folder(folder.parent, directory.log_dir.fs)

    def _open(
        self,
        directory: _Directory,
        folder: Path,
        name: PartitionName,
        now_ms: int,
        *,
        is_clean: bool,
        topic_id: UUID | None = None,
        is_new: bool = False,
    ) -> DiskLog:
        """What the checkpoint files said at the start is not of a log that is new: its name may be that of a topic that
        was deleted since."""
        config = self._config_of(name[0])
        jitter_limit = min(config.segment_jitter_ms, config.segment_ms)
        log = DiskLog.open(
            directory.log_dir,
            folder,
            *name,
            config,
            topic_id=topic_id,
            is_clean=is_clean,
            recovery_point=0 if is_new else directory.recovery_points.get(name, 0),
            log_start_offset=0 if is_new else directory.log_starts.get(name, 0),
            was_cleaned=name in directory.cleaned,
            now_ms=now_ms,
            producers=self._producers,
            roll_jitter_ms=self._jitter_below(jitter_limit) if jitter_limit else 0,
        )
        self._note_recovery_point(directory, log, name)
        if not is_new:
            log.update_high_watermark(directory.high_watermarks.get(name, 0))
            log.cleaned_offset = directory.cleaned.get(name)
        return log

    @staticmethod
    def _note_recovery_point(directory: _Directory, log: DiskLog, name: PartitionName) -> None:
        if log.recovery_point < directory.points_on_disk.get(name, 0):
            log.note_lowered_recovery_point()

    def begin_opening(
        self,
        topic: str,
        partition: int,
        topic_id: UUID,
        *,
        now_ms: int,
        directory_id: UUID,
        is_new: bool,
        leader_epoch: int | None,
    ) -> OpeningWork | None:
        """To open and make a log as `get_or_create` does, in a thread: `get` has it when the work is finished. None if
        there is nothing to wait for: the log is there, or no directory takes it."""
        name = (topic, partition)
        directory = next(self._by_load(directory_id), None)
        is_there = name in self._logs or name in self._futures
        if is_there or directory is None or (not is_new and self.offline_dirs):
            return None
        config = self._config_of(topic)
        jitter_limit = min(config.segment_jitter_ms, config.segment_ms)
        open_log = partial(
            DiskLog.open,
            folder=directory.log_dir.path / folder_name(topic, partition),
            topic=topic,
            partition=partition,
            config=config,
            topic_id=topic_id,
            is_clean=True,
            was_cleaned=name in directory.cleaned,
            now_ms=now_ms,
            producers=self._producers,
            roll_jitter_ms=self._jitter_below(jitter_limit) if jitter_limit else 0,
        )
        work = OpeningWork(self, directory.log_dir, name, config, open_log, leader_epoch)
        self.opening.add(work)
        return work

    def take_opened(self, work: OpeningWork, opened: DiskLog) -> None:
        """The work's log is one of the manager's from now on, unless its directory has failed meanwhile, or the log was
        opened on the loop."""
        name = work.name
        if work.log_dir.is_failed or name in self._logs:
            opened.close_files()
            return
        opened.move_into(work.log_dir)
        self._note_recovery_point(self._directory_of(opened), opened, name)
        config = self._config_of(name[0])
        if config != work.config:
            opened.change_config(config)
        self._logs[name] = opened

    # The logs

    @property
    def logs(self) -> Mapping[PartitionName, DiskLog]:
        return self._logs

    @property
    def futures(self) -> Mapping[PartitionName, DiskLog]:
        """Copies that are being built in another log directory, to take the place of the log."""
        return self._futures

    @property
    def live_dirs(self) -> tuple[LogDir, ...]:
        return tuple(each.log_dir for each in self._directories if not each.log_dir.is_failed)

    @property
    def offline_dirs(self) -> tuple[LogDir, ...]:
        return tuple(each.log_dir for each in self._directories if each.log_dir.is_failed)

    def stray_folders(self) -> tuple[Path, ...]:
        return tuple(folder for directory in self._directories for folder in directory.stray)

    def get(self, topic: str, partition: int) -> DiskLog | None:
        return self._logs.get((topic, partition))

    def get_or_create(
        self,
        topic: str,
        partition: int,
        topic_id: UUID,
        *,
        now_ms: int,
        directory_id: UUID | None = None,
        is_new: bool = True,
        is_future: bool = False,
    ) -> DiskLog:
        """The partition's log; a new one comes into the directory named, or else into the one with the fewest.

        Raises NoSpaceLeft where a disk is full; KafkaStorageError where no directory takes it, or where a directory is
        offline and the log, which is not `is_new`, may lie in it.
        """
        name = (topic, partition)
        logs = self._futures if is_future else self._logs
        found = logs.get(name)
        if found is not None:
            found.assign_topic_id(topic_id)
            return found
        if not is_new and self.offline_dirs:
            raise KafkaStorageError(
                f"the log of {topic}-{partition} may lie in a log directory that is offline"
            )
        folder = folder_name(topic, partition)
        directories = self._by_load(directory_id)
        if is_future:
            folder = marked_folder_name(topic, partition, FolderKind.FUTURE, self._new_uuid())
            # No other directory will do; and what is copied is not to be cleaned meanwhile, as the copy of a log that
            # was cleaned in part would be taken for clean.
            directories = (each for each in directories if each.log_dir.directory_id == directory_id)
            current = self._logs.get(name)
            if current is not None and current.cleaning is not None:
                current.cleaning.cancel()
        lacks_space: NoSpaceLeft | None = None
        for directory in directories:
            try:
                log = self._open(
                    directory,
                    directory.log_dir.path / folder,
                    name,
                    now_ms,
                    is_clean=True,
                    topic_id=topic_id,
                    is_new=True,
                )
            except NoSpaceLeft as error:
                lacks_space = error
                continue
            except KafkaStorageError:
                continue
            logs[name] = log
            return log
        if lacks_space is not None:
            raise lacks_space
        raise KafkaStorageError(f"no log directory takes the log of {topic}-{partition}")

    def _by_load(self, directory_id: UUID | None) -> Iterator[_Directory]:
        counts = Counter(id(log.log_dir) for logs in (self._logs, self._futures) for log in logs.values())
        counts.update(id(work.log_dir) for work in self.opening)
        live = [each for each in self._directories if not each.log_dir.is_failed]
        named = [each for each in live if each.log_dir.directory_id == directory_id]
        yield from named or sorted(
            live, key=lambda each: (each.log_dir.space.is_full, counts[id(each.log_dir)])
        )

    def change_configs(self, topics: Iterable[str]) -> bool:
        """The configs of these topics changed, and their open logs obey the new ones: those of some topics now, those
        of the others with the next calls. Whether there are others; a change of a broker's config is one of all topics.
        """
        self._stale.update(dict.fromkeys(topics))
        configs: dict[str, LogConfig] = {}
        for topic in list(islice(self._stale, _CONFIGS_AT_ONCE)):
            del self._stale[topic]
            try:
                configs[topic] = self._config_of(topic)
            except ValueError as error:
                logger.error("the logs of %s keep the configs that they have: %s", topic, error)
        for logs in (self._logs, self._futures):
            for name, log in logs.items():
                if name[0] in configs:
                    log.change_config(configs[name[0]])
        return bool(self._stale)

    # Removing and moving

    def delete(self, topic: str, partition: int, *, now_ms: int, is_future: bool = False) -> None:
        """Set the log's folder aside at once; its files go after the topic's `file.delete.delay.ms`.

        Raises KafkaStorageError, also for an unknown partition that a directory which is offline may hold.
        """
        logs = self._futures if is_future else self._logs
        log = logs.get((topic, partition))
        if log is None:
            if self.offline_dirs:
                raise KafkaStorageError(f"{topic}-{partition} may lie in a log directory that is offline")
            return
        directory = self._directory_of(log)
        target = log.folder.with_name(
            marked_folder_name(topic, partition, FolderKind.DELETED, self._new_uuid())
        )
        self._rename_log(directory, log, target)
        del logs[topic, partition]
        log.close_files()
        directory.waiting.append((now_ms + log.config.file_delete_delay_ms, target))
        directory.is_checkpoint_due = True

    def set_stray(self, topic: str, partition: int) -> None:
        """The metadata no longer gives this log to the broker, and do not say that it was deleted: keep it aside."""
        log = self._logs[topic, partition]
        directory = self._directory_of(log)
        target = log.folder.with_name(
            marked_folder_name(topic, partition, FolderKind.STRAY, self._new_uuid())
        )
        self._rename_log(directory, log, target)
        del self._logs[topic, partition]
        log.close_files()
        directory.stray.append(target)
        directory.is_checkpoint_due = True

    def promote_future(self, topic: str, partition: int, *, now_ms: int) -> DiskLog:
        """The copy in the other directory has caught up: it becomes the log, and the old one is deleted.

        Raises KafkaStorageError with the log as it was. A crash in between leaves the copy alone, which then is
        promoted at the next start.
        """
        name = (topic, partition)
        future, old = self._futures[name], self._logs.get(name)
        target = self._directory_of(future)
        target.log_dir.check()
        place = target.log_dir.path / folder_name(topic, partition)
        if old is None:
            self._rename_log(target, future, place)
        else:
            self._replace_log(old, future, place, now_ms)
        del self._futures[name]
        self._logs[name] = future
        target.is_checkpoint_due = True
        return future

    def _replace_log(self, old: DiskLog, future: DiskLog, place: Path, now_ms: int) -> None:
        source, kept = self._directory_of(old), old.folder
        aside = kept.with_name(
            marked_folder_name(old.topic, old.partition, FolderKind.DELETED, self._new_uuid())
        )
        self._rename_log(source, old, aside)
        try:
            self._rename_log(self._directory_of(future), future, place)
        except KafkaStorageError:
            # The other folder may have its new name all the same.
            try:
                replace_file(aside / KEPT_NOTE, b"", source.log_dir.fs)
            except StorageFailed as error:
                raise source.log_dir.fail(error) from error
            self._rename_log(source, old, kept)
            raise
        future.cleaned_offset = old.cleaned_offset
        future.update_high_watermark(old.high_watermark)
        old.close_files()
        source.waiting.append((now_ms + old.config.file_delete_delay_ms, aside))
        source.is_checkpoint_due = True

    def begin_future_flush(self, topic: str, partition: int) -> DiskWork | None:
        """Work that writes the copy to its disk; None where that is under way, or done. Raises KafkaStorageError."""
        future = self._futures[topic, partition]
        if future.folder in self._flushing:
            return None
        work = future.begin_flush()
        if work is None:
            return None
        self._flushing.add(future.folder)
        return _Flush(work, self._flushing)

    def _rename_log(self, directory: _Directory, log: DiskLog, target: Path) -> None:
        directory.log_dir.check()
        try:
            self._rename_folder(directory, log.folder, target)
        except StorageFailed as error:
            raise directory.log_dir.fail(error) from error
        log.move_to(target)

    def _directory_of(self, log: DiskLog) -> _Directory:
        return next(each for each in self._directories if each.log_dir is log.log_dir)

    def _failed(self, log_dir: LogDir, _error: Exception) -> None:
        """A directory's disk failed: its logs are let go as they are."""
        lost: list[PartitionName] = []
        for logs in (self._logs, self._futures):
            for name in [each for each, log in logs.items() if log.log_dir is log_dir]:
                logs.pop(name).close_files()
                if logs is self._logs:
                    lost.append(name)
        self._on_offline(log_dir, lost)

    # In the background

    def tick(self, now_ms: int) -> list[DiskWork]:
        """Do what is due, and answer the work that waits for the disk."""
        works: list[DiskWork] = []
        for directory in self._directories:
            if directory.log_dir.is_failed:
                continue
            directory.log_dir.now_ms = now_ms
            try:
                directory.log_dir.space.look()
            except StorageFailed as error:
                directory.log_dir.fail(error)
                continue
            removal = self._removal(directory, now_ms)
            if removal is not None:
                works.append(removal)
        if self._is_due("retention", now_ms):
            self._to_check = deque(self._logs)
        if self._is_due("producers", now_ms):
            self._to_expire = deque(self._logs)
        self._check_logs(now_ms)
        works += self._flushes(now_ms)
        works += self._checkpoints(now_ms)
        return works

    def _is_due(self, name: str, now_ms: int) -> bool:
        if now_ms < self._due_ms.get(name, 0):
            return False
        self._due_ms[name] = now_ms + self._interval_by_name()[name]
        return True

    def _removal(self, directory: _Directory, now_ms: int) -> _Removal | None:
        """Of what has waited long enough. A topic may have thousands of partitions, and a file of a GiB takes long."""
        files = directory.log_dir.retired.take_due(_FILES_A_TICK)
        folders: list[Path] = []
        waiting = directory.waiting
        while waiting and waiting[0][0] <= now_ms and len(folders) < _FOLDERS_A_TICK:
            folders.append(waiting.popleft()[1])
        return _Removal(directory.log_dir, files, folders) if files or folders else None

    def _check_logs(self, now_ms: int) -> None:
        """A part of the logs each time, so that a broker of many does not stand still."""
        for queue, check in ((self._to_check, self._retain), (self._to_expire, self._expire)):
            done = 0
            for _ in range(min(len(queue), _LOGS_A_TICK)):
                name = queue.popleft()
                log = self._logs.get(name)
                if log is not None:
                    try:
                        deleted = check(log, now_ms)
                    except LogError as error:
                        logger.warning("%s-%d: %s", log.topic, log.partition, error)
                        continue
                    if deleted >= MOST_DELETED_AT_ONCE:
                        queue.append(name)
                    done += deleted
                    if done >= MOST_DELETED_AT_ONCE:
                        break

    def _retain(self, log: DiskLog, now_ms: int) -> int:
        """How many segments went. A log that is being cleaned is looked at when that is done."""
        return log.delete_old_segments(now_ms) if log.cleaning is None else 0

    def _expire(self, log: DiskLog, now_ms: int) -> int:
        """As how many segments that counts: a log may know 20,000 producers, and all are looked at."""
        count = len(log.producers.entries)
        log.producers.expire(now_ms)
        return count // _PRODUCERS_AS_A_SEGMENT

    def _flushes(self, now_ms: int) -> list[DiskWork]:
        """Of the logs that rolled, all but the last segment; and of those that `flush.ms` makes due, all."""
        works: list[DiskWork] = []
        for logs in (self._logs, self._futures):
            for log in tuple(logs.values()):
                if log.folder in self._flushing or not log.unflushed:
                    continue
                is_due = now_ms - log.last_flush_ms >= log.config.flush_ms
                up_to = None if is_due else log.segments[-1].base_offset
                if up_to is not None and up_to <= log.recovery_point:
                    continue
                try:
                    work = log.begin_flush(up_to=up_to)
                except LogError as error:
                    logger.warning("%s-%d: %s", log.topic, log.partition, error)
                    continue
                if work is not None:
                    self._flushing.add(log.folder)
                    works.append(_Flush(work, self._flushing))
        return works

    def _checkpoints(self, now_ms: int) -> list[DiskWork]:
        due = {name for name in (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS) if self._is_due(name, now_ms)}
        works: list[DiskWork] = []
        for directory in self._directories:
            if directory.log_dir.is_failed:
                continue
            is_urgent = directory.is_checkpoint_due or directory.log_dir.was_truncated
            names = due | ({RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, CLEANED} if is_urgent else set())
            if directory.is_cleaned_due:
                names |= {CLEANED}
            directory.is_checkpoint_due = directory.log_dir.was_truncated = directory.is_cleaned_due = False
            works += [
                self._checkpoint(directory, name)
                for name in sorted(names)
                if self._may_write(directory, name)
            ]
        return works

    def _may_write(self, directory: _Directory, name: str) -> bool:
        """One write of a file at a time; a second one is due at the next tick."""
        key = (directory.log_dir.path, name)
        if key in self._pending:
            directory.is_checkpoint_due = True
            return False
        return True

    def _checkpoint(self, directory: _Directory, name: str) -> CheckpointWork:
        self._pending.add((directory.log_dir.path, name))
        return self._checkpoint_work(directory, name, self._pending)

    def _checkpoint_work(
        self, directory: _Directory, name: str, pending: set[tuple[Path, str]]
    ) -> CheckpointWork:
        log_dir, offsets = directory.log_dir, self._offsets_for(directory, name)
        if name == RECOVERY_POINTS:
            for each, offset in offsets.items():
                directory.points_on_disk[each] = max(offset, directory.points_on_disk.get(each, 0))
        number = log_dir.next_checkpoint()
        return CheckpointWork(log_dir, name, encode_offsets(offsets), number, log_dir.lowered, pending)

    def _write_recovery_points(self, directory: _Directory) -> None:
        """Before a log that was cut is written to again: after a crash the start would take what it finds below the
        older recovery point for flushed, and not look at it. One write serves all logs that were cut together."""
        work = self._checkpoint_work(directory, RECOVERY_POINTS, set())
        work.run()
        work.finish(None)

    def _offsets_for(self, directory: _Directory, name: str) -> dict[PartitionName, int]:
        mine = {each: log for each, log in self._logs.items() if log.log_dir is directory.log_dir}
        if name == HIGH_WATERMARKS:
            return {each: log.high_watermark for each, log in mine.items()}
        if name == CLEANED:
            return {each: log.cleaned_offset for each, log in mine.items() if log.cleaned_offset is not None}
        futures = {each: log for each, log in self._futures.items() if log.log_dir is directory.log_dir}
        both = {**futures, **mine}
        if name == LOG_STARTS:
            return {each: log.log_start_offset for each, log in both.items() if log.has_partial_start}
        return {each: log.recovery_point for each, log in both.items()}

    # Compaction

    def clean(self, now_ms: int) -> DiskWork | None:
        """The next piece of work of the log cleaner: of the round that is under way, or of the log that is due first.
        None where none is due: then ask again after `log.cleaner.backoff.ms`. One piece at a time."""
        while True:
            if self._cleaning is None:
                self._cleaning = self._begin_cleaning(now_ms)
            if self._cleaning is None:
                return None
            work = self._cleaning.next_work()
            if work is not None:
                return work
            ended, self._cleaning = self._cleaning, None
            self._end_cleaning(ended, now_ms)
            if ended.end_offset is None and ended.damage is None:
                # It was cancelled, or the disk is full: it may go better later.
                return None

    def cancel_cleaning(self) -> None:
        """For a stop: the piece that runs ends soon, and `clean` is not called again."""
        if self._cleaning is not None:
            self._cleaning.cancel()

    def uncleanable(self) -> tuple[PartitionName, ...]:
        """Partitions that the cleaner passes over, as their logs are damaged."""
        return tuple(sorted(name for directory in self._directories for name in directory.uncleanable))

    def _begin_cleaning(self, now_ms: int) -> Cleaning | None:
        """The log with the largest dirty part, of those that are due."""
        if not self._cleaner.is_enabled:
            return None
        best: tuple[DiskLog, Cleanable] | None = None
        for name, log in tuple(self._logs.items()):
            directory = self._directory_of(log) if log.config.is_compacted else None
            if name in self._futures:
                continue
            if directory is None or directory.log_dir.is_failed or name in directory.uncleanable:
                continue
            try:
                part = log.cleanable(now_ms)
            except CorruptRecord:
                directory.uncleanable.add(name)
                continue
            except LogError as error:
                logger.warning("%s-%d: %s", *name, error)
                continue
            if part.resets_checkpoint:
                log.cleaned_offset = part.first_dirty_offset
                directory.is_cleaned_due = True
            is_due = part.is_due(log.config.min_cleanable_dirty_ratio)
            if is_due and (best is None or part.dirty_ratio > best[1].dirty_ratio):
                best = log, part
        if best is None:
            return None
        try:
            return Cleaning(
                *best,
                now_ms=now_ms,
                most_slots=self._cleaner.dedupe_buffer_bytes // SLOT_BYTES,
                pause=self._cleaner.pause,
            )
        except StorageFailed as error:
            best[0].log_dir.fail(error)
            return None

    def _end_cleaning(self, cleaning: Cleaning, now_ms: int) -> None:
        log = cleaning.log
        name = (log.topic, log.partition)
        directory = self._directory_of(log)
        if cleaning.damage is not None:
            logger.error(
                "%s is damaged, and not cleaned until the broker is restarted: %s",
                log.folder,
                cleaning.damage,
            )
            directory.uncleanable.add(name)
            return
        if cleaning.end_offset is None or self._logs.get(name) is not log:
            return
        logger.info(
            "cleaned %s up to offset %d: %d bytes became %d",
            log.folder,
            cleaning.end_offset,
            cleaning.bytes_before,
            cleaning.bytes_after,
        )
        log.cleaned_offset = cleaning.end_offset
        directory.is_cleaned_due = True
        try:
            self._retain(log, now_ms)
        except LogError as error:
            logger.warning("%s-%d: %s", *name, error)

    # The end

    def close(self, broker_epoch: int) -> None:
        """Stop in order: close all logs, write the checkpoints, and mark each directory for which all of that
        succeeded."""
        for directory in self._directories:
            log_dir = directory.log_dir
            if log_dir.is_failed:
                continue
            is_closed = self._close_logs(log_dir)
            try:
                for name in (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, CLEANED):
                    work = self._checkpoint(directory, name)
                    work.run()
                    work.finish(None)
                log_dir.retired.close()
            except StorageFailed as error:
                log_dir.fail(error)
                continue
            if is_closed and (directory.is_clean or directory.is_loaded):
                mark_clean_shutdown([log_dir.path], broker_epoch, log_dir.fs)

    def _close_logs(self, log_dir: LogDir) -> bool:
        is_closed = True
        for log in [*self._logs.values(), *self._futures.values()]:
            if log.log_dir is log_dir:
                try:
                    log.close()
                except LogError as error:
                    logger.error("%s-%d was not closed in order: %s", log.topic, log.partition, error)
                    is_closed = False
        return is_closed and not log_dir.is_failed


@dataclass(slots=True)
class _Removal:
    log_dir: LogDir
    files: Sequence[Path]
    folders: Sequence[Path]

    def run(self) -> None:
        """Raises StorageFailed."""
        for path in self.files:
            remove_file(path, self.log_dir.fs)
        for folder in self.folders:
            remove_log_folder(folder, self.log_dir)

    def finish(self, error: Exception | None) -> None:
        if error is not None:
            self.log_dir.fail(error)


@dataclass(slots=True)
class _Flush:
    work: FlushWork
    flushing: set[Path]

    def run(self) -> None:
        self.work.run()

    def finish(self, error: Exception | None) -> None:
        self.flushing.discard(self.work.folder)
        if error is None:
            self.work.log.flushed(self.work)
        elif not isinstance(error, StorageFull):
            self.work.log.log_dir.fail(error)


def remove_log_folder(folder: Path, log_dir: LogDir) -> None:
    """Remove a folder that was set aside, with its files. Raises StorageFailed."""
    fs = log_dir.fs
    if not fs.exists(folder):
        return
    for name in list_names(folder, fs):
        remove_file(folder / name, fs)
    try:
        fs.remove_folder(folder)
    except OSError as error:
        raise StorageFailed("remove", folder, error) from error
