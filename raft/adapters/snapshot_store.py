"""Snapshot files on their way in and out of the log's folder (KIP-630), beside what `FileLog` knows of them.

A snapshot that comes in is written to `<name>.part`, checked from end to end once it is complete, flushed, renamed, and
its name flushed: under its final name there is never one that is not whole, whenever the power goes.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from raft.adapters.snapshot_files import problem_of, set_snapshot_aside, snapshot_path
from raft.ready import SnapshotChunk
from storage.durable_files import rename_durably
from storage.errors import FsyncFailed, StorageFailed, StorageFull, storage_failure
from storage.file_system import POSIX, READ_LISTED, FileSystem
from wire.log_batch import OffsetAndEpoch


class SnapshotUnsound(Exception):
    """What was received is no snapshot; nothing of it is kept, and it has to be fetched again."""


class SnapshotGone(Exception):
    """No snapshot of that name is here, any more at least."""


class SnapshotDamaged(SnapshotGone):
    """It was here, and is of no use."""


@dataclass(slots=True)
class _Incoming:
    snapshot_id: OffsetAndEpoch
    part: Path
    descriptor: int
    size: int = 0


class SnapshotStore:
    """Satisfies raft.adapters.driver_ports.SnapshotPort. All methods belong to one thread, not the loop's."""

    def __init__(
        self,
        folder: Path,
        fs: FileSystem = POSIX,
        objection: Callable[[Path, OffsetAndEpoch], str | None] = lambda _part, _snapshot_id: None,
    ) -> None:
        """`objection` says why the state machine cannot do with a file that is a whole snapshot; None if it can."""
        self._folder = folder
        self._fs = fs
        self._objection = objection
        self._incoming: _Incoming | None = None

    def read(self, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int) -> tuple[bytes, int]:
        """Up to `max_bytes` from `position`, and the whole file's size in bytes.

        Whoever begins one has it checked first: nobody is to fetch gigabytes that cannot be loaded. A damaged one is
        set aside. Raises SnapshotGone or StorageFailed.
        """
        path = snapshot_path(self._folder, snapshot_id)
        if position == 0:
            self._check(path, snapshot_id)
        try:
            descriptor = self._fs.open(path, READ_LISTED)
            try:
                size = self._fs.size(descriptor)
                return self._fs.pread(descriptor, max_bytes, position), size
            finally:
                self._fs.close(descriptor)
        except FileNotFoundError as error:
            raise SnapshotGone(f"{path} is gone") from error
        except OSError as error:
            raise storage_failure("read", path, error) from error

    def write_chunk(self, chunk: SnapshotChunk) -> None:
        """The next bytes; position 0 begins a new file in the place of one that was under way.

        Raises StorageFull (nothing is kept then: it begins anew at 0), SnapshotUnsound for what follows, or
        StorageFailed.
        """
        try:
            incoming = self._begin(chunk.snapshot_id) if chunk.position == 0 else self._incoming
            if incoming is None or (incoming.snapshot_id, incoming.size) != (
                chunk.snapshot_id,
                chunk.position,
            ):
                raise SnapshotUnsound(f"what comes before byte {chunk.position} of the snapshot was not kept")
            rest = memoryview(chunk.data)
            while rest:
                rest = rest[self._fs.write(incoming.descriptor, rest) :]
            incoming.size += len(chunk.data)
        except OSError as error:
            part = self._part_of(chunk.snapshot_id)
            self.drop()
            raise storage_failure("write", part, error) from error

    def finish(self, snapshot_id: OffsetAndEpoch) -> None:
        """Put a complete file under its name, durable on return.

        Raises SnapshotUnsound, StorageFull (nothing is kept then either), StorageFailed or FsyncFailed.
        """
        incoming = self._incoming
        if incoming is None or incoming.snapshot_id != snapshot_id:
            raise SnapshotUnsound("the snapshot that came in was not kept")
        self._flush(incoming)
        problem = problem_of(incoming.part, snapshot_id.epoch, self._fs)
        if problem is not None:
            self.drop()
            raise SnapshotUnsound(
                f"the snapshot that came in as {incoming.part.name} is not whole: {problem}"
            )
        objection = self._objection(incoming.part, snapshot_id)
        if objection is not None:
            self.drop()
            raise SnapshotUnsound(
                f"the snapshot that came in as {incoming.part.name} cannot be loaded: {objection}"
            )
        self._fs.close(incoming.descriptor)
        self._incoming = None
        try:
            rename_durably(incoming.part, snapshot_path(self._folder, snapshot_id), self._fs)
        except StorageFull:
            self._unlink(incoming.part)
            raise

    def drop(self) -> None:
        """Forget what was under way."""
        incoming, self._incoming = self._incoming, None
        if incoming is not None:
            self._fs.close(incoming.descriptor)
            self._unlink(incoming.part)

    def _unlink(self, part: Path) -> None:
        with suppress(OSError):
            self._fs.unlink(part)

    def _check(self, path: Path, snapshot_id: OffsetAndEpoch) -> None:
        """Retention may take the file away at any moment."""
        try:
            problem = problem_of(path, snapshot_id.epoch, self._fs)
            if problem is None:
                return
            set_snapshot_aside(self._folder, snapshot_id, problem, self._fs)
        except StorageFailed as error:
            if not isinstance(error.error, FileNotFoundError):
                raise
            raise SnapshotGone(f"{path} is gone") from error
        raise SnapshotDamaged(f"{path} cannot be served: {problem}")

    def _begin(self, snapshot_id: OffsetAndEpoch) -> _Incoming:
        self.drop()
        part = self._part_of(snapshot_id)
        descriptor = self._fs.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self._incoming = _Incoming(snapshot_id, part, descriptor)
        return self._incoming

    def _part_of(self, snapshot_id: OffsetAndEpoch) -> Path:
        """The node's own snapshot of the same name may be being written: this one has a name of its own."""
        path = snapshot_path(self._folder, snapshot_id)
        return path.with_name(f"{path.stem}-fetched{path.suffix}.part")

    def _flush(self, incoming: _Incoming) -> None:
        try:
            self._fs.fsync(incoming.descriptor)
        except OSError as error:
            raise FsyncFailed(incoming.part, error) from error
