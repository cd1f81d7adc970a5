"""The work of `snapshot verify` and `snapshot diff`."""

from collections import Counter
from pathlib import Path

from kquorum.cli.commands.log.diff import show_difference
from kquorum.cli.commands.log.files import FileCopy, find_logs, misplaced_snapshots, refuse_what_is_no_log
from kquorum.cli.commands.log.states import State, load_if_readable, load_snapshot, state_of_snapshot
from kquorum.cli.commands.log.verify import VERDICTS, findings_json, show_findings, status_of_findings
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.output import complain, print_json, say
from kquorum.metadata.log_check.findings import Check, Findings
from kquorum.metadata.log_check.snapshot_comparison import LoadedSnapshot
from kquorum.snapshots.naming import BOOTSTRAP_CHECKPOINT_NAME, snapshot_id_of
from kquorum.snapshots.reader import SnapshotReader
from kquorum.spark_replay.decode.sources import is_log_name
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_scan import ScannedBatch, scan_batches

_COUNTED = VERDICTS | {ExitStatus.FAILED: "against the rules"}


def verify(path: Path, *, as_json: bool, keep: int) -> ExitStatus:
    """Raises CliError where there is no snapshot, OSError where one cannot be read."""
    found: list[tuple[Path, LoadedSnapshot | None, Findings]] = []
    for file in _files(path):
        findings = Findings(keep)
        place = path.resolve() if path.is_file() else file  # only of a file that is named a link is followed
        loaded = load_if_readable(place, snapshot_id_of(file.name), findings)
        _maybe_tell_name(file.name, findings)
        if loaded is not None:
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
                        "batches": 0 if loaded is None else loaded.batch_count,
                        "records": 0 if loaded is None else loaded.record_count,
                        "checks": findings_json(findings),
                    }
                    for file, loaded, findings in found
                ],
            }
        )
    else:
        for file, _, findings in found:
            show_findings(file.name, findings)
        if len(found) > 1:
            _show_summary([findings for _, _, findings in found])
    return status


def _show_summary(found: list[Findings]) -> None:
    """How many snapshots got which verdict."""
    counts = Counter(status_of_findings([findings]) for findings in found)
    text = ", ".join(f"{counts[status]} {_COUNTED[status]}" for status in VERDICTS if counts[status])
    say(f"{len(found)} snapshots: {text}", style="green" if set(counts) == {ExitStatus.OK} else "bold red")


def diff(before: Path, after: Path, *, as_json: bool, limit: int) -> ExitStatus:
    """Raises CliError where one is no sound snapshot."""
    states = [_state(path) for path in (before, after)]
    show_difference(f"{before.name} and {after.name}", *states, as_json=as_json, limit=limit)
    return ExitStatus.OK


def _state(path: Path) -> State:
    if not path.is_file():
        raise CliError(f"{path} is no file: name two snapshots", status=ExitStatus.USAGE)
    _refuse_what_is_no_snapshot(path, "log diff")
    findings = Findings(1)
    loaded = load_snapshot(path.resolve(), snapshot_id_of(path.name), findings)
    if not loaded.is_sound:
        reason = findings.results()[0].first[0].reason
        message = f"{path}: {reason}; `kquorum snapshot verify` tells all that is wrong"
        if not loaded.record_count:
            raise CliError(message, status=ExitStatus.DAMAGED_INPUT)
        complain(f"{message}; what can be read is compared", style="yellow", label="warning")
    return state_of_snapshot(loaded)


def _refuse_what_is_no_snapshot(path: Path, command: str) -> None:
    """Raises CliError for a file that is neither named as a snapshot nor begins as one; `command` is for segments."""
    if snapshot_id_of(path.name) is not None:
        return
    refuse_what_is_no_log(path)
    if is_log_name(path.name) or _begins_as_a_log(path):
        raise CliError(
            f"{path} is a log segment, not a snapshot: `kquorum {command}` is for logs",
            status=ExitStatus.USAGE,
        )


def _begins_as_a_log(path: Path) -> bool:
    """Whether the first batch is sound and no snapshot's; of a damaged one it is not known."""
    view = FileCopy(path.resolve()).view
    if not isinstance(next(scan_batches(view), None), ScannedBatch):
        return False
    try:
        SnapshotReader(view)
    except DecodeError:
        return True
    return False


def _maybe_tell_name(name: str, findings: Findings) -> None:
    """A snapshot that was copied to another name: nothing says where in the log it belongs."""
    if snapshot_id_of(name) is None and name != BOOTSTRAP_CHECKPOINT_NAME:
        findings.skip(
            Check.SNAPSHOT_NAMES,
            f"{name} is not a snapshot's name (<end offset, 20 digits>-<epoch, 10 digits>.checkpoint), so neither the "
            "epoch nor the end offset was checked against it",
        )


def _files(path: Path) -> list[Path]:
    if path.is_file():
        _refuse_what_is_no_snapshot(path, "log verify")
        return [path]
    files = [file for log in find_logs(path) for file in (*log.snapshots.values(), *misplaced_snapshots(log))]
    if not files:
        raise CliError(f"{path} holds no snapshot", status=ExitStatus.USAGE)
    return files
