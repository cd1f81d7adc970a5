"""From an offset, or an image, to the changes that are committed now: what every watch of the log begins with."""

from collections.abc import AsyncGenerator
from typing import Final

from metadata.changes import Change, ChangeTracker
from metadata.grpc.feed import ChangeFeed, Watcher
from metadata.grpc.source import CommittedLog, OffsetOutOfRange

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
