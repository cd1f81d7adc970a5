"""Writes a snapshot so that nobody ever sees half of one, and reads it back before it gets its name."""

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from cli.errors import CliError
from cli.exit_status import ExitStatus
from cli.log_check.snapshot_files import load_snapshot
from metadata.image.diff import diff_images
from metadata.image.image import MetadataImage
from metadata.log_check.findings import Findings
from raft.adapters.durable_files import sync_folder
from snapshots.naming import CHECKPOINT_SUFFIX, PART_SUFFIX, SnapshotId


def write_verified(
    path: Path, snapshot_id: SnapshotId, batches: Iterable[bytes], image: MetadataImage
) -> tuple[int, int]:
    """Write `path`, durable on return; answers (bytes, records). The file is read-only, as Kafka's are.

    Raises CliError when what was read back is not what was to be written, OSError, StorageFailed or FsyncFailed; then
    there is no file.
    """
    part = path.with_name(f"{path.name.removesuffix(CHECKPOINT_SUFFIX)}-{secrets.token_hex(8)}{PART_SUFFIX}")
    try:
        with part.open("xb") as file:
            for batch in batches:
                file.write(batch)
            file.flush()
            os.fsync(file.fileno())
        record_count = _check_written(part, snapshot_id, image)
        size = part.stat().st_size
        part.chmod(0o444)
        _name_at_once(part, path)
    finally:
        part.unlink(missing_ok=True)
    sync_folder(path.parent)
    return size, record_count


def _check_written(part: Path, snapshot_id: SnapshotId, image: MetadataImage) -> int:
    """Everything that `snapshot verify` checks, and that the records make the same image."""
    findings = Findings(1)
    loaded = load_snapshot(part, snapshot_id, findings)
    if not loaded.is_sound:
        reason = findings.results()[0].first[0].reason
    else:
        change = next(diff_images(image, loaded.image), None)
        if change is None:
            return loaded.record_count
        reason = f"{change.kind} {change.subject} differs"
    raise CliError(
        f"{part.parent}: the snapshot read back is not what was written ({reason}); check the disk",
        status=ExitStatus.IO_ERROR,
    )


def _name_at_once(part: Path, path: Path) -> None:
    """A link, which never replaces a file that somebody else wrote meanwhile."""
    try:
        path.hardlink_to(part)
    except FileExistsError:
        raise CliError(f"{path} exists already", status=ExitStatus.USAGE) from None
    except OSError:
        # A file system without hard links.
        part.rename(path)
