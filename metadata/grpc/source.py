"""What the gRPC services read of their node, and the committed log as streams follow it."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from kquorum.metadata.grpc.turns import PIECES_AT_ONCE, PieceTurns, SliceTurns
from kquorum.metadata.image.image import MetadataImage
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_batch import LogBatch, parse_batches
from kquorum.wire.record_batch import check_batch

ImageCallback = Callable[[object, MetadataImage], None]

# One slice of the log holds the node's event loop for some milliseconds: decompressing and decoding included.
SLICE_BYTES = 32 * 1024

# A commit that changes no image (a NoOpRecord) need not be announced, and still moves the high watermark.
POLL_SECONDS = 0.2

# Old images stay, this far apart and this many, so that a watcher who lost its connection resumes from one of them
# instead of from the start of the log.
IMAGE_SPACING_OFFSETS = 4096
IMAGES_KEPT = 8


class InspectSource(Protocol):
    """A node, as it lets itself be read; every call and every callback belongs to the node's event loop."""

    @property
    def node_id(self) -> int: ...

    @property
    def cluster_id(self) -> str: ...

    @property
    def min_insync_replicas(self) -> int:
        """Of the node's config file: what a topic has without a config of its own or of the cluster."""
        ...

    def committed_image(self) -> MetadataImage: ...

    def high_watermark(self) -> int:
        """The end (exclusive) of what is committed; negative while unknown."""
        ...

    def leader(self) -> tuple[int, int] | None:
        """The id of the quorum's leader and its epoch, as this node knows them; None while it knows no leader."""
        ...

    def log_start_offset(self) -> int: ...

    def read_log(self, start_offset: int, max_bytes: int, end_offset: int | None = None) -> bytes:
        """Whole batches, as `raft.ports.LogStore.read` answers them."""
        ...

    async def snapshots(self) -> tuple[str, ...]:
        """The names of the snapshots beside the log, by age, `bootstrap.checkpoint` among them."""
        ...

    async def read_snapshot(self, name: str, position: int, max_bytes: int) -> tuple[bytes, int]:
        """Some bytes of it, and how long it is. Raises NoSuchSnapshot for what `snapshots` does not name any more."""
        ...

    def subscribe(self, callback: ImageCallback) -> Callable[[], None]:
        """Have `callback(delta, image)` called after each commit; answers how to end that."""
        ...

    def local_image(self) -> MetadataImage:
        """The newest, which at the active controller includes what it has proposed."""
        ...

    def log_end_offset(self) -> int:
        """The end (exclusive) of the node's own log, committed or not."""
        ...

    async def read_linearizable(self) -> int:
        """Wait until `committed_image` has everything that was committed when this was called; answers the end of that.
        Raises NotTheLeader elsewhere than at the leader."""
        ...

    def ms_since_commit(self) -> int | None:
        """How long ago this node heard of a commit; None before the first."""
        ...

    def is_cut_off(self) -> bool:
        """Whether that is too long ago: the quorum is not heard any more."""
        ...

    def is_ready(self) -> bool:
        """Whether the node follows the quorum: it saw a commit recently."""
        ...


class OffsetOutOfRange(Exception):
    """The text names the offset asked for and those that there are."""


class NoSuchSnapshot(Exception):
    """No snapshot of that name lies beside the log, any more at least."""


class LogUnreadable(Exception):
    """Committed bytes of the node's own log cannot be read."""


class NotReady(Exception):
    """The node has just started and cannot tell yet; another one may."""


class NotTheLeader(Exception):
    """Only the leader can do what was asked; the text names it where it is known."""


class ServerStopping(Exception):
    """The node goes down; streams end."""


class CommittedLog:
    """The committed part of the node's log, its recent images, and the wait for more.

    One per server: it subscribes once, polls once for all streams that wait, and wakes some of those whose wait is over
    in each iteration of the loop.
    """

    def __init__(self, source: InspectSource) -> None:
        self.source = source
        # Each with the offset whose record it waits for; None: for the next commit or poll, whatever it brings.
        self._waiting: dict[asyncio.Future[None], int | None] = {}
        self._ripe: deque[asyncio.Future[None]] = deque()
        self._poll: asyncio.TimerHandle | None = None
        self._images: deque[MetadataImage] = deque(maxlen=IMAGES_KEPT)
        self._is_closed = False
        self.slices = SliceTurns()
        self.pieces = PieceTurns()
        self._unsubscribe = source.subscribe(self._handle_commit)

    @property
    def high_watermark(self) -> int:
        return max(0, self.source.high_watermark())

    def close(self) -> None:
        """End every wait with ServerStopping; a second call does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        self._unsubscribe()
        if self._poll is not None:
            self._poll.cancel()
        self._wake()

    def read(self, start_offset: int, end_offset: int) -> tuple[LogBatch, ...]:
        """Some batches from the one that holds `start_offset` on, all below `end_offset` (committed).

        Raises OffsetOutOfRange when the log starts later by now, LogUnreadable for damage.
        """
        assert end_offset <= self.high_watermark, f"{start_offset} to {end_offset} is not committed"
        return self.read_local(start_offset, end_offset)

    def read_local(self, start_offset: int, end_offset: int) -> tuple[LogBatch, ...]:
        """The same where it is not committed, and may be cut off again between two calls."""
        assert start_offset < end_offset, f"{start_offset} to {end_offset} is nothing"
        self.check_not_deleted(start_offset)
        data = bytes(self.source.read_log(start_offset, SLICE_BYTES, end_offset))
        batches = parse_batches(data)
        if not batches or batches[-1].next_offset <= start_offset:
            raise LogUnreadable(
                f"the log of node {self.source.node_id} cannot be read at {start_offset}: {_why(data)}"
            )
        return batches

    def check_ready(self) -> None:
        """Raises NotReady while the node does not know what is committed, or has not loaded its snapshot."""
        if self.source.high_watermark() < 0:
            raise NotReady(f"node {self.source.node_id} does not know yet what is committed")
        if self.source.committed_image().end_offset < self.source.log_start_offset():
            raise NotReady(f"node {self.source.node_id} is still loading its snapshot")

    def check_not_deleted(self, offset: int) -> None:
        """Raises OffsetOutOfRange below the start of the log."""
        start = self.source.log_start_offset()
        if offset < start:
            raise OffsetOutOfRange(
                f"offset {offset} is below the start of the log of node {self.source.node_id}, which holds offsets "
                f"{start} to {self.high_watermark} (exclusive)"
            )

    def image_before(self, offset: int) -> MetadataImage | None:
        """The newest image at hand with nothing at or above `offset`; None when the log cannot lead there either."""
        for image in (self.source.committed_image(), *reversed(self._images)):
            if image.end_offset <= offset:
                return image
        return MetadataImage.empty() if self.source.log_start_offset() == 0 else None

    def earliest_image_offset(self) -> int:
        """The lowest offset for which `image_before` has an answer."""
        if self.source.log_start_offset() == 0:
            return 0
        return min(image.end_offset for image in (self.source.committed_image(), *self._images))

    async def wait_for(self, offset: int) -> None:
        """Return once the record at `offset` is committed. Raises ServerStopping."""
        while self.high_watermark <= offset:
            await self._wait(offset)
        if self._is_closed:
            raise ServerStopping

    async def wait_for_more(self) -> None:
        """Return after the next commit, or a moment later without one. Raises ServerStopping."""
        await self._wait(None)
        if self._is_closed:
            raise ServerStopping

    async def _wait(self, offset: int | None) -> None:
        if self._is_closed:
            raise ServerStopping
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiting[waiter] = offset
        if self._poll is None:
            self._poll = loop.call_later(POLL_SECONDS, self._ring)
        try:
            await waiter
        finally:
            self._waiting.pop(waiter, None)

    def _ring(self) -> None:
        self._poll = None
        self._wake()
        if self._waiting:
            self._poll = asyncio.get_running_loop().call_later(POLL_SECONDS, self._ring)

    def _handle_commit(self, _delta: object, image: MetadataImage) -> None:
        if not self._images or image.end_offset >= self._images[-1].end_offset + IMAGE_SPACING_OFFSETS:
            self._images.append(image)
        self._wake()

    def _wake(self) -> None:
        """Those whose wait is over; all once this is closed."""
        end = self.high_watermark
        ripe = [
            waiter
            for waiter, offset in self._waiting.items()
            if offset is None or offset < end or self._is_closed
        ]
        for waiter in ripe:
            del self._waiting[waiter]
        is_waking = bool(self._ripe)
        self._ripe.extend(ripe)
        if not is_waking:
            self._wake_some()

    def _wake_some(self) -> None:
        for _ in range(min(PIECES_AT_ONCE, len(self._ripe))):
            waiter = self._ripe.popleft()
            if not waiter.done():
                waiter.set_result(None)
        if self._ripe:
            asyncio.get_running_loop().call_soon(self._wake_some)


def _why(data: bytes) -> str:
    if not data:
        return "it answers nothing"
    try:
        check_batch(data)
    except DecodeError as error:
        return str(error)
    return "it answers an older batch"
