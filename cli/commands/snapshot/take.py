"""The work of `snapshot take`: replay a log up to an offset, write the state, read it back and compare."""

import errno
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kquorum.cli.commands.log.files import MetadataLogFiles, the_log, within_its_end
from kquorum.cli.commands.log.states import Moment, State, load_snapshot, state_at
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.output import complain, console
from kquorum.metadata.image.diff import diff_images
from kquorum.metadata.image.image import MetadataImage
from kquorum.metadata.log_check.findings import Findings
from kquorum.metadata.snapshot import BATCH_BYTES, snapshot_values
from kquorum.snapshots.adapters.durable_snapshot import (
    SnapshotExists,
    WrittenOtherwise,
    WrittenSnapshot,
    write_snapshot,
)
from kquorum.snapshots.naming import CHECKPOINT_SUFFIX, SnapshotId
from kquorum.snapshots.writer import SnapshotWriter
from kquorum.storage.errors import StorageFailed, is_no_space
from kquorum.storage.folder_lock import FolderLock
from kquorum.storage.meta_properties import FILE_NAME as META_PROPERTIES
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.wording import counted


def write_verified(
    path: Path, snapshot_id: SnapshotId, batches: Iterable[bytes], image: MetadataImage
) -> WrittenSnapshot:
    """Write `path`, durable on return. Raises CliError where it exists, cannot be written or is not what was to be
    written; then there is no file, unless the message says so."""
    try:
        return write_snapshot(
            path, snapshot_id, batches, objection=lambda part: _difference(part, snapshot_id, image)
        )
    except SnapshotExists as error:
        raise CliError(str(error), status=ExitStatus.USAGE) from None
    except WrittenOtherwise as error:
        raise CliError(str(error), status=ExitStatus.IO_ERROR) from None
    # The file has its name, so only the fsync of its folder failed.
    except StorageFailed as error:
        if path.exists():
            raise CliError(
                f"{path} is written and verified, but its name may not survive a power cut: "
                f"{error.error.strerror or error.error}; check the disk",
                status=ExitStatus.IO_ERROR,
            ) from None
        raise not_written(error) from None


def not_written(error: StorageFailed) -> CliError:
    """What to say where the system refuses to write: nothing else than the snapshot is concerned."""
    code = error.error.errno
    if is_no_space(error.error):
        remedy = "make space there"
    elif code in (errno.EACCES, errno.EPERM, errno.EROFS):
        remedy = "run it as the user who owns that folder"
    else:
        remedy = "check that folder and its disk"
    return CliError(
        f"cannot write in {error.path.parent}: {error.error.strerror or error.error}; no snapshot was taken and the "
        f"log was only read: {remedy}, or write elsewhere with --output",
        status=ExitStatus.IO_ERROR,
    )


def _difference(part: Path, snapshot_id: SnapshotId, image: MetadataImage) -> str | None:
    """Everything that `snapshot verify` checks, and whether the records make the same image."""
    findings = Findings(1)
    loaded = load_snapshot(part.resolve(), snapshot_id, findings)
    if not loaded.is_sound:
        return findings.results()[0].first[0].reason
    change = next(diff_images(image, loaded.image), None)
    return None if change is None else f"{change.kind} {change.subject} differs"


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeRequest:
    """`offset` None is the end of the log; `output` None is the metadata folder."""

    path: Path
    offset: int | None
    output: Path | None
    is_committed: bool
    codec: CompressionCodec = CompressionCodec.LZ4


def take(request: TakeRequest) -> ExitStatus:
    """Raises CliError where no snapshot can be taken there, FolderLocked while a node runs on the folder."""
    log = the_log(request.path)
    # The lock comes before the first read: a node that starts in between could truncate what was read.
    with _locked(log, request):
        log = within_its_end(log, _warn)
        state = state_at(log, Moment(request.offset), _warn)
        check_state(log, state)
        is_committed = request.is_committed or _is_known_to_be_committed(log, state)
        unknown = f"whether the records below offset {state.offset} are committed is not in the files"
        if request.output is None and not is_committed:
            raise CliError(
                f"{unknown}, and a snapshot of "
                "uncommitted ones in the node's own folder would make it disagree with the quorum: give --committed if "
                "`kquorum quorum status` shows a high watermark that is not below it, or write elsewhere with --output",
                status=ExitStatus.USAGE,
            )
        snapshot_id = SnapshotId(state.offset, state.epoch)
        path = _target(log, request, snapshot_id)
        written = write_verified(path, snapshot_id, _batches(snapshot_id, state, request.codec), state.image)
    text = f"{counted(written.record_count, 'record')}, {written.size_in_bytes:,} bytes, verified"
    console().print(f"{path}: {text}", soft_wrap=True)
    if not is_committed:
        _warn(f"{unknown}: read this snapshot, but do not put it into the folder of a node")
    return ExitStatus.OK


def check_state(log: MetadataLogFiles, state: State) -> None:
    """Raise CliError where a snapshot of this state would not be one (KIP-630: at the end of a batch, outside
    transactions), or would lack something."""
    header = state.last_header
    if state.offset == 0:
        raise CliError(f"{log.source}: there is nothing below offset 0", status=ExitStatus.USAGE)
    if state.transaction_start_offset is not None:
        raise CliError(
            f"offset {state.offset} is inside the transaction that began at offset "
            f"{state.transaction_start_offset}; that offset can be taken if a batch begins there",
            status=ExitStatus.USAGE,
        )
    # A follower that fetches the snapshot goes on at its end offset, and a Fetch is answered with whole batches.
    if header is not None and header.base_offset < state.offset < header.next_offset:
        raise CliError(
            f"offset {state.offset} is inside a batch; {header.base_offset} and {header.next_offset} can be taken",
            status=ExitStatus.USAGE,
        )
    if lost := state.unknown_count + len(state.faults):
        raise CliError(
            f"{log.source}: {counted(lost, 'record')} below offset {state.offset} {'is' if lost == 1 else 'are'} "
            "unknown or could not be replayed, which a snapshot would lose; `kquorum log verify` lists them",
            status=ExitStatus.DAMAGED_INPUT,
        )


def _is_known_to_be_committed(log: MetadataLogFiles, state: State) -> bool:
    """A log does not say what is committed. With one voter all is; so is what another snapshot contains."""
    # A sole voter is its own majority: what it has written durably is committed.
    is_alone = len(state.quorum.voter_texts) == 1
    return is_alone or any(snapshot_id.end_offset >= state.offset for snapshot_id in log.snapshots)


def _target(log: MetadataLogFiles, request: TakeRequest, snapshot_id: SnapshotId) -> Path:
    output = request.output if request.output is not None else log.folder
    if output is None:
        raise CliError(
            f"{request.path} is a single file: say with --output where to write", status=ExitStatus.USAGE
        )
    if not output.is_dir() and output.suffix != CHECKPOINT_SUFFIX:
        raise CliError(
            f"--output {output} is no folder: make it first, or name a file that ends in {CHECKPOINT_SUFFIX}",
            status=ExitStatus.USAGE,
        )
    path = output / snapshot_id.file_name if output.is_dir() else output
    if path.exists():
        raise CliError(f"{path} exists already; `kquorum snapshot verify` checks it", status=ExitStatus.USAGE)
    if not path.parent.is_dir():
        raise CliError(f"{path.parent} is no folder: make it first", status=ExitStatus.USAGE)
    return path


def _batches(snapshot_id: SnapshotId, state: State, codec: CompressionCodec) -> Iterator[bytes]:
    quorum = state.quorum
    is_dynamic = quorum.kraft_version > 0
    timestamp_ms = -1 if state.timestamp_ms is None else state.timestamp_ms
    writer = SnapshotWriter(
        snapshot_id,
        timestamp_ms=time.time_ns() // 1_000_000,
        last_contained_log_timestamp_ms=timestamp_ms,
        voters=quorum.voters if is_dynamic else None,
        kraft_version=quorum.kraft_version,
        codec=codec,
        max_batch_bytes=BATCH_BYTES,
    )
    return writer.write(snapshot_values(state.image, state.last_audit_note))


@contextmanager
def _locked(log: MetadataLogFiles, request: TakeRequest) -> Iterator[None]:
    """Keep a node off a folder that is written into; elsewhere nothing is touched."""
    data_folder = None if log.folder is None else log.folder.parent
    if request.output is not None or data_folder is None or not (data_folder / META_PROPERTIES).exists():
        yield
        return
    try:
        lock = FolderLock(data_folder)
    except StorageFailed as error:
        raise not_written(error) from None
    try:
        yield
    finally:
        lock.release()


def _warn(message: str) -> None:
    complain(message, style="yellow", label="warning")
