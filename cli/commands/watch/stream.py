"""A cluster's changes over gRPC, from any node that answers, without gap or repetition across lost connections."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc

from kquorum.cli.clients.grpc_client import REFUSALS, open_channel, reason_of
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.node.config.addresses import HostPort
from kquorum.wire.proto import inspect_pb2 as pb
from kquorum.wire.proto.inspect_pb2_grpc import InspectStub

# A node sends its first bytes at once, even when nothing changes.
ANSWER_SECONDS = 2.0
PAUSE_SECONDS = 0.2
PAUSE_SECONDS_MAX = 2.0
# A node that vanished without closing its connections is noticed within 15 seconds.
_OPTIONS = (
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.enable_http_proxy", 0),
)


@dataclass
class Progress:
    """What was seen: one record may make several changes, so the offset alone does not say where to go on."""

    cluster_id: str = ""
    next_offset: int | None = None
    seen_at_offset: int = 0
    _last_offset: int = field(default=-1, repr=False)

    def admit(self, change: pb.Change) -> None:
        """Count a change that was handed on."""
        self.seen_at_offset = self.seen_at_offset + 1 if change.offset == self._last_offset else 1
        self._last_offset = self.next_offset = change.offset


class ChangeStream:
    """Changes from the first of `addresses` that answers, and from the next when the connection is lost.

    `tell` gets a line whenever the stream is interrupted or goes on.
    """

    def __init__(
        self,
        addresses: Sequence[HostPort],
        *,
        from_offset: int | None,
        kinds: Sequence[str],
        timeout_ms: int,
        tell: Callable[[str], None],
    ) -> None:
        assert addresses
        self._addresses = tuple(addresses)
        self._kinds = tuple(kinds)
        self._timeout_ms = timeout_ms
        self._tell = tell
        self._progress = Progress(next_offset=from_offset)
        self._is_interrupted = False
        self._has_answered = False  # on the connection at hand

    async def changes(self) -> AsyncGenerator[pb.Change]:
        """Endless. The first is the INITIAL_STATE; those of later connections are left out.

        Raises CliError when no node answers at first within the time limit, or refuses what is asked.
        """
        deadline = asyncio.get_running_loop().time() + self._timeout_ms / 1000
        index = failures = 0
        while True:
            address = self._addresses[index]
            try:
                async with contextlib.aclosing(self._changes_from(address)) as changes:
                    async for change in changes:
                        failures = 0
                        yield change
                reason = "the stream ended"
            except grpc.aio.AioRpcError as error:
                self._check_retriable(address, error)
                reason = reason_of(address, error, has_answered=self._has_answered)
            except TimeoutError:
                reason = f"no answer within {ANSWER_SECONDS:g} s"
            if not self._progress.cluster_id and asyncio.get_running_loop().time() >= deadline:
                raise self._unreachable(address, reason)
            self._tell_interruption(address, reason)
            failures += 1
            index = (index + 1) % len(self._addresses)
            rounds = failures // len(self._addresses)
            await asyncio.sleep(min(PAUSE_SECONDS * rounds, PAUSE_SECONDS_MAX))

    async def _changes_from(self, address: HostPort) -> AsyncGenerator[pb.Change]:
        progress = self._progress
        request = pb.WatchRequest(from_offset=progress.next_offset, kinds=list(self._kinds))
        skip_offset, skip = progress.next_offset, progress.seen_at_offset
        self._has_answered = False
        async with open_channel(address, _OPTIONS) as channel:
            stub: Any = InspectStub(channel)  # type: ignore[no-untyped-call]
            call = stub.Watch(request)
            await asyncio.wait_for(call.initial_metadata(), ANSWER_SECONDS)
            self._has_answered = True
            async for change in call:
                if change.kind == pb.INITIAL_STATE:
                    if self._accept_marker(address, change):
                        yield change
                elif change.offset == skip_offset and skip > 0:
                    skip -= 1
                else:
                    progress.admit(change)
                    yield change

    def _accept_marker(self, address: HostPort, marker: pb.Change) -> bool:
        """Whether it is the first; a node of another cluster ends the watch."""
        state, progress = marker.initial_state, self._progress
        if progress.cluster_id not in ("", state.cluster_id):
            raise CliError(f"{address} belongs to cluster {state.cluster_id}, not to {progress.cluster_id}")
        is_first = not progress.cluster_id
        progress.cluster_id = state.cluster_id
        if progress.next_offset is None:
            progress.next_offset = state.next_offset
        if self._is_interrupted:
            self._is_interrupted = False
            self._tell(f"connected to {address}; going on from offset {progress.next_offset}")
        return is_first

    def _check_retriable(self, address: HostPort, error: grpc.aio.AioRpcError) -> None:
        match error.code():
            case grpc.StatusCode.UNIMPLEMENTED:
                raise CliError(
                    f"{address} is no gRPC listener of a kquorum node (see `kquorum.grpc.listener`)",
                    status=ExitStatus.UNREACHABLE,
                ) from None
            case grpc.StatusCode.OUT_OF_RANGE if self._progress.cluster_id:
                self._tell(f"changes were missed: {error.details()}; going on with the current state")
                self._progress.next_offset, self._progress.seen_at_offset = None, 0
            case grpc.StatusCode.OUT_OF_RANGE | grpc.StatusCode.INVALID_ARGUMENT:
                raise CliError(f"{address}: {error.details()}", status=ExitStatus.USAGE) from None
            case code if code in REFUSALS:
                raise CliError(f"{address}: {error.details()}", status=ExitStatus.FAILED) from None
            case grpc.StatusCode.DATA_LOSS:
                raise CliError(f"{address}: {error.details()}", status=ExitStatus.DAMAGED_INPUT) from None

    def _tell_interruption(self, address: HostPort, reason: str) -> None:
        """Once for each interruption, not for each attempt."""
        if not self._is_interrupted:
            self._is_interrupted = True
            if self._progress.cluster_id:
                self._tell(f"lost the stream from {address} ({reason}); trying again")

    def _unreachable(self, address: HostPort, reason: str) -> CliError:
        tried = ", ".join(str(other) for other in self._addresses)
        return CliError(
            f"no gRPC listener answers within {self._timeout_ms} ms (tried {tried}); "
            f"the last answer, of {address}: {reason}",
            status=ExitStatus.UNREACHABLE,
        )
