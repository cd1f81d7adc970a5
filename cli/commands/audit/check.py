"""The findings of `audit check` on the terminal and as JSON."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.text import Text

from cli.audit.answers import plain
from cli.audit.check_replicas import replicas_json, say_indented, show_replicas
from cli.output import console, print_table, say
from spark_replay.audit_folder import AuditedSource, AuditManifest
from spark_replay.checks.findings import VIOLATION
from spark_replay.checks.results import CheckReport, CheckResult, FoundRow
from wire.safe_text import safe_text
from wire.wording import counted

_ONE = {"batches": "batch", "hashes": "hash"}
SOUND, VIOLATED = "no rule is violated", "rules are violated"


def show_report(manifest: AuditManifest, report: CheckReport, *, keep: int) -> None:
    """A table for each log, what was found below it, then the comparison of the logs of each cluster."""
    by_source = {each.source: each for each in manifest.sources}
    states = {each.source: each for each in report.states}
    for source in dict.fromkeys(each.source for each in report.results):
        results = [each for each in report.results if each.source == source]
        rows = [(each.check, _checked(each), _found(each)) for each in results]
        print_table(_title(by_source[source]), ("check", "#checked", "~found"), rows)
        for result in results:
            _show_findings(result, keep)
        if (state := states.get(source)) is not None:
            say(f"state at offset {state.offset}: hash {state.state_hash}", style="dim")
        console().print()
    for replicas in report.replicas:
        show_replicas(replicas, by_source, is_alone=len(report.replicas) == 1)
    violations = report.violations
    say(
        f"{VIOLATED}: {counted(violations, 'violation')}" if violations else SOUND,
        style="bold red" if violations else "green",
    )


def _title(source: AuditedSource) -> str:
    node = "" if source.member.node_id is None else f" (node {source.member.node_id})"
    if source.start_offset is None or source.end_offset is None:
        return safe_text(f"{source.source}{node}, no batches")
    return safe_text(f"{source.source}{node}, offsets {source.start_offset} to {source.end_offset - 1}")


def _checked(result: CheckResult) -> str:
    if result.checked == 1:
        return f"1 {_ONE.get(result.unit) or result.unit.removesuffix('s')}"
    return f"{result.checked:,} {result.unit}"


def _found(result: CheckResult) -> Text:
    if result.verdict == "skipped":
        return Text(safe_text(f"not checked: {'; '.join(result.skipped)}"), "yellow")
    if result.verdict == "nothing":
        return Text("there are none", "dim")
    parts = [
        counted(count, word)
        for count, word in ((result.violations, "violation"), (result.notes, "note"))
        if count
    ]
    text = Text(", ".join(parts) or "fine", "red" if result.violations else "yellow" if parts else "green")
    if result.skipped:
        text.append(safe_text(f"; not checked: {'; '.join(result.skipped)}"), "yellow")
    return text


def _show_findings(result: CheckResult, keep: int) -> None:
    for finding in result.first:
        show_finding(finding)
    rest = result.violations + result.notes - len(result.first)
    if rest and keep:
        say(f"  and {rest:,} more of {result.check}; --keep shows more, --json all", style="dim")


def show_finding(finding: FoundRow) -> None:
    """Where, what, and the offsets that prove it."""
    line = Text()
    line.append(f"{finding.severity} ", "red" if finding.severity == VIOLATION else "yellow")
    line.append(f"{finding.check}: ", "bold")
    line.append(safe_text(_place(finding)))
    console().print(line, soft_wrap=True)
    about = "" if finding.subject is None else f"{finding.subject}: "
    say_indented(f"{about}{finding.reason}")


def _place(finding: FoundRow) -> str:
    parts = [finding.file] if finding.file else []
    if finding.position is not None:
        parts.append(f"byte {finding.position}")
    if finding.offset is not None:
        parts.append(f"offset {finding.offset}")
    if len(finding.proof_offsets) > 1:
        parts.append(f"proved by offsets {', '.join(map(str, finding.proof_offsets))}")
    return ", ".join(parts)


def write_json(path: Path, manifest: AuditManifest, report: CheckReport) -> None:
    """One object with everything; the findings are written one by one, as Spark hands them over."""
    violations = report.violations
    head = {
        "path": str(path),
        "verdict": VIOLATED if violations else SOUND,
        "violations": violations,
        "logs": [_log_json(each, report) for each in manifest.sources],
        "replicas": [replicas_json(each) for each in report.replicas],
    }
    out = sys.stdout
    out.write("{\n" + ",\n".join(f"  {json.dumps(name)}: {_encode(value)}" for name, value in head.items()))
    out.write(',\n  "findings": [')
    for number, row in enumerate(_rows(report)):
        out.write(("," if number else "") + "\n    " + _encode(row))
    out.write("]\n}\n")


def _rows(report: CheckReport) -> Iterator[Any]:
    ordered = report.findings.orderBy("check", "source", "offset", "position", "subject", "reason")
    return (plain(row) for row in ordered.toLocalIterator())


def _encode(value: object) -> str:
    """JSON that a terminal may be shown."""
    return json.dumps(value)


def _log_json(source: AuditedSource, report: CheckReport) -> dict[str, Any]:
    state = next((each for each in report.states if each.source == source.source), None)
    return {
        "source": source.source,
        "cluster_id": source.member.cluster_id,
        "node_id": source.member.node_id,
        "start_offset": source.start_offset,
        "end_offset": source.end_offset,
        "state": None if state is None else {"offset": state.offset, "state_hash": state.state_hash},
        "checks": [
            {
                "check": str(each.check),
                "unit": each.unit,
                "checked": each.checked,
                "verdict": each.verdict,
                "violations": each.violations,
                "notes": each.notes,
                "not_checked": list(each.skipped),
            }
            for each in report.results
            if each.source == source.source
        ],
    }
