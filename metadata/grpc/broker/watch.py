"""`Broker.Watch`: a member's part of the image, and what changes in it, from the feed that all watchers share.

What waits for a member is told at once, as one change of its picture, so a slow one is told less often and not later.
One that takes nothing while its queue fills up is cut off (see grpc_feed), and resumes from its last offset.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Final

from metadata.changes import QUORUM_KINDS, Change, ChangeKind, ChangeTracker, PartitionTransition
from metadata.grpc.broker.picture import Concerns, PictureChange, concerns_member, state_messages
from metadata.grpc.feed import ChangeFeed, Watcher
from metadata.grpc.following import catch_up, check_in_range, tracker_before
from metadata.grpc.source import CommittedLog
from wire.proto import broker_pb2 as pb

# How often a member hears how far the log is when nothing changes for it.
OFFSET_SPACING_S: Final = 0.1

# A long way to catch up is told in steps of about so many changes.
CHANGES_PER_STEP: Final = 2_000

# A topic without partitions is nothing to a member, and it finds the controllers by itself.
_NOT_FOR_MEMBERS: Final = QUORUM_KINDS | {ChangeKind.TOPIC_CREATED}


class MemberWatcher(Watcher):
    """Takes the changes that concern a member, and knows up to where they go."""

    def __init__(self, concerns: Concerns, min_offset: int, limit: int) -> None:
        super().__init__((), min_offset, limit)
        self._concerns = concerns
        self._position = min_offset

    def wants(self, change: Change) -> bool:
        subject = change.subject
        if isinstance(subject, PartitionTransition):
            before = subject.before
            if not self._concerns(subject.after) and (before is None or not self._concerns(before)):
                return False
        return change.kind not in _NOT_FOR_MEMBERS and super().wants(change)

    def note_position(self, position: int) -> None:
        if position > self._position:
            self._position = position
            self._wakeup.set()

    async def steps(self, told: int) -> AsyncGenerator[tuple[PictureChange, int]]:
        """Endless: all that waits, and the offset up to which that is all; `told` is the first offset not yet told.
        Raises what `fail` was given."""
        loop = asyncio.get_running_loop()
        while True:
            quiet_until = loop.time() + OFFSET_SPACING_S
            while self._is_quiet and self._position <= told:
                await self._woken(None)
            while self._is_quiet and (left := quiet_until - loop.time()) > 0:
                await self._woken(left)
            if self._failure is not None:
                raise self._failure
            change = self._take_all()
            told = self._position
            yield change, told - 1

    @property
    def position(self) -> int:
        """All changes below it have been offered."""
        return self._position

    @property
    def _is_quiet(self) -> bool:
        return not self._queue and self._failure is None

    def _take_all(self) -> PictureChange:
        """Whole batches have been offered and their end noted: what waits goes exactly to the position."""
        change = PictureChange(self._concerns)
        while self._queue:
            change.take(self._queue.popleft())
        self._is_stuck = False
        self._has_room.set()
        return change

    async def _woken(self, timeout_s: float | None) -> None:
        """Or the time is over. Between the look at what there is and this nobody else had a turn."""
        self._wakeup.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self._wakeup.wait()
        except TimeoutError:
            return


async def watch(
    request: pb.WatchRequest, log: CommittedLog, feed: ChangeFeed, queue_changes: int
) -> AsyncGenerator[pb.WatchResponse]:
    """The messages of one call; the feed is held meanwhile. Raises what STATUS in grpc_sending lists."""
    log.check_ready()
    concerns = concerns_member(request.broker_id, all_topics=request.all_topics)
    feed.hold()
    try:
        if request.HasField("from_offset"):
            start = request.from_offset
            check_in_range(log, start, follow=True)
            tracker = tracker_before(log, start)
        else:
            image = log.source.committed_image()
            start, tracker = image.end_offset, ChangeTracker(image)
            for message in state_messages(image, concerns):
                if message is not None:
                    yield message
                await asyncio.sleep(0)
        watcher = MemberWatcher(concerns, start, queue_changes)
        # Closed before the feed is let go: one that nobody holds must have nobody to tell either.
        async with contextlib.aclosing(_follow(log, feed, tracker, watcher, concerns)) as messages:
            async for message in messages:
                yield message
    finally:
        feed.release()


async def _follow(
    log: CommittedLog, feed: ChangeFeed, tracker: ChangeTracker, watcher: MemberWatcher, concerns: Concerns
) -> AsyncGenerator[pb.WatchResponse]:
    try:
        missed = PictureChange(concerns)
        async for change in catch_up(log, feed, tracker, watcher):
            if missed.size >= CHANGES_PER_STEP:
                for message in missed.messages(None):
                    yield message
                missed = PictureChange(concerns)
            missed.take(change)
        watcher.note_position(feed.tracker.resume_offset)  # in the turn in which it was attached there
        told = watcher.position
        for message in missed.messages(told - 1):
            yield message
        async for step, offset in watcher.steps(told):
            for message in step.messages(offset):
                yield message
    finally:
        feed.detach(watcher)
