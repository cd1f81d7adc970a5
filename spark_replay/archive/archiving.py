"""An archive of metadata logs: closed segments and snapshots, kept after the nodes have removed theirs.

    archive(["/var/lib/kafka/metadata"], Path("/backup/audit"))

Each run copies what is new. A file is first copied to another name and noted as pending, then renamed, then entered
into the manifest, so that a run which is stopped anywhere leaves an archive that the next one goes on with. An archive
is a folder of metadata folders, one for each member, and can be read as such by everything that reads logs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from kquorum.spark_replay.archive.files import PART_SUFFIX, ArchiveFiles, archive_locked, link_in
from kquorum.spark_replay.archive.manifest import (
    FORMAT,
    MANIFEST,
    ArchiveEntry,
    ArchiveManifest,
    is_archive,
    read_manifest,
)
from kquorum.spark_replay.archive.pending import Pending
from kquorum.spark_replay.archive.plan import MemberPlan, log_folder_of, plan_member
from kquorum.spark_replay.archive.report import ArchiveReport, MemberReport, others_with
from kquorum.spark_replay.archive.run import Progress, Run, now_ms
from kquorum.spark_replay.decode.sources import (
    LogFile,
    NoLogFound,
    find_log_files_of,
    metadata_folder_of,
    printable,
)


class ArchiveRefused(Exception):
    """Nothing was archived: source and archive cannot both be right; the message says why."""


class NotAnArchive(Exception):
    """The folder cannot become an archive; the message says why."""


def archive(
    roots: Sequence[Path | str],
    to: Path,
    *,
    include_active: bool = False,
    progress: Progress = lambda step: None,  # noqa: ARG005
    files: ArchiveFiles | None = None,
) -> ArchiveReport:
    """Copy what is closed at `roots` and not yet in the archive `to`, which is made where there is none.

    `include_active` also copies the whole batches of the segment that the node is writing; a later run replaces them.
    Raises NoLogFound, NotAnArchive, AnotherCluster, ArchiveRefused, ManifestBroken, ArchiveLocked and OSError.
    """
    disk = files or ArchiveFiles()
    for root in roots:
        if Path(root).is_file():
            raise NoLogFound(
                f"{root} is a file: name its folder, where a newer segment says that it is closed"
            )
    found = find_log_files_of(roots)
    _check_place(to, found)
    disk.make_folder(to)
    to, named = to.resolve(), to
    with archive_locked(to):
        for part in sorted(to.rglob(f".*{PART_SUFFIX}")):  # of a run that was stopped
            disk.remove(part)
        manifest = read_manifest(to) if is_archive(to) else ArchiveManifest()
        written = manifest.head
        if not manifest.entries:
            manifest.add(ArchiveEntry(format=FORMAT, made_ms=now_ms()))
        pending = Pending(to)
        _check_links(to, manifest.members)
        plans = _plans(to, manifest, pending, found, include_active=include_active)
        _check_links(to, [plan.entry.folder for plan in plans])
        run = Run(to, manifest, pending, disk, progress, written=written)
        reports = [run.carry_out(plan) for plan in plans]
        return ArchiveReport(
            folder=str(named),
            cluster_id=manifest.cluster_id,
            head=manifest.head,
            members=tuple(_with_others(manifest, report) for report in reports),
        )


def _with_others(manifest: ArchiveManifest, report: MemberReport) -> MemberReport:
    """Once all members are archived it is known who else has what one of them lacks."""
    gaps = (
        replace(gap, others=others_with(manifest, report.folder, (gap.from_offset, gap.to_offset)))
        for gap in report.gaps
    )
    return replace(report, gaps=tuple(gaps))


def _check_place(to: Path, found: Sequence[LogFile]) -> None:
    place = to.resolve()
    for folder in {metadata_folder_of(Path(file.path).parent) for file in found}:
        if place.is_relative_to(folder) or folder.is_relative_to(place):
            raise NotAnArchive(f"the archive {to} and the log in {folder} must not lie one in the other")
    if to.exists() and not to.is_dir():
        raise NotAnArchive(f"{to} is a file; name a folder for the archive")
    if to.is_dir() and not is_archive(to) and any(not path.name.startswith(".") for path in to.iterdir()):
        raise NotAnArchive(
            f"{to} is neither empty nor an archive (there is no {MANIFEST} in it); name another folder"
        )


def _check_links(to: Path, members: Iterable[str]) -> None:
    for member in members:
        link = link_in(to / member)
        if link is not None:
            raise NotAnArchive(
                f"{link} is a symbolic link, which is not followed: move what it leads to here"
            )


def _plans(
    to: Path, manifest: ArchiveManifest, pending: Pending, found: Sequence[LogFile], *, include_active: bool
) -> list[MemberPlan]:
    """Every plan before anything is copied. Each new member is entered at once, so that the next one may not take its
    folder."""
    plans = list[MemberPlan]()
    for _, group in groupby(found, key=lambda file: file.source):
        plan = plan_member(to, manifest, pending, list(group), include_active=include_active)
        same = [*(each for each in plans if each.entry.folder == plan.entry.folder), plan]
        if len(same) > 1:
            first, second = (printable(str(log_folder_of(each.files))) for each in same)
            raise ArchiveRefused(
                f"{first} and {second} are both logs of {plan.entry.folder}: archive one of them"
            )
        if manifest.members.get(plan.entry.folder) != plan.entry:
            manifest.add(plan.entry)
        plans.append(plan)
    contradictions = [each for plan in plans for each in plan.contradictions]
    if contradictions:
        raise ArchiveRefused("; ".join(contradictions))
    return plans
