"""The log of a running node over gRPC (`Inspect.CopyLog`) into a mirror, once or as it goes on."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import grpc

from cli.audit.live_mirror import Mirror, MirrorRefused
from cli.errors import CliError
from cli.exit_status import ExitStatus
from cli.grpc_channel import open_channel
from cli.grpc_failures import reason_of
from node.config.addresses import HostPort, parse_host_port, reachable
from wire.proto import inspect_pb2 as pb
from wire.proto.inspect_pb2_grpc import InspectStub

SCHEME: Final = "grpc://"
ANSWER_SECONDS: Final = 5.0
PAUSE_SECONDS: Final = 1.0
_OPTIONS: Final = (
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", -1),
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
                with part.open("ab") as file:
                    async for chunk in stub.CopySnapshot(pb.CopySnapshotRequest(name=name)):
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
