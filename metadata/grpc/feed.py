"""Changes as they are committed, decoded once and handed to every watcher; and how a watch catches up with them.

Each watcher has a bounded queue. A burst, as when a broker with many partitions dies, is handed out at the pace at
which the watchers take it; the feed waits for all of them at the same time. One that takes next to nothing for a while
is not waited for before it has caught up, and is cut off when its queue is full: the log keeps what it missed, and it
comes back with the offset from which to resume.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from typing import Final

from kquorum.metadata.changes import Change, ChangeKind, ChangeTracker
from kquorum.metadata.grpc.source import CommittedLog, LogUnreadable, OffsetOutOfRange, ServerStopping
from kquorum.metadata.image.errors import ReplayError
from kquorum.wire.errors import DecodeError

WATCHER_QUEUE_CHANGES = 10_000

# How long the feed waits for a watcher whose queue is half full and who takes next to nothing: in that time a twentieth
# of its queue is expected, so that a machine with much else to do is no reason to give a reader up.
PATIENCE_SECONDS = 0.5
TAKEN_IN_TIME = 20

# A tracker keeps what changed since the image that it stands on; beyond this it moves to the current one.
REBASE_AFTER_CHANGES = 50_000


class WatcherOverrun(Exception):
    """The watcher fell behind; `resume_offset` is the first offset it has not been given in full."""

    def __init__(self, resume_offset: int, queued: int) -> None:
        self.resume_offset = resume_offset
        super().__init__(
            f"this watcher is too slow: {queued} changes were waiting for it; resume with from_offset={resume_offset}"
        )


class Watcher:
    """One stream's queue of changes of the kinds it wants (none named: all), from `min_offset` on.

    The queue never holds more than `limit` changes and what one batch of the log added to them.
    """

    def __init__(self, kinds: Iterable[ChangeKind], min_offset: int, limit: int) -> None:
        self._kinds = frozenset(kinds)
        self._min_offset = min_offset
        self._limit = limit
        self._queue: deque[Change] = deque()
        self._failure: Exception | None = None
        self._wakeup = asyncio.Event()
        self._has_room = asyncio.Event()
        self._is_stuck = False
        self._taken = 0

    def wants(self, change: Change) -> bool:
        return change.offset >= self._min_offset and (not self._kinds or change.kind in self._kinds)

    def offer(self, changes: Iterable[Change]) -> None:
        """Queue what is wanted; where the queue is full already it is dropped and the watcher fails."""
        wanted = [change for change in changes if self.wants(change)]
        if not wanted or self._failure is not None:
            return
        if len(self._queue) >= self._limit:
            self.fail(WatcherOverrun(self._queue[0].offset, len(self._queue)))
            return
        self._queue.extend(wanted)
        self._wakeup.set()
        if self._is_half_full:
            self._has_room.clear()

    def note_position(self, position: int) -> None:
        """All changes below this offset have been offered; nothing to a watcher who asks for changes alone."""

    async def wait_for_room(self) -> None:
        """Return when the queue is half empty, or the watcher has failed, or takes next to nothing."""
        while self.is_waited_for:
            before = self._taken
            try:
                await asyncio.wait_for(self._has_room.wait(), PATIENCE_SECONDS)
            except TimeoutError:
                self._is_stuck = self._taken - before < max(1, self._limit // TAKEN_IN_TIME)

    @property
    def is_waited_for(self) -> bool:
        return self._failure is None and not self._is_stuck and self._is_half_full

    def fail(self, failure: Exception) -> None:
        self._queue.clear()
        self._failure = failure
        self._wakeup.set()
        self._has_room.set()

    def leave(self) -> None:
        """Its stream has ended: the feed no longer waits for it."""
        self._is_stuck = True
        self._has_room.set()

    @property
    def _is_half_full(self) -> bool:
        return len(self._queue) > self._limit // 2

    def _note_room(self) -> None:
        """Something was taken. One that was given up is waited for again once it has caught up: a change now and then
        is not enough, or it would hold up the others at each batch."""
        if not self._is_half_full:
            self._has_room.set()
        if not self._queue:
            self._is_stuck = False

    async def changes(self) -> AsyncGenerator[Change]:
        """Endless; raises what `fail` was given."""
        while True:
            while self._queue:
                change = self._queue.popleft()
                self._taken += 1
                yield change
                self._note_room()
            if self._failure is not None:
                raise self._failure
            self._wakeup.clear()
            await self._wakeup.wait()


class ChangeFeed:
    """Follows the log while anyone watches; `position` is the next offset it will read."""

    def __init__(self, log: CommittedLog) -> None:
        self._log = log
        self._tracker: ChangeTracker | None = None
        self._task: asyncio.Task[None] | None = None
        self._watchers: set[Watcher] = set()
        self._holders = 0
        self._failure: Exception | None = None

    @property
    def tracker(self) -> ChangeTracker:
        assert self._tracker is not None, "the feed runs only while it is held"
        return self._tracker

    def hold(self) -> None:
        """Keep the feed going, starting it if need be at the current image; `release` as often."""
        self._holders += 1
        if self._tracker is None or self._task is None or self._task.done():
            self._failure = None
            self._tracker = ChangeTracker(self._log.source.committed_image())
            self._task = asyncio.get_running_loop().create_task(
                self._run(self._tracker), name="grpc-change-feed"
            )

    def release(self) -> None:
        self._holders -= 1
        if self._holders == 0 and self._task is not None:
            self._task.cancel()
            self._task, self._tracker = None, None

    def attach(self, watcher: Watcher) -> None:
        """A watcher of a feed that has failed fails too."""
        self._watchers.add(watcher)
        if self._failure is not None:
            watcher.fail(self._failure)

    def detach(self, watcher: Watcher) -> None:
        """Also while the feed waits for it."""
        self._watchers.discard(watcher)
        watcher.leave()

    async def _run(self, tracker: ChangeTracker) -> None:
        try:
            while True:
                await self._log.wait_for(tracker.position)
                await self._advance(tracker)
                tracker.maybe_rebase(self._log.source.committed_image(), REBASE_AFTER_CHANGES)
                await asyncio.sleep(0)  # a long way to catch up must not keep the node from its heartbeats
        except (LogUnreadable, OffsetOutOfRange, ServerStopping, ReplayError, DecodeError) as failure:
            self._failure = failure
            for watcher in tuple(self._watchers):
                await self._log.pieces.take()
                watcher.fail(failure)

    async def _advance(self, tracker: ChangeTracker) -> None:
        for batch in self._log.read(tracker.position, self._log.high_watermark):
            changes = tracker.replay(batch)
            # Who attaches while this batch is handed out has caught up with it already.
            for watcher in tuple(self._watchers):
                await self._log.pieces.take()
                if watcher in self._watchers:
                    watcher.offer(changes)
                    watcher.note_position(tracker.resume_offset)
            if slow := [watcher for watcher in self._watchers if watcher.is_waited_for]:
                await asyncio.gather(*(watcher.wait_for_room() for watcher in slow))


# A follower may resume at a node that lags behind the one it read before; further ahead it must be a mistake.
AHEAD_LIMIT_OFFSETS: Final = 100_000


def check_in_range(log: CommittedLog, offset: int, *, follow: bool, end: int | None = None) -> None:
    """Raises OffsetOutOfRange for what was deleted, and for what is not there and will not come soon."""
    log.check_not_deleted(offset)
    highest = max(log.high_watermark, end or 0) + (AHEAD_LIMIT_OFFSETS if follow else 0)
    if offset > highest:
        raise OffsetOutOfRange(
            f"offset {offset} is above the high watermark of node {log.source.node_id}, "
            f"{log.high_watermark}; the log starts at {log.source.log_start_offset()}"
        )


def tracker_before(log: CommittedLog, offset: int) -> ChangeTracker:
    """One that has seen nothing at or above `offset`. Raises OffsetOutOfRange."""
    image = log.image_before(offset)
    if image is None:
        raise OffsetOutOfRange(
            f"what changed from offset {offset} on cannot be told without the state before it; the earliest offset "
            f"to watch from is {log.earliest_image_offset()}"
        )
    return ChangeTracker(image)


async def catch_up(
    log: CommittedLog, feed: ChangeFeed, tracker: ChangeTracker, watcher: Watcher
) -> AsyncGenerator[Change]:
    """The changes up to where the feed stands; the watcher is attached in the very turn in which it is reached."""
    while tracker.position < feed.tracker.position:
        async with log.slices:
            changes = [
                change
                for batch in log.read(tracker.position, feed.tracker.position)
                for change in tracker.replay(batch)
                if watcher.wants(change)
            ]
        for change in changes:
            yield change
    feed.attach(watcher)
