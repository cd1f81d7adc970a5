"""Snapshot files to images, with their faults as findings."""

from pathlib import Path

from cli.log_check.mapped import MappedFile
from metadata.log_check import remedies
from metadata.log_check.findings import Check, Finding, Findings, Severity
from metadata.log_check.snapshot_image import LoadedSnapshot, SnapshotLoading
from snapshots.checking import SnapshotFault
from snapshots.naming import SnapshotId


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
