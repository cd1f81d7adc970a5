"""The work of `log verify`: check every log under a path and show what was found."""

from pathlib import Path

from cli.exit_status import ExitStatus
from cli.log_check.folder import find_logs
from cli.log_check.progress import byte_progress
from cli.log_check.report import VERDICTS, findings_json, show_findings, status_of_findings
from cli.log_check.verification import Verified, verify_log
from cli.output import console, print_json


def verify(path: Path, *, as_json: bool, keep: int) -> ExitStatus:
    """Raises CliError where there is no log, OSError where a file cannot be read."""
    logs = find_logs(path)
    verified = []
    with byte_progress("verifying", sum(log.size_in_bytes for log in logs)) as advance:
        verified = [verify_log(log, advance, keep=keep) for log in logs]
    status = status_of_findings([each.findings for each in verified])
    if as_json:
        print_json(
            {
                "path": str(path),
                "verdict": VERDICTS[status],
                "logs": [_log_json(each) for each in verified],
            }
        )
    else:
        for number, each in enumerate(verified):
            if number:
                console().print()
            show_findings(_title(each), each.findings)
    return status


def _title(verified: Verified) -> str:
    facts = verified.facts
    if facts.start_offset is None or facts.end_offset is None:
        return f"{verified.log.source}, no records"
    if not facts.batch_count:
        return f"{verified.log.source}, no records from offset {facts.start_offset} on"
    last_epoch = facts.epochs[-1][0] if facts.epochs else 0
    return (
        f"{verified.log.source}, offsets {facts.start_offset} to {facts.end_offset - 1}, epoch {last_epoch}"
    )


def _log_json(verified: Verified) -> dict[str, object]:
    facts, log = verified.facts, verified.log
    return {
        "source": log.source,
        "folder": None if log.folder is None else str(log.folder),
        "verdict": VERDICTS[status_of_findings([verified.findings])],
        "start_offset": facts.start_offset,
        "end_offset": facts.end_offset,
        "last_epoch": facts.epochs[-1][0] if facts.epochs else None,
        "segments": facts.segment_count,
        "batches": facts.batch_count,
        "records": facts.record_count,
        "snapshots": [snapshot_id.file_name for snapshot_id in log.snapshots],
        "checks": findings_json(verified.findings),
    }
