"""What a node shows over gRPC: its committed log as it goes on, and its image."""

import threading
import zlib
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import grpc

from kquorum.node.config.addresses import HostPort
from kquorum.wire.proto import inspect_pb2 as pb
from kquorum.wire.proto.inspect_pb2_grpc import InspectStub
from tests.jepsen.core.errors import ClientError, not_sent, unanswered

_KEPT_MAX = 200_000
_OPTIONS = (
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1000),
)
_NOTHING_DONE = frozenset({grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.INVALID_ARGUMENT})


@dataclass(frozen=True, slots=True)
class Seen:
    """A record as a node showed it. `digest` is of all its content, the timestamp included."""

    offset: int
    epoch: int
    digest: int
    type: str
    json: str


@dataclass(frozen=True, slots=True)
class Delivered:
    """What came since the last look. `is_reset`: the stream began again, at whatever offset the first record has;
    `image`: offset and epoch of the image from which it goes on, when the log before was gone. `broken` says what was
    wrong with the node's high watermark."""

    records: tuple[Seen, ...]
    is_reset: bool
    image: tuple[int, int] | None
    broken: tuple[str, ...] = ()


class Watermark:
    """A node's high watermark, as the records of one stream tell it: it never goes back while the node runs, and what
    is shown as committed is below it."""

    def __init__(self) -> None:
        self._highest = 0

    def broken_by(self, record: pb.LogRecord) -> str | None:
        mark, before = record.high_watermark, self._highest
        self._highest = max(mark, before)
        if mark < before:
            return f"the high watermark went back from {before} to {mark}, at offset {record.offset}"
        if record.offset >= mark:
            return f"offset {record.offset} was shown with a high watermark of {mark}"
        return None


class Inspector:
    """One channel to one node."""

    def __init__(self, address: HostPort, timeout_s: float) -> None:
        self._channel = grpc.insecure_channel(f"{address.host}:{address.port}", options=_OPTIONS)
        self._stub: Any = InspectStub(self._channel)  # type: ignore[no-untyped-call]
        self._timeout_s = timeout_s

    def image(self, consistency: int, topics: tuple[str, ...] = ()) -> list[pb.ImageChunk]:
        """Raises ClientError."""
        request = pb.ImageRequest(topics=topics, consistency=consistency)  # type: ignore[arg-type]
        try:
            chunks = list(self._stub.Image(request, timeout=self._timeout_s))
        except grpc.RpcError as error:
            raise client_error(error) from error
        if not chunks or not chunks[-1].is_last:
            raise unanswered("the image was cut short")
        return chunks

    def follow(self, from_offset: int) -> Any:
        """A stream of pb.LogRecord, with `cancel`."""
        request = pb.ReadLogRequest(from_offset=from_offset, follow=True, include_control=True)
        return self._stub.ReadLog(request)

    def close(self) -> None:
        self._channel.close()


def client_error(error: Any) -> ClientError:
    """Reading has no effect, but who asked for a change has to know."""
    reason = f"{error.code().name}: {error.details()}"
    return not_sent(reason) if error.code() in _NOTHING_DONE else unanswered(reason)


@dataclass(slots=True)
class _Mail:
    records: deque[Seen] = field(default_factory=deque)
    is_reset: bool = True
    image: tuple[int, int] | None = None
    broken: list[str] = field(default_factory=list)


class LogFollower:
    """Follows one node's committed log in a thread; whatever ends the stream, it starts again a little before its end,
    so that what was shown once is shown again and can be compared."""

    OVERLAP = 32

    def __init__(self, inspector: Inspector, from_offset: int = 0) -> None:
        self._inspector = inspector
        self._next_offset = from_offset
        self._overlap = self.OVERLAP
        self._is_surely_gone = False
        self._arrived = threading.Condition()
        self._mail = _Mail()
        self._over = threading.Event()
        self._stream: Any = None
        self._thread = threading.Thread(target=self._run, name="jepsen-follower", daemon=True)
        self._thread.start()

    def take(self, wait_s: float) -> Delivered:
        """What arrived; waits for a first record for a while. An image's offset comes before all its records."""
        with self._arrived:
            self._arrived.wait_for(lambda: bool(self._mail.records), wait_s)
            mail, self._mail = self._mail, _Mail(is_reset=False)
            self._arrived.notify_all()  # a stream that starts again waits until all before it is taken
            if not mail.records:
                # Nothing came after the reset yet: the next delivery is the one that starts again.
                self._mail.is_reset, self._mail.image = mail.is_reset, mail.image
                return Delivered((), is_reset=False, image=None)
        return Delivered(tuple(mail.records), mail.is_reset, mail.image, tuple(mail.broken))

    def close(self) -> None:
        self._over.set()
        stream = self._stream
        if stream is not None:
            stream.cancel()
        self._inspector.close()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                self._read()
            except grpc.RpcError as error:
                if error.code() is grpc.StatusCode.OUT_OF_RANGE:
                    self._go_elsewhere()
            except ValueError:
                return  # the channel was closed
            self._over.wait(0.2)

    def _read(self) -> None:
        start = max(0, self._next_offset - self._overlap)
        self._stream = self._inspector.follow(start)
        is_first, watermark = True, Watermark()
        for record in self._stream:
            broken = watermark.broken_by(record)
            with self._arrived:
                if is_first and not self._mail.records:
                    self._mail.is_reset = True
                elif is_first:
                    # Records of the stream before wait still; they are distinguished by a delivery of their own.
                    self._arrived.wait_for(lambda: not self._mail.records or self._over.is_set())
                    self._mail.is_reset = True
                is_first = False
                self._overlap = self.OVERLAP
                self._is_surely_gone = False
                self._mail.records.append(_seen(record))
                self._mail.broken += [] if broken is None else [broken]
                self._next_offset = record.offset + 1
                self._arrived.notify_all()
                self._arrived.wait_for(lambda: len(self._mail.records) < _KEPT_MAX or self._over.is_set())

    def _go_elsewhere(self) -> None:
        """What was asked for is not to be had: a node that just started may not know yet that it is committed, or the
        log begins behind it. That is sure only when it is refused although the node's image is ahead of it."""
        if self._overlap:
            self._overlap = 0
            return
        with suppress(ClientError):
            header = self._inspector.image(pb.COMMITTED)[0].header
            image = int(header.provenance.offset), int(header.provenance.epoch)
            if image[0] < self._next_offset:
                return
            if not self._is_surely_gone:
                self._is_surely_gone = True
                return
            with self._arrived:
                self._arrived.wait_for(lambda: not self._mail.records or self._over.is_set())
                self._next_offset = image[0] + 1
                self._mail.is_reset = True
                self._mail.image = image


def _seen(record: pb.LogRecord) -> Seen:
    content = f"{record.timestamp_ms} {record.api_key} {record.version} {record.is_control} {record.json}"
    digest = zlib.crc32(content.encode() + record.value)
    return Seen(record.offset, record.leader_epoch, digest, record.type, record.json)
