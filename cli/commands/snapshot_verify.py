"""The work of `snapshot verify` and `snapshot diff`."""

from pathlib import Path

from cli.commands.log_diff import show_difference
from cli.commands.log_dump import refuse_what_is_no_log
from cli.errors import CliError
from cli.exit_status import ExitStatus
from cli.log_check.folder import find_logs
from cli.log_check.report import VERDICTS, findings_json, show_findings, status_of_findings
from cli.log_check.snapshot_files import load_snapshot
from cli.log_check.states import State, state_of_snapshot
from cli.output import complain, print_json
from metadata.log_check.findings import Check, Findings
from metadata.log_check.snapshot_image import LoadedSnapshot
from snapshots.naming import snapshot_id_of


def verify(path: Path, *, as_json: bool, keep: int) -> ExitStatus:
    """Raises CliError where there is no snapshot, OSError where one cannot be read."""
    found: list[tuple[Path, LoadedSnapshot, Findings]] = []
    for file in _files(path):
        findings = Findings(keep)
        loaded = load_snapshot(file, snapshot_id_of(file.name), findings)
        findings.checked(Check.BATCHES, loaded.batch_count)
        findings.checked(Check.METADATA, loaded.record_count)
        found.append((file, loaded, findings))
    status = status_of_findings([findings for _, _, findings in found])
    if as_json:
        print_json(
            {
                "path": str(path),
                "verdict": VERDICTS[status],
                "snapshots": [
                    {
                        "file": str(file),
                        "verdict": VERDICTS[status_of_findings([findings])],
                        "batches": loaded.batch_count,
                        "records": loaded.record_count,
                        "checks": findings_json(findings),
                    }
                    for file, loaded, findings in found
                ],
            }
        )
    else:
        for file, _, findings in found:
            show_findings(file.name, findings)
    return status


def diff(before: Path, after: Path, *, as_json: bool, limit: int) -> ExitStatus:
    """Raises CliError where one is no sound snapshot."""
    states = [_state(path) for path in (before, after)]
    show_difference(f"{before.name} and {after.name}", *states, as_json=as_json, limit=limit)
    return ExitStatus.OK


def _state(path: Path) -> State:
    if not path.is_file():
        raise CliError(f"{path} is no file: name two snapshots", status=ExitStatus.USAGE)
    if snapshot_id_of(path.name) is None:
        refuse_what_is_no_log(path)
    findings = Findings(1)
    loaded = load_snapshot(path, snapshot_id_of(path.name), findings)
    if not loaded.is_sound:
        reason = findings.results()[0].first[0].reason
        message = f"{path}: {reason}; `kquorum snapshot verify` tells all that is wrong"
        if not loaded.record_count:
            raise CliError(message, status=ExitStatus.DAMAGED_INPUT)
        complain(f"{message}; what can be read is compared", style="yellow", label="warning")
    return state_of_snapshot(loaded)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        if snapshot_id_of(path.name) is None:
            refuse_what_is_no_log(path)
        return [path]
    files = [file for log in find_logs(path) for file in log.snapshots.values()]
    if not files:
        raise CliError(f"{path} holds no snapshot", status=ExitStatus.USAGE)
    return files
