"""The work of `log verify`: check every log under a path and show the findings, as tables or as JSON."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from kquorum.cli.commands.log.files import find_logs
from kquorum.cli.commands.log.verification import Verified, verify_log
from kquorum.cli.failures import ExitStatus
from kquorum.cli.output import console, error_console, make_table, print_json, say
from kquorum.metadata.log_check.findings import CheckResult, Finding, Findings, Severity

_WORTH_A_BAR_BYTES = 16 * 1024 * 1024


@contextmanager
def byte_progress(what: str, total_bytes: int) -> Iterator[Callable[[int], None]]:
    """What to call with bytes done; a bar only on a terminal, and only where there is something to wait for."""
    if total_bytes < _WORTH_A_BAR_BYTES or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=error_console(), transient=True) as progress:
        task = progress.add_task(what, total=total_bytes)
        yield lambda done: progress.advance(task, done)


_STYLES = {Severity.NOTE: "yellow", Severity.VIOLATION: "red", Severity.DAMAGE: "bold red"}
_WORDS = {Severity.NOTE: "note", Severity.VIOLATION: "violation", Severity.DAMAGE: "damage"}
_COUNTED = _WORDS | {Severity.DAMAGE: "damaged"}
VERDICTS = {
    ExitStatus.OK: "sound",
    ExitStatus.FAILED: "rules are violated",
    ExitStatus.DAMAGED_INPUT: "damaged",
}


def status_of_findings(findings: Sequence[Findings]) -> ExitStatus:
    """DAMAGED_INPUT where bytes cannot be read, FAILED where rules are broken, else OK: notes are lawful."""
    worst = max((each.worst or Severity.NOTE for each in findings), default=Severity.NOTE)
    if worst is Severity.DAMAGE:
        return ExitStatus.DAMAGED_INPUT
    return ExitStatus.FAILED if worst is Severity.VIOLATION else ExitStatus.OK


def show_findings(title: str, findings: Findings) -> None:
    """The table of checks, and below it what was found and what was left out."""
    out = console()
    results = findings.results()
    rows = [(result.check, result.checked, _found_text(result), _left_out(result)) for result in results]
    out.print(make_table(title, ("check", "#checked", "found", "#not compared"), rows))
    for result in results:
        for finding in result.first:
            _show_finding(out, finding)
        rest = sum(result.counts.values()) - len(result.first)
        if rest:
            out.print(Text(f"  and {rest:,} more of {result.check}; --findings shows more", "dim"))
    left_out = [(result, reason) for result in results for reason in result.skipped]
    if left_out:
        out.print(Text("not compared:", "dim"))
    for result, reason in left_out:
        out.print(Padding(Text(f"{result.check}: {reason}", "dim"), (0, 0, 0, 2)))
    verdict = status_of_findings([findings])
    say(f"{title}: {VERDICTS[verdict]}", style="green" if verdict is ExitStatus.OK else "bold red")


def _found_text(result: CheckResult) -> Text:
    if not result.counts:
        return Text("fine" if result.checked else "", "green")
    parts = [
        f"{result.counts[severity]:,} {_COUNTED[severity]}{'s' if _is_plural(result, severity) else ''}"
        for severity in sorted(result.counts, reverse=True)
    ]
    return Text(", ".join(parts), _STYLES[max(result.counts)])


def _is_plural(result: CheckResult, severity: Severity) -> bool:
    return severity is not Severity.DAMAGE and result.counts[severity] > 1


def _left_out(result: CheckResult) -> int | None:
    return result.skipped_count or None


def _show_finding(out: Console, finding: Finding) -> None:
    line = Text()
    line.append(f"{_WORDS[finding.severity]} ", _STYLES[finding.severity])
    line.append(f"{finding.check}: ", "bold")
    line.append(place_of(finding))
    out.print(line, soft_wrap=True)
    out.print(Padding(Text(finding.reason), (0, 0, 0, 4)))
    out.print(Padding(Text(f"-> {finding.remedy}", "dim"), (0, 0, 0, 4)))


def place_of(finding: Finding) -> str:
    """File, byte and offset, as far as known."""
    parts = [finding.file] if finding.file else []
    if finding.position is not None:
        parts.append(f"byte {finding.position}")
    if finding.offset is not None:
        parts.append(f"offset {finding.offset}")
    return ", ".join(parts)


def findings_json(findings: Findings) -> list[dict[str, object]]:
    """One object per check; `findings` holds the first, `counts` counts all."""
    return [
        {
            "check": str(result.check),
            "checked": result.checked,
            "counts": {_WORDS[severity]: count for severity, count in sorted(result.counts.items())},
            "findings": [_finding_json(finding) for finding in result.first],
            "not_compared": list(result.skipped),
            "not_compared_count": result.skipped_count,
        }
        for result in findings.results()
    ]


def _finding_json(finding: Finding) -> dict[str, object]:
    return {
        "severity": _WORDS[finding.severity],
        "file": finding.file or None,
        "position": finding.position,
        "offset": finding.offset,
        "reason": finding.reason,
        "remedy": finding.remedy,
    }


def verify(path: Path, *, as_json: bool, keep: int) -> ExitStatus:
    """Raises CliError where there is no log, OSError where a file cannot be read."""
    verified = verified_logs(path, keep)
    status = status_of_logs(verified)
    if as_json:
        print_json(
            {
                "path": str(path),
                "verdict": VERDICTS[status],
                "logs": [log_json(each) for each in verified],
            }
        )
    else:
        show_logs(verified)
    return status


def verified_logs(path: Path, keep: int) -> list[Verified]:
    """Every metadata log at or beneath `path`, checked. Raises as `verify` does."""
    logs = find_logs(path)
    with byte_progress("verifying", sum(log.size_in_bytes for log in logs)) as advance:
        return [verify_log(log, advance, keep=keep) for log in logs]


def status_of_logs(verified: Sequence[Verified]) -> ExitStatus:
    return status_of_findings([each.findings for each in verified])


def show_logs(verified: Sequence[Verified]) -> None:
    for number, each in enumerate(verified):
        if number:
            console().print()
        show_findings(_title(each), each.findings)


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


def log_json(verified: Verified) -> dict[str, object]:
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
