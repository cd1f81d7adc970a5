"""The `Inspect` service: the log, the image, and what changes."""

from collections.abc import AsyncGenerator, Iterator
from itertools import chain, islice
from typing import Protocol

from kquorum.metadata.changes import ChangeKind, ChangeTracker
from kquorum.metadata.grpc.access import Context as GateContext
from kquorum.metadata.grpc.feed import ChangeFeed, Watcher, catch_up, check_in_range, tracker_before
from kquorum.metadata.grpc.inspect.copy_log import copy_log, copy_snapshot
from kquorum.metadata.grpc.inspect.messages import RecordFilter, change_message, image_chunks, image_header
from kquorum.metadata.grpc.sending import BadRange, send_all
from kquorum.metadata.grpc.sending import Context as StreamContext
from kquorum.metadata.grpc.source import CommittedLog
from kquorum.wire.proto import inspect_pb2 as pb
from kquorum.wire.proto.inspect_pb2_grpc import InspectServicer

# Each takes up to 30 microseconds.
_RECORDS_AT_ONCE = 128


class Context(StreamContext, GateContext, Protocol):
    """What is used of gRPC's context of a call."""


class InspectService(InspectServicer):
    """The messages of a call are made one by one, as fast as its client takes them."""

    def __init__(self, log: CommittedLog, feed: ChangeFeed, watcher_queue_changes: int) -> None:
        self._log = log
        self._feed = feed
        self._watcher_queue_changes = watcher_queue_changes

    async def ReadLog(self, request: pb.ReadLogRequest, context: Context) -> None:  # noqa: N802
        await self._send_all(self._read_log(request), context)

    async def Image(self, request: pb.ImageRequest, context: Context) -> None:  # noqa: N802
        await self._send_all(self._image(request), context)

    async def Watch(self, request: pb.WatchRequest, context: Context) -> None:  # noqa: N802
        self._feed.hold()
        try:
            await self._send_all(self._watch(request), context)
        finally:
            self._feed.release()

    async def CopyLog(self, request: pb.CopyLogRequest, context: Context) -> None:  # noqa: N802
        await self._send_all(copy_log(self._log, request), context)

    async def CopySnapshot(self, request: pb.CopySnapshotRequest, context: Context) -> None:  # noqa: N802
        await self._send_all(copy_snapshot(self._log, request.name), context)

    async def _send_all(self, messages: AsyncGenerator[object], context: Context) -> None:
        await send_all(messages, context, self._log.source.node_id, self._log.pieces)

    async def _image(self, request: pb.ImageRequest) -> AsyncGenerator[pb.ImageChunk]:
        source = self._log.source
        consistency = _consistency_of(request)
        if consistency == pb.LINEARIZABLE:
            await source.read_linearizable()
        image = source.local_image() if consistency == pb.LOCAL else source.committed_image()
        topics = request.topics
        async with self._log.slices:
            header = image_header(source, image)
        minimum = source.min_insync_replicas
        chunks = iter(image_chunks(image, header, topics=topics, min_insync_replicas=minimum))
        while True:
            async with self._log.slices:
                chunk = next(chunks, None)
            if chunk is None:
                return
            yield chunk

    async def _read_log(self, request: pb.ReadLogRequest) -> AsyncGenerator[pb.LogRecord]:
        self._log.check_ready()
        wanted = RecordFilter(request.types, request.include_control)
        start = self._log.source.log_start_offset()
        position = request.from_offset if request.HasField("from_offset") else start
        end = await self._end_of(request, position)
        check_in_range(self._log, position, follow=request.follow, end=end)
        while end is None or position < end:
            if request.follow:
                await self._log.wait_for(position)
            read_to = self._read_to(request, end)
            if position >= read_to:
                return  # what was not committed has been cut off
            async with self._log.slices:
                batches = self._log.read_local(position, read_to)
            messages = chain.from_iterable(wanted.messages(batch, position, read_to) for batch in batches)
            while some := await self._some_of(messages):
                for message in some:
                    if message is not None:
                        message.high_watermark = self._log.high_watermark
                        yield message
            position = max(position, batches[-1].next_offset)

    async def _some_of(self, messages: Iterator[pb.LogRecord | None]) -> list[pb.LogRecord | None]:
        """Records that are not wanted take turns like the others."""
        async with self._log.slices:
            return list(islice(messages, _RECORDS_AT_ONCE))

    async def _end_of(self, request: pb.ReadLogRequest, position: int) -> int | None:
        """None: no end. A log that is followed has no moment for which a promise could be kept."""
        consistency = _consistency_of(request)
        if request.HasField("to_offset") and request.to_offset < position:
            raise BadRange(f"to_offset {request.to_offset} is below the first offset, {position}")
        if request.follow:
            if consistency != pb.COMMITTED:
                raise BadRange("only a committed read can be followed; the others have an end")
            return request.to_offset if request.HasField("to_offset") else None
        if consistency == pb.LINEARIZABLE:
            await self._log.source.read_linearizable()
        end = self._readable_end(request)
        return min(request.to_offset, end) if request.HasField("to_offset") else end

    def _read_to(self, request: pb.ReadLogRequest, end: int | None) -> int:
        readable = self._readable_end(request)
        return readable if end is None else min(end, readable)

    def _readable_end(self, request: pb.ReadLogRequest) -> int:
        if _consistency_of(request) == pb.LOCAL:
            return self._log.source.log_end_offset()
        return self._log.high_watermark

    async def _watch(self, request: pb.WatchRequest) -> AsyncGenerator[pb.Change]:
        self._log.check_ready()
        kinds = _kinds_of(request)
        if request.HasField("from_offset"):
            start = request.from_offset
            check_in_range(self._log, start, follow=True)
            tracker = tracker_before(self._log, start)
        else:
            tracker = await self._tracker_now()
            start = tracker.resume_offset
        watcher = Watcher(kinds, start, self._watcher_queue_changes)
        yield self._initial_state(start)
        try:
            async for change in catch_up(self._log, self._feed, tracker, watcher):
                yield change_message(change)
            async for change in watcher.changes():
                yield change_message(change)
        finally:
            self._feed.detach(watcher)

    async def _tracker_now(self) -> ChangeTracker:
        """At the high watermark: the image of a node that has just started is behind it."""
        tracker, end = ChangeTracker(self._log.source.committed_image()), self._log.high_watermark
        while tracker.position < end:
            async with self._log.slices:
                for batch in self._log.read(tracker.position, end):
                    tracker.replay(batch)
        return tracker

    def _initial_state(self, next_offset: int) -> pb.Change:
        source = self._log.source
        provenance = source.committed_image().provenance
        leader_id, leader_epoch = source.leader() or (None, None)
        return pb.Change(
            kind=pb.INITIAL_STATE,
            offset=next_offset - 1,
            epoch=provenance.last_contained_epoch,
            timestamp_ms=provenance.timestamp_ms,
            initial_state=pb.InitialState(
                cluster_id=source.cluster_id,
                node_id=source.node_id,
                next_offset=next_offset,
                high_watermark=self._log.high_watermark,
                leader_id=leader_id,
                leader_epoch=leader_epoch,
            ),
        )


def _kinds_of(request: pb.WatchRequest) -> list[ChangeKind]:
    """Raises BadRange for a number that only a newer node may know."""
    wanted = set(request.kinds)
    unknown = wanted - set(pb.ChangeKind.values())
    if unknown:
        raise BadRange(
            f"change kind {min(unknown)} is not known; there are {', '.join(pb.ChangeKind.keys())}"
        )
    return [ChangeKind[pb.ChangeKind.Name(kind)] for kind in wanted if kind > pb.INITIAL_STATE]


def _consistency_of(request: pb.ImageRequest | pb.ReadLogRequest) -> pb.Consistency:
    """Raises BadRange for a number that only a newer node may know."""
    if request.consistency not in pb.Consistency.values():
        names = ", ".join(pb.Consistency.keys())
        raise BadRange(f"consistency {request.consistency} is not known; there are {names}")
    return request.consistency or pb.COMMITTED
