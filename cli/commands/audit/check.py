"""The work of `audit check`: run the checks of an audit, and show the findings on the terminal or as JSON.

Nodes report the hashes of their states to each other and keep them nowhere. The options therefore take them as
`quorum status` and `log state-hash` print them.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from rich.padding import Padding
from rich.text import Text

from kquorum.cli.commands.audit.answers import ids, plain
from kquorum.cli.commands.audit.spark_tables import opened
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.output import console, print_table, say
from kquorum.metadata.log_check.state_replay import RecordedHash
from kquorum.metadata.state_hash.image_hash import SCHEME
from kquorum.regular_files import read_regular
from kquorum.spark_replay.audit_manifest import AuditedSource, AuditManifest
from kquorum.spark_replay.checks.checking import ALL_GROUPS, CheckRequest, check_audit
from kquorum.spark_replay.checks.findings import VIOLATION
from kquorum.spark_replay.checks.replica_facts import Beyond, ReplicaFacts
from kquorum.spark_replay.checks.replica_verdict import ReplicaFinding, Watermark
from kquorum.spark_replay.checks.results import (
    CheckReport,
    CheckResult,
    FoundRow,
    ReplicaReport,
    SnapshotCopies,
)
from kquorum.wire.safe_text import safe_text
from kquorum.wire.wording import counted

_OPTION = re.compile(r"(?:(?P<source>.+)=)?(?P<offset>\d{1,18}):(?P<hash>[0-9a-fA-F]{32})")
_HASH = re.compile(r"[0-9a-fA-F]{32}")
Recorded = dict[str | None, tuple[RecordedHash, ...]]


def recorded_hashes(options: Sequence[str], files: Sequence[Path]) -> Recorded:
    """By log; under None what is compared with all of them. Raises CliError."""
    found: dict[str | None, list[RecordedHash]] = {}
    for text in options:
        source, recorded = _of_option(text)
        found.setdefault(source, []).append(recorded)
    for path in files:
        found.setdefault(None, []).extend(_of_file(path))
    return {source: tuple(dict.fromkeys(each)) for source, each in found.items()}


def _of_option(text: str) -> tuple[str | None, RecordedHash]:
    match = _OPTION.fullmatch(text)
    if match is None:
        raise CliError(
            f"--state-hash {text}: expected OFFSET:HASH or LOG=OFFSET:HASH, the hash in 32 hexadecimal digits",
            status=ExitStatus.USAGE,
        )
    return match["source"], RecordedHash(int(match["offset"]), match["hash"].lower())


def _of_file(path: Path) -> list[RecordedHash]:
    try:
        content = json.loads(read_regular(path))
    except OSError as error:
        raise CliError(f"--state-hashes {path}: {error.strerror}", status=ExitStatus.USAGE) from None
    except ValueError as error:
        raise CliError(f"--state-hashes {path} is no JSON: {error}", status=ExitStatus.USAGE) from None
    found = list(_in_json(content))
    if not found:
        raise CliError(
            f"--state-hashes {path} holds no hash: expected what `kquorum quorum status --json` or "
            "`kquorum log state-hash --json` prints",
            status=ExitStatus.USAGE,
        )
    return found


def _in_json(value: Any) -> Iterator[RecordedHash]:
    """Every object with an offset and a hash, wherever it stands."""
    if isinstance(value, list):
        for each in value:
            yield from _in_json(each)
    elif isinstance(value, dict):
        # Hashes of two schemes always differ, which would look like a node with other metadata.
        if value.get("scheme", SCHEME) != SCHEME:
            raise CliError(
                f"--state-hashes: a hash of scheme {value['scheme']}; this program makes those of scheme {SCHEME}",
                status=ExitStatus.USAGE,
            )
        # `quorum status` and `log state-hash` nest these objects in different places and have two names for the hash.
        offset, text = value.get("offset"), value.get("state_hash", value.get("hash"))
        if isinstance(offset, int) and isinstance(text, str) and _HASH.fullmatch(text):
            yield RecordedHash(offset, text.lower())
        for each in value.values():
            yield from _in_json(each)


_MOST_TYPES: Final = 3


def show_replicas(report: ReplicaReport, sources: Mapping[str, AuditedSource], *, is_alone: bool) -> None:
    """A log that is alone in its cluster is a line, and none where there is no other cluster either."""
    name = f"cluster {report.cluster_id}" if report.cluster_id else "one cluster"
    if report.facts is None or report.mark is None:
        if len(report.sources) > 1 or not is_alone:
            say(safe_text(f"{' '.join(report.sources)}: not compared, as {report.why_not}"), style="dim")
        return
    facts = report.facts
    rows = [_row(sources[each.source], facts) for each in facts.sources]
    title = safe_text(
        f"The {len(rows)} logs of {name}, {facts.batches:,} batches, voters {ids(facts.voter_ids)}"
    )
    columns = ("log", "node", "offsets", "#last\nepoch", "quorum-state", "~beyond what all hold")
    print_table(title, columns, rows)
    for line in _told(facts, report.mark):
        say(line)
    for finding in report.findings:
        _show(finding)
    for copies in report.snapshots:
        say(safe_text(_snapshot_text(copies)), style="dim")
    console().print()


def _row(source: AuditedSource, facts: ReplicaFacts) -> tuple[object, ...]:
    member = source.member
    led = "" if member.leader_id is None else f", leader {member.leader_id}"
    state = "" if member.leader_epoch is None else f"epoch {member.leader_epoch}{led}"
    offsets = "" if source.end_offset is None else f"{source.start_offset}..{source.end_offset - 1}"
    node = "" if member.node_id is None else str(member.node_id)
    return (
        safe_text(source.source),
        node,
        offsets,
        str(facts.last_epochs.get(source.source, "")),
        state,
        Text(safe_text(_beyond_text([each for each in facts.beyond if each.source == source.source]))),
    )


def _beyond_text(beyond: Sequence[Beyond]) -> str:
    if len(beyond) <= _MOST_TYPES:
        return ", ".join(f"{each.count:,} {each.record_type} of epoch {each.leader_epoch}" for each in beyond)
    epochs = [each.leader_epoch for each in beyond]
    return f"{sum(each.count for each in beyond):,} records of epochs {min(epochs)} to {max(epochs)}"


def _told(facts: ReplicaFacts, mark: Watermark) -> Iterator[str]:
    if facts.difference is None:
        yield f"They agree: no two of them hold different records. All reach up to offset {facts.agreed_below - 1}."
    else:
        offset = facts.difference.offset
        yield f"They agree up to offset {offset - 1}, and differ from offset {offset} on."
    if mark.by is not None:
        yield f"Committed for certain: all below offset {mark.at_least}, which the snapshot {mark.by} holds."
    if mark.majority_below is None:
        yield "What a majority holds cannot be told: the logs of too few voters are here."
    else:
        yield f"A majority of the voters holds the same below offset {mark.majority_below}."
    yield "All this is as of when the files were copied: a log copied later than the others may hold more."


def _show(finding: ReplicaFinding) -> None:
    line = Text()
    line.append(
        "violation " if finding.is_violation else "lawful ", "red" if finding.is_violation else "yellow"
    )
    line.append("replicas: ", "bold")
    place = [finding.source, *([finding.file] if finding.file else [])]
    if finding.offset is not None:
        place.append(f"offset {finding.offset}")
    if len(finding.proof_offsets) > 1:
        place.append(f"proved by offsets {', '.join(map(str, finding.proof_offsets))}")
    line.append(safe_text(", ".join(place)))
    console().print(line, soft_wrap=True)
    say_indented(f"{finding.subject}: {finding.reason}")


def say_indented(text: str) -> None:
    """A sentence below a finding: wrapped on a terminal, one line elsewhere."""
    out = console()
    if out.is_terminal:
        out.print(Padding(Text(safe_text(text)), (0, 0, 0, 4)))
    else:
        say(f"    {safe_text(text)}")


def _snapshot_text(copies: SnapshotCopies) -> str:
    where = " and ".join(copies.sources)
    if copies.same_bytes:
        return f"snapshot {copies.file}: the same bytes in {where}"
    if copies.same_state is None:
        return f"snapshot {copies.file}: not compared, as too few of the copies in {where} are sound"
    if not copies.same_state:
        return f"snapshot {copies.file}: another state in each of {where}"
    return f"snapshot {copies.file}: the same state in {where}; each node writes its own file, with its own time in it"


def replicas_json(report: ReplicaReport) -> dict[str, Any]:
    """All of the comparison."""
    facts, mark = report.facts, report.mark
    return {
        "cluster_id": report.cluster_id,
        "logs": list(report.sources),
        "not_compared": report.why_not,
        "voter_ids": None if facts is None else list(facts.voter_ids),
        "agreed_below": None if facts is None else facts.agreed_below,
        "committed_below": None if mark is None else mark.at_least,
        "committed_by_snapshot": None if mark is None else mark.by,
        "majority_below": None if mark is None else mark.majority_below,
        "last_epochs": None if facts is None else facts.last_epochs,
        "difference": None if facts is None or facts.difference is None else asdict(facts.difference),
        "beyond": [] if facts is None else [asdict(each) for each in facts.beyond],
        "findings": [asdict(each) for each in report.findings],
        "snapshots": [asdict(each) for each in report.snapshots],
    }


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckWish:
    """What was asked for, as the options say it. `only` names groups of checks; empty: all."""

    path: Path
    sources: tuple[str, ...]
    only: tuple[str, ...]
    state_hashes: tuple[str, ...]
    hash_files: tuple[Path, ...]
    same_cluster: bool
    keep: int
    as_json: bool
    master: str


def run_check(wish: CheckWish) -> ExitStatus:
    """FAILED where a rule is violated, else OK. Raises CliError."""
    recorded = recorded_hashes(wish.state_hashes, wish.hash_files)
    with opened(wish.path, master=wish.master) as tables:
        for source in (*wish.sources, *(each for each in recorded if each is not None)):
            _check_source(tables.manifest, source)
        request = CheckRequest(
            sources=tuple(dict.fromkeys(wish.sources)),
            groups=tuple(each for each in ALL_GROUPS if not wish.only or each in wish.only),
            keep=wish.keep,
            recorded=recorded,
            one_cluster=wish.same_cluster,
        )
        report = check_audit(tables, request, progress=tables.progress)
        tables.progress("")
        if wish.as_json:
            write_json(wish.path, tables.manifest, report)
        else:
            show_report(tables.manifest, report, keep=wish.keep)
    return ExitStatus.FAILED if report.violations else ExitStatus.OK


def _check_source(manifest: AuditManifest, name: str) -> None:
    names = [each.source for each in manifest.sources]
    if name not in names:
        raise CliError(f"no log {name} in this audit; it has {', '.join(names)}", status=ExitStatus.USAGE)
