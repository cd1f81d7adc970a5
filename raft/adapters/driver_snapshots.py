"""The driver's second hand: snapshots that come in, go out and are loaded, in a thread of their own.

Writing, checking and loading a large one takes seconds; beside it votes are answered and flushes go on. Only the moment
in which the log is dropped for a snapshot belongs to the driver, which has to stand still for it.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from kquorum.raft.adapters.disk_thread import DiskThread
from kquorum.raft.adapters.driver_ports import Receive, SnapshotPort
from kquorum.raft.adapters.snapshot_files import SnapshotDamaged, SnapshotGone, SnapshotUnsound
from kquorum.raft.inputs import SnapshotPieceWritten, SnapshotRefused
from kquorum.raft.messages import FetchSnapshotResponse, SnapshotSlice
from kquorum.raft.ready import OutboundResponse, SnapshotChunk
from kquorum.storage.errors import StorageFull
from kquorum.wire.log_batch import OffsetAndEpoch
from kquorum.wire.messages.error_codes import ErrorCode

Result = TypeVar("Result")
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshots:
    """What a node gives its driver to work with: the files, and how one becomes its state machine's state.

    `load` runs in the snapshots' thread and may take its time. `forget` runs there as well, where no `load` follows on
    the snapshot that came in last. `handle_unsound` is called in the loop with a snapshot that could not be served,
    `handle_full` where there is no space for one that comes in.
    """

    store: SnapshotPort
    load: Callable[[OffsetAndEpoch], object]
    forget: Callable[[], None] = lambda: None
    handle_unsound: Callable[[OffsetAndEpoch], None] = lambda _: None
    handle_full: Callable[[StorageFull], None] = lambda _: None


class SnapshotTraffic:
    """Made in the running loop; its callbacks are the driver's own, guarded by it."""

    def __init__(
        self,
        snapshots: Snapshots,
        receive: Receive,
        guarded: Callable[[Callable[[], None]], None],
        fail: Callable[[Exception], None],
    ) -> None:
        self._snapshots = snapshots
        self._receive = receive
        self._guarded = guarded
        self._fail = fail
        self._worker = DiskThread(asyncio.get_running_loop(), "kquorum-snapshots")

    def take_in(self, chunks: Sequence[SnapshotChunk], is_whole: Callable[[OffsetAndEpoch], None]) -> None:
        """Write what came; `is_whole` is called with a snapshot that is complete, sound and under its name."""
        for chunk in chunks:
            self._submit(partial(self._write, chunk), self._written)
            if chunk.is_last:
                finished = partial(self._finished, chunk.snapshot_id, is_whole)
                self._submit(partial(self._finish, chunk.snapshot_id), finished)

    def load(self, snapshot_id: OffsetAndEpoch, then: Callable[[object], None]) -> None:
        """Have the node's loader read it; `then` gets what it made, in the loop."""
        self._submit(lambda: self._snapshots.load(snapshot_id), then)

    def forget(self) -> None:
        """No load follows on the snapshot that came in last."""
        self._submit(self._snapshots.forget, lambda _: None)

    def answer(self, outbound: OutboundResponse, respond: Callable[[OutboundResponse], None]) -> None:
        """Respond with the bytes that the response asks for."""
        response = outbound.response
        assert isinstance(response, FetchSnapshotResponse), response

        def then(answer: _Answer) -> None:
            if answer.damaged is not None:
                self._snapshots.handle_unsound(answer.damaged)
            respond(OutboundResponse(outbound.request_id, answer.response))

        self._submit(lambda: self._read(response), then)

    async def close(self, timeout_ms: int) -> bool:
        return await self._worker.close(timeout_ms)

    # In the thread

    def _write(self, chunk: SnapshotChunk) -> "_Refused | None":
        try:
            self._snapshots.store.write_chunk(chunk)
        except (SnapshotUnsound, StorageFull) as error:
            return _Refused(chunk.snapshot_id, error)
        return None

    def _finish(self, snapshot_id: OffsetAndEpoch) -> "_Refused | None":
        try:
            self._snapshots.store.finish(snapshot_id)
        except (SnapshotUnsound, StorageFull) as error:
            self._snapshots.forget()
            return _Refused(snapshot_id, error)
        return None

    def _read(self, response: FetchSnapshotResponse) -> "_Answer":
        wanted = response.data
        assert isinstance(wanted, SnapshotSlice), wanted
        try:
            data, size = self._snapshots.store.read(wanted.snapshot_id, wanted.position, wanted.max_bytes)
        except SnapshotGone as error:
            logger.warning("%s", error)
            not_found = replace(response, error=ErrorCode.snapshot_not_found, data=b"")
            return _Answer(not_found, wanted.snapshot_id if isinstance(error, SnapshotDamaged) else None)
        if wanted.position >= size:
            return _Answer(replace(response, error=ErrorCode.position_out_of_range, data=b""))
        return _Answer(replace(response, data=data, size=size))

    # In the loop

    def _submit(self, job: Callable[[], Result], then: Callable[[Result], None]) -> None:
        self._worker.submit(job, lambda result: self._guarded(lambda: then(result)), self._fail)

    def _written(self, refused: "_Refused | None") -> None:
        self._receive(SnapshotPieceWritten())
        self._maybe_refuse(refused)

    def _maybe_refuse(self, refused: "_Refused | None") -> None:
        if refused is None:
            return
        logger.warning("%s", refused.error)
        if isinstance(refused.error, StorageFull):
            self._snapshots.handle_full(refused.error)
        self._receive(SnapshotRefused(refused.snapshot_id))

    def _finished(
        self,
        snapshot_id: OffsetAndEpoch,
        is_whole: Callable[[OffsetAndEpoch], None],
        refused: "_Refused | None",
    ) -> None:
        if refused is None:
            is_whole(snapshot_id)
        else:
            self._maybe_refuse(refused)


@dataclass(frozen=True, slots=True)
class _Answer:
    """`damaged` names a snapshot that was found so."""

    response: FetchSnapshotResponse
    damaged: OffsetAndEpoch | None = None


@dataclass(frozen=True, slots=True)
class _Refused:
    snapshot_id: OffsetAndEpoch
    error: SnapshotUnsound | StorageFull
