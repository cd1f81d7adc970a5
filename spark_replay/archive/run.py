"""Carries out what is planned for an archive: copies, enters, and says what was done."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from kquorum.regular_files import NotRegular
from kquorum.spark_replay.archive.files import (
    PART_SUFFIX,
    ArchiveFiles,
    ChangedMeanwhile,
    Digest,
    described,
    digest,
)
from kquorum.spark_replay.archive.manifest import (
    MANIFEST,
    ArchiveManifest,
    FileEntry,
    GapEntry,
    IndexEntry,
    RunEntry,
)
from kquorum.spark_replay.archive.pending import Pending, PendingCopy
from kquorum.spark_replay.archive.plan import DELETED_SUFFIX, MemberPlan, PlannedCopy, log_folder_of
from kquorum.spark_replay.archive.report import Gap, MemberReport, gaps_of
from kquorum.spark_replay.decode.files import is_regular, read_listed
from kquorum.spark_replay.decode.members import META_PROPERTIES, QUORUM_STATE
from kquorum.spark_replay.decode.sources import (
    METADATA_FOLDER,
    FileKind,
    LogFile,
    metadata_folder_of,
    printable,
)

Progress = Callable[[str], None]
COMMIT_BYTES: Final = 256 * 1024 * 1024


class Run:
    """Carries out the plans, one member after the other."""

    def __init__(
        self,
        to: Path,
        manifest: ArchiveManifest,
        pending: Pending,
        disk: ArchiveFiles,
        progress: Progress,
        *,
        written: str,
    ) -> None:
        """`written` is the head that the manifest on the disk has."""
        self._to = to
        self._manifest = manifest
        self._pending = pending
        self._disk = disk
        self._progress = progress
        self._written = written
        self._uncommitted_bytes = 0

    def carry_out(self, plan: MemberPlan) -> MemberReport:
        folder = self._to / plan.entry.folder
        self._commit()  # a folder that no line of the manifest tells of would be taken for something else
        self._disk.make_folder(folder / METADATA_FOLDER)
        self._copy_facts(plan)
        copied = [self._adopt(plan, copy) for copy in plan.leftovers]
        for copy in plan.copies:
            entry = self._copy(plan, copy, folder_in(folder, copy.file.kind))
            copied += [entry] if entry is not None else []
            # A commit writes the whole manifest, so not after every file; and not at the end alone, or a crash costs
            # all.
            if self._uncommitted_bytes >= COMMIT_BYTES:
                self._commit()
        gaps = self._note_gaps(plan)
        # A run that found nothing new leaves the manifest as it is, byte by byte, so its head stays what the user wrote
        # down.
        if copied or any(gap.is_new for gap in gaps):
            self._note_run(plan)
        self._commit()
        # Only after the commit: until then the notes are all that says whose these files are.
        self._pending.settle(self._disk, plan.entry.folder)
        return self._report(plan, copied, gaps)

    def _copy(self, plan: MemberPlan, copy: PlannedCopy, folder: Path) -> FileEntry | None:
        file, part = copy.file, folder / f".{copy.file.name}{PART_SUFFIX}"
        self._progress(f"archiving {plan.entry.folder}/{file.name}")
        try:
            found = self._copy_in_time(Path(file.path), part, copy.limit)
        except (FileNotFoundError, ChangedMeanwhile):
            self._disk.remove(part)
            plan.notes.append(f"{file.name} was removed or changed by the node while it was copied")
            return None
        except OSError:
            with suppress(OSError):
                self._disk.remove(part)
            raise
        entry = described(part, file, found, member=plan.entry.folder, is_open=copy.is_open, now_ms=now_ms())
        # The index of a segment that still grows would soon be too short for it.
        if not copy.is_open:
            self._copy_index(plan, file, folder)
        # The note comes before the rename, and the manifest after it: after a crash between the two, the next run finds
        # the note and enters the file without a second copy (`_adopt`).
        self._pending.note(
            self._disk,
            PendingCopy(
                member=plan.entry.folder,
                name=file.name,
                size_in_bytes=found.size_in_bytes,
                sha256=found.sha256,
                is_open=copy.is_open,
            ),
        )
        self._disk.rename(part, folder / file.name)
        self._manifest.add(entry)
        self._uncommitted_bytes += entry.size_in_bytes
        return entry

    def _copy_in_time(self, path: Path, part: Path, limit: int | None) -> Digest:
        """A file that the node marks as removed meanwhile has another name, and is the same."""
        try:
            return self._disk.copy(path, part, limit)
        except FileNotFoundError:
            return self._disk.copy(path.with_name(path.name + DELETED_SUFFIX), part, limit)

    def _copy_index(self, plan: MemberPlan, file: LogFile, folder: Path) -> None:
        """Only a hint to readers, which Kafka can rebuild at any time: one that cannot be read is left out."""
        index = Path(file.path).with_suffix(".index")
        if (
            file.kind is not FileKind.LOG
            or not is_regular(index)
            or index.stat().st_size > file.size_in_bytes
        ):
            return
        part = folder / f".{index.name}{PART_SUFFIX}"
        with suppress(FileNotFoundError, NotRegular, ChangedMeanwhile):
            found = self._disk.copy(index, part)
            self._disk.rename(part, folder / index.name)
            self._manifest.add(
                IndexEntry(
                    member=plan.entry.folder,
                    name=index.name,
                    size_in_bytes=found.size_in_bytes,
                    sha256=found.sha256,
                )
            )

    def _adopt(self, plan: MemberPlan, copy: PlannedCopy) -> FileEntry:
        """Enter what a run before this one copied and could not enter any more."""
        file, path = copy.file, Path(copy.file.path)
        plan.notes.append(f"{file.name} was copied by a run that was stopped before it could enter it")
        entry = described(
            path, file, digest(path), member=plan.entry.folder, is_open=copy.is_open, now_ms=now_ms()
        )
        self._manifest.add(entry)
        return entry

    def _copy_facts(self, plan: MemberPlan) -> None:
        """The files that say whose log it is, for readers of the archive."""
        log_folder, folder = log_folder_of(plan.files), self._to / plan.entry.folder
        for source, target in (
            (metadata_folder_of(log_folder) / META_PROPERTIES, folder / META_PROPERTIES),
            (log_folder / QUORUM_STATE, folder / METADATA_FOLDER / QUORUM_STATE),
        ):
            with suppress(FileNotFoundError):
                try:
                    content = read_listed(source)
                except NotRegular as error:
                    plan.notes.append(f"{printable(str(source))} is passed over: {error.strerror}")
                    continue
                if not target.is_file() or target.read_bytes() != content:
                    self._disk.write_whole(target, content)

    def _note_gaps(self, plan: MemberPlan) -> tuple[Gap, ...]:
        """The gaps between archived segments, and between them and the active one; those that are new are entered."""
        member = plan.entry.folder
        gaps, segments = set(gaps_of(self._manifest, member)), plan.segments
        archived = self._manifest.segments(member)
        active_base = segments[-1].base_offset if segments else None
        if archived and active_base is not None and (archived[-1].end_offset or 0) < active_base:
            gaps.add((archived[-1].end_offset or 0, active_base))
        known = self._manifest.known_gaps(member)
        for start, end in sorted(gaps.difference(known)):
            self._manifest.add(GapEntry(member=member, from_offset=start, to_offset=end, noted_ms=now_ms()))
        return tuple(
            Gap(from_offset=gap[0], to_offset=gap[1], is_new=gap not in known) for gap in sorted(gaps)
        )

    def _note_run(self, plan: MemberPlan) -> None:
        segments = plan.segments
        self._manifest.add(
            RunEntry(
                member=plan.entry.folder,
                made_ms=now_ms(),
                log_start_offset=segments[0].base_offset if segments else None,
                active_base_offset=segments[-1].base_offset if segments else None,
                leader_epoch=plan.member.leader_epoch,
                leader_id=plan.member.leader_id,
            )
        )

    def _commit(self) -> None:
        if self._manifest.head != self._written:
            self._disk.write_whole(self._to / MANIFEST, self._manifest.encode())
            self._written = self._manifest.head
        self._uncommitted_bytes = 0

    def _report(self, plan: MemberPlan, copied: list[FileEntry], gaps: tuple[Gap, ...]) -> MemberReport:
        member = plan.entry.folder
        archived, segments = self._manifest.segments(member), plan.segments
        reached = archived[-1].end_offset if archived else None
        active_base = segments[-1].base_offset if segments else None
        kinds = [entry.file_kind for entry in self._manifest.files(member).values()]
        return MemberReport(
            folder=member,
            node_id=plan.entry.node_id,
            directory_id=plan.entry.directory_id,
            source=printable(str(log_folder_of(plan.files))),
            copied=tuple(copied),
            unchanged=plan.unchanged,
            gone_at_source=len(plan.gone),
            archived_from=archived[0].base_offset if archived else None,
            archived_to=reached,
            snapshots=kinds.count(FileKind.SNAPSHOT),
            not_archived_from=None if active_base is None else max(active_base, reached or 0),
            gaps=gaps,
            notes=tuple(plan.notes),
        )


def folder_in(member_folder: Path, kind: FileKind) -> Path:
    """Where a member's files of this kind lie, as on a node."""
    return member_folder if kind is FileKind.BOOTSTRAP else member_folder / METADATA_FOLDER


def now_ms() -> int:
    return time.time_ns() // 1_000_000
