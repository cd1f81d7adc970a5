"""The work of `audit archive`: archive or verify, and the table, lines and exit status that report it."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kquorum.cli.commands.log.dump_lines import iso_time
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.output import complain, print_table, say
from kquorum.spark_replay.archive.archiving import ArchiveRefused, NotAnArchive, archive
from kquorum.spark_replay.archive.files import ArchiveLocked
from kquorum.spark_replay.archive.manifest import FileEntry, ManifestBroken
from kquorum.spark_replay.archive.plan import AnotherCluster
from kquorum.spark_replay.archive.report import ArchiveReport, Gap, MemberReport
from kquorum.spark_replay.archive.run import Progress
from kquorum.spark_replay.archive.verify import NoArchive, Verified, VerifiedMember, verify_archive
from kquorum.spark_replay.decode.sources import NoLogFound
from kquorum.wire.wording import counted


def run_archive(roots: Sequence[str], to: Path, *, include_active: bool) -> ArchiveReport:
    """Raises CliError."""
    with _refusals_told(), _progress() as progress:
        return archive(roots, to, include_active=include_active, progress=progress)


def run_verify(folder: Path, *, head: str | None) -> Verified:
    """Raises CliError."""
    with _refusals_told(), _progress() as progress:
        return verify_archive(folder, head=head, progress=progress)


def status_of_run(report: ArchiveReport) -> ExitStatus:
    """DAMAGED_INPUT, once, when offsets are lost or bytes are damaged; what was archived is safe."""
    return ExitStatus.DAMAGED_INPUT if report.is_troubled else ExitStatus.OK


def status_of_verified(verified: Verified) -> ExitStatus:
    """An archive that is as it was made may have been made of a log with a gap or damage."""
    if verified.findings:
        return ExitStatus.FAILED
    is_whole = not any(member.gaps or member.damaged for member in verified.members)
    return ExitStatus.OK if is_whole else ExitStatus.DAMAGED_INPUT


def as_json(answer: ArchiveReport | Verified) -> dict[str, Any]:
    return asdict(answer)


@contextmanager
def _refusals_told() -> Iterator[None]:
    try:
        yield
    except (NoLogFound, NotAnArchive, NoArchive) as error:
        raise CliError(str(error), status=ExitStatus.USAGE) from None
    except ArchiveLocked as error:
        raise CliError(f"{error}; run this again when it is done", status=ExitStatus.FOLDER_REFUSED) from None
    except AnotherCluster as error:
        raise CliError(f"nothing was archived: {error}", status=ExitStatus.FAILED) from None
    except ArchiveRefused as error:
        raise CliError(
            f"nothing was archived: {error}. The archive stays as it is; what the log holds now needs an archive in "
            "another folder",
            status=ExitStatus.FAILED,
        ) from None
    except ManifestBroken as error:
        raise CliError(
            f"nothing was archived: {error}. `audit archive --verify` tells more; begin another archive, and keep this "
            "one for what its files still prove",
            status=ExitStatus.FAILED,
        ) from None


@contextmanager
def _progress() -> Iterator[Progress]:
    """One changing line on a terminal; elsewhere the report at the end is all that is said."""
    if not sys.stderr.isatty():
        yield lambda step: None  # noqa: ARG005
        return
    from rich.text import Text

    from kquorum.cli.output import error_console

    with error_console().status("") as status:
        yield lambda step: status.update(Text(step))


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
            text = _gap(gap) if gap.is_new else f"{_gap(gap)} (known)"
            complain(f"{member.folder}: {text}", style="yellow", label="gap")
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
    text = f"offsets {gap.from_offset} to {gap.to_offset - 1} are missing"
    if gap.others:
        return f"{text}; {' and '.join(gap.others)} has them"
    return f"{text}: lost for good, unless another copy of this log has them"


def _complain_of_damage(member: str, entries: Sequence[FileEntry]) -> None:
    for entry in entries:
        more = f" and {entry.damaged_places - 1} more places" if entry.damaged_places > 1 else ""
        complain(
            f"{member}: {entry.name}, {entry.damage[0]}{more}; archived as it is",
            style="yellow",
            label="damage",
        )
