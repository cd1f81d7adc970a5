"""The comparison of the logs of one cluster, on the terminal and as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from rich.padding import Padding
from rich.text import Text

from cli.audit.answers import ids
from cli.output import console, print_table, say
from spark_replay.audit_folder import AuditedSource
from spark_replay.checks.replica_facts import Beyond, ReplicaFacts
from spark_replay.checks.replica_verdict import ReplicaFinding, Watermark
from spark_replay.checks.results import ReplicaReport, SnapshotCopies
from wire.safe_text import safe_text

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
