"""A copy of a node's metadata log in files, as the node would have them: segments, snapshots, whose log it is.

The log's own bytes have secrets in them, so only the user who made the copy may read it.
"""

import asyncio
import contextlib
import os
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

import grpc

from kquorum.cli.clients.grpc_client import open_channel, reason_of
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.output import remark
from kquorum.node.config.addresses import HostPort, parse_host_port, reachable
from kquorum.regular_files import open_regular
from kquorum.snapshots.naming import BOOTSTRAP_CHECKPOINT_NAME, snapshot_id_of
from kquorum.spark_replay.decode.members import META_PROPERTIES, Member, member_of
from kquorum.spark_replay.decode.sources import METADATA_FOLDER, FileKind, files_of_folder
from kquorum.spark_replay.stream.read_positions import ReadPosition, latest_positions
from kquorum.wire.log_scan import ScannedBatch, scan_batches
from kquorum.wire.proto import inspect_pb2 as pb
from kquorum.wire.proto.inspect_pb2_grpc import InspectStub

SEGMENT_BYTES: Final = 64 * 1024 * 1024
PART: Final = ".part"


class MirrorRefused(Exception):
    """What came does not fit what is there; the message says why."""


class Mirror:
    """The copy of node `node_id` beneath `folder`. What a killed process had written in part only is taken away."""

    def __init__(self, folder: Path, node_id: int, cluster_id: str) -> None:
        """Raises MirrorRefused where the copy is of another node or cluster."""
        folder = folder.resolve()
        self.folder = folder / f"node-{node_id}"
        self._log_folder = self.folder / METADATA_FOLDER
        for path in (folder, self.folder, self._log_folder):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._check_identity(node_id, cluster_id)
        place = self._place()
        self.end_offset: int | None = place.offset if place.file else None
        self._epoch = place.epoch
        self._segment = self._log_folder / place.file if place.file else None

    def append(self, data: bytes) -> None:
        """Whole batches. Those that leave out offsets begin a new segment. Raises MirrorRefused."""
        batches = [item for item in scan_batches(data) if isinstance(item, ScannedBatch)]
        if not batches or sum(len(batch.data) for batch in batches) != len(data):
            raise MirrorRefused(
                "the node sent batches with a wrong checksum: is its log damaged? `kquorum log verify`"
            )
        first, last = batches[0].header, batches[-1].header
        if self.end_offset is not None and first.base_offset < self.end_offset:
            raise MirrorRefused(f"the node sent offset {first.base_offset} after {self.end_offset - 1}")
        # Epochs never fall along a log. A node that answers with a lower one has another log: its disk was replaced, or
        # another node listens at the address.
        if first.partition_leader_epoch < self._epoch:
            raise MirrorRefused(
                f"the node's epoch at offset {first.base_offset} is {first.partition_leader_epoch}, and was "
                f"{self._epoch} before: this is not the log that was copied"
            )
        # A segment's file name is its first offset, and a segment has no gaps: behind a gap another segment begins.
        if self._is_full() or first.base_offset != self.end_offset:
            self._segment = self._log_folder / f"{first.base_offset:020d}.log"
        assert self._segment is not None
        with _opened(self._segment) as file:
            file.write(data)
        self.end_offset, self._epoch = last.last_offset + 1, last.partition_leader_epoch

    def missing(self, snapshots: Sequence[str]) -> tuple[str, ...]:
        """Those of these names that are not here, and could be."""
        return tuple(name for name in snapshots if _is_snapshot(name) and not self._path_of(name).exists())

    def begin_file(self, name: str) -> Path:
        """Where the bytes of a snapshot go until it is whole."""
        part = self._path_of(name).with_name(name + PART)
        part.unlink(missing_ok=True)
        # Made private before any byte is in it: snapshots hold SCRAM credentials and token secrets.
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        return part

    def finish_file(self, name: str) -> None:
        path = self._path_of(name)
        path.with_name(name + PART).replace(path)

    def _check_identity(self, node_id: int, cluster_id: str) -> None:
        known = member_of(self._log_folder)
        if known == Member():
            text = f"version=1\ncluster.id={cluster_id}\nnode.id={node_id}\n"
            with _opened(self.folder / META_PROPERTIES) as file:
                file.write(text.encode())
        elif (known.node_id, known.cluster_id) != (node_id, cluster_id):
            raise MirrorRefused(
                f"{self.folder} is a copy of node {known.node_id} of cluster {known.cluster_id}, and node {node_id} "
                f"of cluster {cluster_id} answers"
            )

    def _place(self) -> ReadPosition:
        """Where the copy ends; what is behind the last whole batch is cut off."""
        files = files_of_folder(self._log_folder, self.folder.name)
        place = latest_positions(files, {}).get(self.folder.name, ReadPosition())
        # A copy that was interrupted ends within a batch, or has an empty segment. The node sends whole batches from
        # the end offset on.
        for file in files:
            if file.kind is FileKind.LOG and file.name > place.file:
                Path(file.path).unlink()
            elif file.name == place.file and file.size_in_bytes > place.position:
                os.truncate(file.path, place.position)
        return place

    def _is_full(self) -> bool:
        return self._segment is not None and self._segment.stat().st_size >= SEGMENT_BYTES

    def _path_of(self, name: str) -> Path:
        return (self.folder if name == BOOTSTRAP_CHECKPOINT_NAME else self._log_folder) / name


def _is_snapshot(name: str) -> bool:
    """Names come from another machine: nothing else becomes a path."""
    return name == BOOTSTRAP_CHECKPOINT_NAME or snapshot_id_of(name) is not None


def _opened(path: Path) -> BinaryIO:
    """For the owner's eyes only, to be written on."""
    return os.fdopen(open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab")


def _check_chunk(name: str, chunk: pb.FileChunk, position: int) -> None:
    """A node sends the bytes that it announced, in order, and no more: what it sends goes to this disk. Raises
    MirrorRefused."""
    if chunk.size_in_bytes > LARGEST_SNAPSHOT_BYTES:
        raise MirrorRefused(
            f"the node's snapshot {name} has {chunk.size_in_bytes:,} bytes; at most {LARGEST_SNAPSHOT_BYTES:,} are "
            "copied"
        )
    if chunk.position != position or position + len(chunk.data) > chunk.size_in_bytes:
        raise MirrorRefused(
            f"the node sent {len(chunk.data):,} bytes of snapshot {name} at {chunk.position:,}, but the copy is at "
            f"{position:,} of the {chunk.size_in_bytes:,} that it announced"
        )


LARGEST_SNAPSHOT_BYTES: Final = 16 * 1024**3
SCHEME: Final = "grpc://"
ANSWER_SECONDS: Final = 5.0
PAUSE_SECONDS: Final = 1.0
_OPTIONS: Final = (
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.enable_http_proxy", 0),
    # Batches of 8 MiB, and what is around them.
    ("grpc.max_receive_message_length", 64 * 1024 * 1024),
)
# The caller, the request, or the log itself: asking again changes nothing.
_FINAL: Final = frozenset(
    {
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.DATA_LOSS,
        grpc.StatusCode.INVALID_ARGUMENT,
    }
)
Tell = Callable[[str], None]


def live_address(log: str) -> HostPort | None:
    """The address in `grpc://HOST:PORT`; None for what is no such name. Raises CliError."""
    if not log.startswith(SCHEME):
        return None
    try:
        return reachable(*parse_host_port(log.removeprefix(SCHEME).rstrip("/")))
    except ValueError as error:
        raise CliError(f"{log}: {error}", status=ExitStatus.USAGE) from error


class LiveCopy:
    """The copy of one node's log beneath `folder`. Raises CliError for all that ends the copying."""

    def __init__(self, address: HostPort, folder: Path, tell: Tell) -> None:
        self._address = address
        self._folder = folder
        self._tell = tell
        self._mirror: Mirror | None = None

    async def catch_up(self) -> Path:
        """Copy what is committed now; answers the folder of the copy."""
        async with self._refusals_told():
            try:
                await self._copy(follow=False)
            except (grpc.aio.AioRpcError, TimeoutError) as error:
                raise self._failed(error) from None
        if self._mirror is None or self._mirror.end_offset is None:
            raise CliError(f"{self._address}: the node has committed nothing yet", status=ExitStatus.FAILED)
        return self._mirror.folder

    async def follow(self) -> None:
        """Go on copying, across lost connections, until it is cancelled."""
        async with self._refusals_told():
            is_lost = False
            while True:
                try:
                    await self._copy(follow=True)
                except (grpc.aio.AioRpcError, TimeoutError) as error:
                    if isinstance(error, grpc.aio.AioRpcError) and error.code() in _FINAL:
                        raise self._failed(error) from None
                    if not is_lost:
                        self._tell(f"{self._failed(error)}; trying again")
                    is_lost = True
                else:
                    is_lost = False
                await asyncio.sleep(PAUSE_SECONDS)

    async def _copy(self, *, follow: bool) -> None:
        async with open_channel(self._address, _OPTIONS) as channel:
            stub: Any = InspectStub(channel)  # type: ignore[no-untyped-call]
            header = await self._header(stub)
            mirror = self._mirror = Mirror(self._folder, header.files.node_id, header.files.cluster_id)
            # First, for the log may begin with one of them.
            await self._copy_snapshots(stub, mirror, header.files)
            end = mirror.end_offset
            if end is not None and end < header.files.log_start_offset:
                start = header.files.log_start_offset
                self._tell(f"the node's log begins at {start} by now: offsets from {end} on are missing")
                end = None  # the copy goes on from the start, and the gap shows in the offsets
            elif end is not None and end >= header.high_watermark and not follow:
                return
            async for message in stub.CopyLog(pb.CopyLogRequest(from_offset=end, follow=follow)):
                if message.WhichOneof("content") == "files":
                    await self._copy_snapshots(stub, mirror, message.files)
                else:
                    mirror.append(message.batches)

    async def _header(self, stub: Any) -> pb.LogCopy:
        """Which node answers, and what it has: told before the batches are asked for."""
        # The first message has to come soon even from a busy node. The copy itself may be silent for as long as nothing
        # is written, so it has no such limit.
        call = stub.CopyLog(pb.CopyLogRequest())
        try:
            header: Any = await asyncio.wait_for(call.read(), ANSWER_SECONDS)
        finally:
            call.cancel()
        assert isinstance(header, pb.LogCopy), header
        return header

    async def _copy_snapshots(self, stub: Any, mirror: Mirror, files: pb.LogFiles) -> None:
        """A snapshot that goes away meanwhile is left out."""
        for name in mirror.missing(files.snapshots):
            part = mirror.begin_file(name)
            try:
                with _opened(part) as file:
                    async for chunk in stub.CopySnapshot(pb.CopySnapshotRequest(name=name)):
                        _check_chunk(name, chunk, file.tell())
                        file.write(chunk.data)
            except grpc.aio.AioRpcError as error:
                part.unlink(missing_ok=True)
                if error.code() is not grpc.StatusCode.NOT_FOUND:
                    raise
            else:
                mirror.finish_file(name)

    @contextlib.asynccontextmanager
    async def _refusals_told(self) -> AsyncIterator[None]:
        try:
            yield
        except MirrorRefused as error:
            raise CliError(f"{self._address}: {error}", status=ExitStatus.FAILED) from None
        except OSError as error:
            raise CliError(
                f"the copy cannot be written: {error.filename}: {error.strerror}", status=ExitStatus.FAILED
            ) from None

    def _failed(self, error: grpc.aio.AioRpcError | TimeoutError) -> CliError:
        if isinstance(error, TimeoutError):
            return CliError(f"{self._address}: no answer in time", status=ExitStatus.UNREACHABLE)
        status = {
            grpc.StatusCode.DATA_LOSS: ExitStatus.DAMAGED_INPUT,
            grpc.StatusCode.PERMISSION_DENIED: ExitStatus.FAILED,
            grpc.StatusCode.UNAUTHENTICATED: ExitStatus.FAILED,
        }.get(error.code(), ExitStatus.UNREACHABLE)
        return CliError(f"{self._address}: {reason_of(self._address, error)}", status=status)


@contextmanager
def local_copies(inputs: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The inputs, with a copy in the place of each `grpc://HOST:PORT`. Raises CliError."""
    if all(live_address(each) is None for each in inputs):
        yield tuple(inputs)
        return
    with tempfile.TemporaryDirectory(prefix="kquorum-live-") as work:
        found = []
        for number, each in enumerate(inputs):
            address = live_address(each)
            if address is None:
                found.append(each)
            else:
                tell(f"copying the log of {address}")
                copy = LiveCopy(address, Path(work) / str(number), tell)
                found.append(str(asyncio.run(copy.catch_up())))
        yield tuple(found)


@contextmanager
def followed(address: HostPort, folder: Path, *, once: bool) -> Iterator["FollowedLog"]:
    """The node's log beneath `folder`, as of now, and unless it is for `once` as it goes on. Raises CliError."""
    tell(f"copying the log of {address}")
    copy = LiveCopy(address, folder, tell)
    path = asyncio.run(copy.catch_up())
    log = FollowedLog(path, copy)
    if once:
        yield log
        return
    log.start()
    try:
        yield log
    finally:
        log.stop()


class FollowedLog:
    """A copy that a thread keeps up to date."""

    def __init__(self, path: Path, copy: LiveCopy) -> None:
        self.path = path
        self._copy = copy
        self._failed: BaseException | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="live-log", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raises what ended the copying, a CliError."""
        if self._failed is not None:
            raise self._failed

    def stop(self) -> None:
        # The task belongs to the loop of another thread, and asyncio objects may only be touched there.
        with suppress(RuntimeError):  # the loop is closed already: the copying has failed
            self._loop.call_soon_threadsafe(self._cancel)
        self._thread.join()

    def _run(self) -> None:
        try:
            self._task = self._loop.create_task(self._copy.follow())
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # noqa: BLE001 - it is raised again by `check`
            self._failed = error
        finally:
            self._loop.close()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


def tell(text: str) -> None:
    remark(text)
