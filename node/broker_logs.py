"""The log manager of a broker on the event loop: its logs for the replicas, and its background work in a thread."""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from uuid import UUID

from kquorum.broker.adapters.log.disk_log import DiskLog
from kquorum.broker.adapters.log.log_manager import DiskWork, LogManager, OpeningWork
from kquorum.broker.log.errors import KafkaStorageError
from kquorum.broker.replica.partition import TopicPartition
from kquorum.metadata.image.directories import is_reserved
from kquorum.storage.errors import EnvironmentFault

log = logging.getLogger("broker.log_manager")

TICK_EVERY_S = 1.0
# So many new logs are made before the first of them is used.
_OPENED_TOGETHER = 8


class CleanerPace:
    """Holds the cleaner's thread to a rate: bytes/s read and written (`log.cleaner.io.max.bytes.per.second`)."""

    def __init__(self, max_bytes_per_s: float) -> None:
        self._max_bytes_per_s = max_bytes_per_s
        self._free_s = 0.0
        self._is_stopped = threading.Event()

    def pause(self, count: int) -> None:
        """For the cleaner's thread."""
        now_s = time.monotonic()
        self._free_s = max(self._free_s, now_s) + count / self._max_bytes_per_s
        if self._free_s > now_s:
            self._is_stopped.wait(self._free_s - now_s)

    def stop(self) -> None:
        """Nothing pauses from now on: the piece of work that is under way ends soon."""
        self._is_stopped.set()


class BrokerLogs:
    """Implements broker.replica.replica_manager.PartitionLogs and broker.replica.log_moves.MovingLogs. Made and used on
    the loop."""

    def __init__(
        self, manager: LogManager, now_ms: Callable[[], int], *, cleaner_backoff_ms: int | None = None
    ) -> None:
        """`cleaner_backoff_ms` is how long the cleaner rests when no log is due; None: there is no cleaner."""
        self._manager = manager
        self._now_ms = now_ms
        self._cleaner_backoff_ms = cleaner_backoff_ms
        self._tasks: list[asyncio.Task[None]] = []
        self._running = set[asyncio.Future[None]]()
        self._flushes = set[asyncio.Task[None]]()
        self._to_open: deque[tuple[TopicPartition, OpeningWork]] = deque()
        self._opening: asyncio.Task[None] | None = None
        # Called when the files of some logs are made, or could not be.
        self.on_made: Callable[[Sequence[TopicPartition]], None] = lambda _made: None
        self._is_changing = False
        self.preferred: Callable[[TopicPartition], UUID | None] = lambda _partition: None
        """The directory that an administrator asked for before there was a log."""

    @property
    def manager(self) -> LogManager:
        return self._manager

    def begin_opening(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID,
        *,
        directory_id: UUID,
        is_new: bool,
        leader_epoch: int | None,
    ) -> bool:
        """In a thread, one after the other: making the files of a log waits for the disk several times."""
        work = self._manager.begin_opening(
            *topic_partition,
            topic_id,
            now_ms=self._now_ms(),
            directory_id=self._directory_for(topic_partition, directory_id),
            is_new=is_new,
            leader_epoch=leader_epoch,
        )
        if work is None:
            return True
        self._to_open.append((topic_partition, work))
        if self._opening is None:
            self._opening = asyncio.get_running_loop().create_task(self._open_all(), name="log-opening")
        return False

    async def _open_all(self) -> None:
        while self._to_open:
            some = [self._to_open.popleft() for _ in range(min(len(self._to_open), _OPENED_TOGETHER))]
            try:
                await self._finish([work for _, work in some])
            except Exception:
                # `open` then says for each of them what is wrong.
                log.exception("new logs could not be made")
            self.on_made([topic_partition for topic_partition, _ in some])
        self._opening = None

    def _directory_for(self, topic_partition: TopicPartition, directory_id: UUID) -> UUID:
        """For a log that is not there yet: where an administrator wants it, if the controller leaves that open."""
        preferred = self.preferred(topic_partition)
        return preferred if preferred is not None and is_reserved(directory_id) else directory_id

    def open(
        self, topic_partition: TopicPartition, topic_id: UUID, *, directory_id: UUID, is_new: bool
    ) -> DiskLog:
        manager = self._manager
        if manager.get(*topic_partition) is None:
            future = manager.futures.get(topic_partition)
            if future is None:
                directory_id = self._directory_for(topic_partition, directory_id)
            elif future.topic_id == topic_id and (
                directory_id == future.directory_id or not manager.offline_dirs
            ):
                # A crash or a failed disk between the two renames of a move; and of a log whose disk was replaced, the
                # copy is what there is.
                return manager.promote_future(*topic_partition, now_ms=self._now_ms())
        return manager.get_or_create(
            *topic_partition, topic_id, now_ms=self._now_ms(), directory_id=directory_id, is_new=is_new
        )

    def change_configs(self, topics: Iterable[str]) -> None:
        """Their open logs obey the new ones: of some topics at once, of others in later turns of the loop."""
        has_more = self._manager.change_configs(topics)
        if has_more and not self._is_changing:
            asyncio.get_running_loop().call_soon(self._change_more)
        self._is_changing = self._is_changing or has_more

    def _change_more(self) -> None:
        self._is_changing = False
        self.change_configs(())

    def delete(self, topic_partition: TopicPartition, topic_id: UUID) -> None:
        found = self._manager.get(*topic_partition)
        if found is None or found.topic_id == topic_id:
            self._manager.delete(*topic_partition, now_ms=self._now_ms())

    # MovingLogs, for moves between the directories

    def future(self, topic_partition: TopicPartition) -> DiskLog | None:
        return self._manager.futures.get(topic_partition)

    def has_log(self, topic_partition: TopicPartition) -> bool:
        return self._manager.get(*topic_partition) is not None

    def open_future(self, topic_partition: TopicPartition, topic_id: UUID, directory_id: UUID) -> DiskLog:
        return self._manager.get_or_create(
            *topic_partition, topic_id, now_ms=self._now_ms(), directory_id=directory_id, is_future=True
        )

    def delete_future(self, topic_partition: TopicPartition) -> None:
        if topic_partition in self._manager.futures:
            self._manager.delete(*topic_partition, now_ms=self._now_ms(), is_future=True)

    def promote_future(self, topic_partition: TopicPartition) -> DiskLog:
        return self._manager.promote_future(*topic_partition, now_ms=self._now_ms())

    def is_as_durable(self, topic_partition: TopicPartition) -> bool:
        current = self._manager.logs.get(topic_partition)
        future = self._manager.futures.get(topic_partition)
        if current is None or future is None:
            raise KafkaStorageError("a log directory has failed, and what was there is gone")
        return future.recovery_point >= current.recovery_point

    def flush_future(self, topic_partition: TopicPartition) -> None:
        work = self._manager.begin_future_flush(*topic_partition)
        if work is not None:
            task = asyncio.get_running_loop().create_task(self._finish((work,)))
            self._flushes.add(task)
            task.add_done_callback(self._flushes.discard)

    def write_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """The log manager writes them from its logs, with its other checkpoints."""

    async def load(self, is_stray: Callable[[str, int, UUID | None], bool]) -> None:
        """In a thread: after a crash segments are read again, and heartbeats must go on meanwhile. Raises
        FolderNotOfLog and PartitionFoundTwice."""
        await asyncio.to_thread(self._manager.load, self._now_ms(), is_stray=is_stray)
        loop = asyncio.get_running_loop()
        self._tasks.append(loop.create_task(self._tick(), name="log-manager"))
        if self._cleaner_backoff_ms is not None:
            self._tasks.append(
                loop.create_task(self._clean(self._cleaner_backoff_ms / 1000), name="log-cleaner")
            )

    async def close(self, broker_epoch: int) -> None:
        """When nothing is appended any more."""
        if not self._tasks:
            return
        self._manager.cancel_cleaning()
        tasks = [*self._tasks, *(() if self._opening is None else (self._opening,))]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        if self._running:
            await asyncio.wait(self._running)
        await asyncio.to_thread(self._manager.close, broker_epoch)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_EVERY_S)
            try:
                works = self._manager.tick(self._now_ms())
                if works:
                    await self._finish(works)
            except EnvironmentFault as error:
                log.error("%s", error)
            except Exception:
                # Retention, flushes and checkpoints of the other logs go on.
                log.exception("a turn of the log manager failed")

    async def _clean(self, backoff_s: float) -> None:
        """Compaction, piece by piece, each in a thread."""
        while True:
            try:
                work = self._manager.clean(self._now_ms())
                if work is not None:
                    await self._finish((work,))
            except Exception:
                log.exception("a turn of the log cleaner failed")
                work = None
            if work is None:
                await asyncio.sleep(backoff_s)

    async def _finish(self, works: Sequence[DiskWork]) -> None:
        """What was begun is finished although the broker stops: the manager counts on it."""
        running = asyncio.ensure_future(self._run(works))
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        await asyncio.shield(running)

    async def _run(self, works: Sequence[DiskWork]) -> None:
        errors = await asyncio.to_thread(_run_all, works)
        for work, error in zip(works, errors, strict=True):
            work.finish(error)


def _run_all(works: Sequence[DiskWork]) -> list[Exception | None]:
    errors: list[Exception | None] = []
    for work in works:
        try:
            work.run()
        except EnvironmentFault as error:
            errors.append(error)
        else:
            errors.append(None)
    return errors
