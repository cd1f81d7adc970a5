"""What `audit archive` prints: a table of the members, and a line for everything that an operator must know."""

from collections.abc import Iterator, Sequence

from cli.commands.log_lines import iso_time
from cli.output import complain, print_table, say
from spark_replay.archive.manifest import FileEntry
from spark_replay.archive.report import ArchiveReport, Gap, MemberReport
from spark_replay.archive.verify import Verified, VerifiedMember
from wire.wording import counted

_SHOWN = 20


def print_report(report: ArchiveReport) -> None:
    """What a run copied; complaints on standard error."""
    print_table(
        "",
        ("log", "#copied", "#bytes", "#known", "#gone at\nsource", "archived offsets", "not yet\nfrom"),
        [
            (
                member.folder,
                len(member.copied),
                sum(entry.size_in_bytes for entry in member.copied),
                member.unchanged,
                member.gone_at_source,
                _offsets(member.archived_from, member.archived_to),
                "" if member.not_archived_from is None else str(member.not_archived_from),
            )
            for member in report.members
        ],
        spare=("#known", "#bytes"),
    )
    for member in report.members:
        for line in _lines(member):
            say(f"{member.folder}: {line}")
        for gap in member.gaps:
            told = _gap(gap) if gap.is_new else f"{_gap(gap)} (known)"
            complain(f"{member.folder}: {told}", style="yellow", label="gap")
        _complain_of_damage(member.folder, [entry for entry in member.copied if entry.damaged_places])
    say(f"head {report.head}")


def _lines(member: MemberReport) -> Iterator[str]:
    if member.archived_from is None:
        yield f"no segment is closed yet (--include-active archives what there is of {member.source})"
    elif member.archived_from and not member.snapshots:
        yield f"its history begins at offset {member.archived_from}, without a snapshot of what was before"
    yield from member.notes


def print_verified(verified: Verified) -> None:
    """What the archive holds; findings on standard error."""
    print_table(
        "",
        ("log", "#node", "#segments", "#snapshots", "#bytes", "offsets", "epochs", "from (UTC)", "to"),
        [_verified_row(member) for member in verified.members],
        spare=("#bytes", "epochs", "#node", "to", "from (UTC)"),
    )
    for member in verified.members:
        for gap in member.gaps:
            complain(f"{member.folder}: {_gap(gap)}", style="yellow", label="gap")
        _complain_of_damage(member.folder, member.damaged)
    for finding in verified.findings[:_SHOWN]:
        complain(f"{finding.path}: {finding.message}", label=finding.kind)
    if (hidden := len(verified.findings) - _SHOWN) > 0:
        complain(f"and {hidden} more; --json has all of them", label="findings")
    if not verified.findings:
        say(
            f"every file is as it was archived; the manifest leads to its head in {counted(verified.lines, 'line')}"
        )
    if verified.head is not None:
        say(f"head {verified.head}")


def _verified_row(member: VerifiedMember) -> Sequence[object]:
    times = (member.first_timestamp_ms, member.last_timestamp_ms)
    epochs = (member.first_epoch, member.last_epoch)
    return (
        member.folder,
        "" if member.node_id is None else str(member.node_id),
        member.segments,
        member.snapshots,
        member.size_in_bytes,
        _offsets(member.archived_from, member.archived_to),
        "" if epochs[0] is None else f"{epochs[0]} to {epochs[1]}",
        *("" if each is None else iso_time(each) for each in times),
    )


def _offsets(start: int | None, end: int | None) -> str:
    if start is None or end is None:
        return ""
    return "none" if end <= start else f"{start} to {end - 1}"


def _gap(gap: Gap) -> str:
    told = f"offsets {gap.from_offset} to {gap.to_offset - 1} are missing"
    if gap.others:
        return f"{told}; {' and '.join(gap.others)} has them"
    return f"{told}: lost for good, unless another copy of this log has them"


def _complain_of_damage(member: str, entries: Sequence[FileEntry]) -> None:
    for entry in entries:
        more = f" and {entry.damaged_places - 1} more places" if entry.damaged_places > 1 else ""
        complain(
            f"{member}: {entry.name}, {entry.damage[0]}{more}; archived as it is",
            style="yellow",
            label="damage",
        )
