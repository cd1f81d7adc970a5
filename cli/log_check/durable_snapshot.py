"""A snapshot that a command writes: as a node does, and its state compared with what was to be written."""

import errno
from collections.abc import Iterable
from pathlib import Path

from cli.errors import CliError
from cli.exit_status import ExitStatus
from cli.log_check.snapshot_files import load_snapshot
from metadata.image.diff import diff_images
from metadata.image.image import MetadataImage
from metadata.log_check.findings import Findings
from snapshots.adapters.durable_snapshot import (
    SnapshotExists,
    WrittenOtherwise,
    WrittenSnapshot,
    write_snapshot,
)
from snapshots.naming import SnapshotId
from storage.errors import StorageFailed, is_no_space


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
