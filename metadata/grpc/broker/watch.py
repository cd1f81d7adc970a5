"""`Broker.Watch`: a member's part of the image, and then its changes, from the feed that all watchers share.

All that waits for a member is sent at once, as one change of its picture, so a slow member gets fewer messages and not
later ones. A member that takes nothing while its queue fills up is cut off (see metadata/grpc/feed.py), and resumes
from its last offset.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from itertools import islice
from typing import Final, TypeVar

from kquorum.metadata.changes import (
    QUORUM_KINDS,
    Change,
    ChangeKind,
    ChangeTracker,
    PartitionTransition,
    TopicIdentity,
)
from kquorum.metadata.grpc.feed import ChangeFeed, Watcher, catch_up, check_in_range, tracker_before
from kquorum.metadata.grpc.inspect.messages import PARTITIONS_PER_CHUNK, broker_message, partition_message
from kquorum.metadata.grpc.source import CommittedLog
from kquorum.metadata.image.cluster import BrokerRegistration
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.image.partition_state import PartitionState
from kquorum.metadata.image.topics import TopicImage
from kquorum.wire.proto import broker_pb2 as pb
from kquorum.wire.proto.inspect_pb2 import Partition
from kquorum.wire.uuids import uuid_to_text

# To look through so many takes a few milliseconds.
PARTITIONS_PER_TURN: Final = 10_000

Entry = TypeVar("Entry")
Concerns = Callable[[PartitionState], bool]


def concerns_member(broker_id: int, *, all_topics: bool) -> Concerns:
    return lambda state: all_topics or broker_id in state.replicas


def state_messages(image: MetadataImage, concerns: Concerns) -> Iterator[pb.WatchResponse | None]:
    """The image as a member sees it, in messages of a bounded size; the last one is marked complete.

    None now and then, while much is looked through: others may have their turn.
    """
    brokers = (broker_message(broker) for _, broker in sorted(image.cluster.brokers.items()))
    message = pb.WatchResponse(is_state=True, brokers=brokers)
    for number, (topic, partition_id, state) in enumerate(_partitions_of(image), 1):
        if number % PARTITIONS_PER_TURN == 0:
            yield None
        if not concerns(state):
            continue
        if len(message.partitions) == PARTITIONS_PER_CHUNK:
            yield message
            message = pb.WatchResponse(is_state=True)
        message.partitions.append(partition_message(topic.name, uuid_to_text(topic.id), partition_id, state))
    message.offset, message.is_complete = image.provenance.last_contained_offset, True
    yield message


def _partitions_of(image: MetadataImage) -> Iterator[tuple[TopicImage, int, PartitionState]]:
    for topic in image.topics.by_id.values():
        for partition_id, state in topic.partitions.items():
            yield topic, partition_id, state


class PictureChange:
    """Changes one after the other; of what changed twice only the outcome is sent.

    Nothing is sent about partitions without a replica on the member, except that one has none any more.
    """

    def __init__(self, concerns: Concerns) -> None:
        self._concerns = concerns
        self._brokers: dict[int, BrokerRegistration | None] = {}
        self._partitions: dict[str, dict[int, Partition | pb.RemovedPartition]] = {}
        self._removed_topics: list[pb.RemovedTopic] = []
        # Of changes that were taken, more or less.
        self.size = 0

    def take(self, change: Change) -> None:
        self.size += 1
        match change.subject:
            case BrokerRegistration() as broker:
                is_gone = change.kind is ChangeKind.BROKER_REMOVED
                self._brokers[broker.id] = None if is_gone else broker
            case TopicIdentity() as topic if change.kind is ChangeKind.TOPIC_DELETED:
                topic_id = uuid_to_text(topic.id)
                self._partitions.pop(topic_id, None)
                self._removed_topics.append(pb.RemovedTopic(topic=topic.name, topic_id=topic_id))
            case PartitionTransition() as transition:
                self._take_partition(transition)

    def messages(self, offset: int | None) -> Iterator[pb.WatchResponse]:
        """All that was taken, in messages of a bounded size. The last is complete up to and including `offset`; None:
        there is more to come."""
        message = pb.WatchResponse(
            brokers=[broker_message(broker) for broker in self._brokers.values() if broker is not None],
            removed_brokers=[broker_id for broker_id, broker in self._brokers.items() if broker is None],
            removed_topics=self._removed_topics,
        )
        entries = (entry for topic in self._partitions.values() for entry in topic.values())
        for count, chunk in enumerate(_chunks(entries)):
            if count:
                yield message
                message = pb.WatchResponse()
            message.partitions.extend(each for each in chunk if isinstance(each, Partition))
            message.removed_partitions.extend(each for each in chunk if not isinstance(each, Partition))
        if offset is not None:
            message.offset, message.is_complete = offset, True
        yield message

    def _take_partition(self, transition: PartitionTransition) -> None:
        place, before = transition.partition, transition.before
        name, topic_id, partition_id = place.topic.name, uuid_to_text(place.topic.id), place.partition_id
        sent = self._partitions.setdefault(topic_id, {})
        if self._concerns(transition.after):
            sent[partition_id] = partition_message(name, topic_id, partition_id, transition.after)
        elif before is not None and self._concerns(before):
            sent[partition_id] = pb.RemovedPartition(topic=name, topic_id=topic_id, partition_id=partition_id)


def _chunks(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    remaining = iter(entries)
    while chunk := list(islice(remaining, PARTITIONS_PER_CHUNK)):
        yield chunk


# How often a member hears how far the log is when nothing changes for it.
OFFSET_SPACING_S: Final = 0.1

# A long way to catch up is sent in steps of about so many changes.
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

    async def steps(self, sent: int) -> AsyncGenerator[tuple[PictureChange, int]]:
        """Endless: all that waits, and the offset up to which that is all; `sent` is the first offset not yet told.
        Raises what `fail` was given."""
        loop = asyncio.get_running_loop()
        while True:
            quiet_until = loop.time() + OFFSET_SPACING_S
            while self._is_quiet and self._position <= sent:
                await self._woken(None)
            while self._is_quiet and (left := quiet_until - loop.time()) > 0:
                await self._woken(left)
            if self._failure is not None:
                raise self._failure
            change = self._take_all()
            sent = self._position
            yield change, sent - 1

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
        """Or the time is over. No other task had a turn since the queue was checked."""
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
        # Closed before the feed is released: a feed without a holder must have no watcher left.
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
        sent = watcher.position
        for message in missed.messages(sent - 1):
            yield message
        async for step, offset in watcher.steps(sent):
            for message in step.messages(offset):
                yield message
    finally:
        feed.detach(watcher)
