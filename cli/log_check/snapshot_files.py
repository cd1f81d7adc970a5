"""Snapshot files to images, with their faults as findings."""

from pathlib import Path

from cli.log_check.folder import MetadataLogFiles
from cli.log_check.mapped import MappedFile
from metadata.log_check import remedies
from metadata.log_check.findings import Check, Finding, Findings, Severity
from metadata.log_check.snapshot_comparison import LoadedSnapshot, SnapshotLoading
from snapshots.checking import SnapshotFault
from snapshots.naming import SnapshotId, snapshot_id_of


def load_if_readable(
    path: Path, snapshot_id: SnapshotId | None, findings: Findings, check: Check = Check.SNAPSHOT_FILES
) -> LoadedSnapshot | None:
    """As `load_snapshot`; a file that the system does not let us read is a finding, too."""
    try:
        return load_snapshot(path, snapshot_id, findings, check)
    except FileNotFoundError:
        findings.skip(check, f"{path.name}: it was removed while the others were read")
    except OSError as error:
        is_bootstrap = check is Check.BOOTSTRAP
        then = remedies.FORMAT_AGAIN if is_bootstrap else remedies.OTHER_SNAPSHOT
        add_unreadable(findings, check, path.name, error, then=then)
    return None


def check_misplaced(log: MetadataLogFiles, findings: Findings) -> None:
    """Folders, links and pipes with the name of a segment or snapshot hide that a file is missing."""
    for path in log.misplaced:
        is_snapshot = snapshot_id_of(path.name) is not None
        findings.checked(Check.SNAPSHOT_FILES if is_snapshot else Check.SEGMENTS)
        findings.add(
            Finding(
                check=Check.SNAPSHOT_FILES if is_snapshot else Check.SEGMENTS,
                severity=Severity.DAMAGE,
                file=path.name,
                reason=f"it is {_what_it_is(path)} with the name of a {'snapshot' if is_snapshot else 'segment'}",
                remedy=remedies.NOT_A_SNAPSHOT if is_snapshot else remedies.NOT_A_FILE,
            )
        )


def _what_it_is(path: Path) -> str:
    if path.is_symlink():
        return "a symbolic link, which is not followed,"
    return "a folder" if path.is_dir() else "no file"


def add_unreadable(findings: Findings, check: Check, file: str, error: OSError, *, then: str) -> None:
    """A finding of what the system says, in place of the file's content; `then` is the remedy once a folder is out of
    the file's place."""
    is_folder = isinstance(error, IsADirectoryError)
    findings.add(
        Finding(
            check=check,
            severity=Severity.DAMAGE,
            file=file,
            reason="it is a folder, not a file"
            if is_folder
            else f"it cannot be read: {error.strerror or error}",
            remedy=f"move the folder away; {then}" if is_folder else remedies.UNREADABLE,
        )
    )


def load_snapshot(
    path: Path, snapshot_id: SnapshotId | None, findings: Findings, check: Check = Check.SNAPSHOT_FILES
) -> LoadedSnapshot:
    """Check and load one file; whatever is wrong with it becomes a finding. Without an id any epoch is right."""

    def finding(severity: Severity, fault: SnapshotFault, remedy: str, kind: Check = check) -> None:
        findings.add(
            Finding(
                check=kind,
                severity=severity,
                file=path.name,
                reason=fault.reason,
                remedy=remedy,
                position=fault.position,
                offset=fault.number,
            )
        )

    def report(fault: SnapshotFault) -> None:
        severity = Severity.DAMAGE if fault.is_damage else Severity.VIOLATION
        is_bootstrap = check is Check.BOOTSTRAP
        finding(severity, fault, remedies.FORMAT_AGAIN if is_bootstrap else remedies.OTHER_SNAPSHOT)

    def report_unknown(fault: SnapshotFault) -> None:
        finding(Severity.NOTE, fault, remedies.NEWER_SOFTWARE, Check.METADATA)

    findings.checked(check)
    return SnapshotLoading(report, report_unknown).load(MappedFile(path).view, snapshot_id)
