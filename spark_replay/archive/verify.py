"""Whether an archive is still what was archived, file by file, and whether the manifest is."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kquorum.spark_replay.archive.files import Digest, archive_locked, described, digest, link_in
from kquorum.spark_replay.archive.manifest import (
    MANIFEST,
    ArchiveManifest,
    FileEntry,
    IndexEntry,
    ManifestBroken,
    MemberEntry,
    is_archive,
    read_manifest,
)
from kquorum.spark_replay.archive.report import Gap, gaps_of, others_with
from kquorum.spark_replay.archive.run import Progress, folder_in
from kquorum.spark_replay.decode.members import member_of
from kquorum.spark_replay.decode.sources import (
    METADATA_FOLDER,
    FileKind,
    NoLogFound,
    find_log_files,
    log_file,
)

_SHOWN: Final = 12


class NoArchive(Exception):
    """The folder holds no archive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that is not as it was archived: `manifest`, `head`, `missing`, `changed`, `range`, `gap`, `member` or
    `unlisted`, of the file or folder `path` within the archive."""

    kind: str
    path: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedMember:
    """What the archive has of one log. `gaps` and `damaged` were there when it was archived."""

    folder: str
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None
    segments: int
    snapshots: int
    size_in_bytes: int
    archived_from: int | None
    archived_to: int | None
    first_timestamp_ms: int | None
    last_timestamp_ms: int | None
    first_epoch: int | None
    last_epoch: int | None
    gaps: tuple[Gap, ...]
    damaged: tuple[FileEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """`head` is None of a manifest that cannot be read."""

    folder: str
    head: str | None
    lines: int
    members: tuple[VerifiedMember, ...]
    findings: tuple[Finding, ...]


def verify_archive(
    folder: Path,
    *,
    head: str | None = None,
    progress: Progress = lambda step: None,  # noqa: ARG005
) -> Verified:
    """Check the manifest's chain, that it leads over `head` where that is given (at least its first digits), and each
    file: that it is there, its bytes, what it holds, and that nothing is missing between them.

    Raises NoArchive, ArchiveLocked and OSError.
    """
    if not is_archive(folder):
        raise NoArchive(f"{folder} holds no archive: there is no {MANIFEST} in it")
    folder, named = folder.resolve(), folder
    with archive_locked(folder, shared=True):
        try:
            manifest = read_manifest(folder)
        except ManifestBroken as error:
            finding = Finding(kind="manifest", path=MANIFEST, message=str(error))
            return Verified(folder=str(named), head=None, lines=0, members=(), findings=(finding,))
        findings = [*_head(manifest, head)]
        for member in manifest.members.values():
            link = link_in(folder / member.folder)
            if link is not None:
                message = "is a symbolic link, which is not followed: nothing of this log was checked"
                findings.append(Finding(kind="member", path=str(link.relative_to(folder)), message=message))
                continue
            findings += _member(folder, member)
            for entry in _entries(manifest, member.folder):
                progress(f"checking {member.folder}/{entry.name}")
                findings += _file(folder, entry)
            findings += _gaps(manifest, member.folder)
        findings += _unlisted(folder, manifest)
        return Verified(
            folder=str(named),
            head=manifest.head,
            lines=len(manifest.lines),
            members=tuple(_verified(manifest, member) for member in manifest.members.values()),
            findings=tuple(findings),
        )


def _entries(manifest: ArchiveManifest, member: str) -> list[FileEntry | IndexEntry]:
    return [*manifest.files(member).values(), *manifest.indexes(member).values()]


def _head(manifest: ArchiveManifest, head: str | None) -> Iterator[Finding]:
    if head is not None and not any(each.startswith(head.lower()) for each in manifest.hashes):
        message = f"no line of the manifest has the hash {head}: it was rewritten since that head was noted"
        yield Finding(kind="head", path=MANIFEST, message=message)


def _member(folder: Path, entry: MemberEntry) -> Iterator[Finding]:
    """The copied meta.properties is what readers of the archive go by."""
    found = member_of(folder / entry.folder / METADATA_FOLDER)
    archived = (entry.cluster_id, entry.node_id, entry.directory_id)
    if archived != (found.cluster_id, found.node_id, found.directory_id):
        message = (
            f"its files say cluster {found.cluster_id}, node {found.node_id}, directory {found.directory_id}; "
            f"archived was cluster {archived[0]}, node {archived[1]}, directory {archived[2]}"
        )
        yield Finding(kind="member", path=entry.folder, message=message)


def _file(folder: Path, entry: FileEntry | IndexEntry) -> Iterator[Finding]:
    kind = entry.file_kind if isinstance(entry, FileEntry) else FileKind.LOG
    path = folder_in(folder / entry.member, kind) / entry.name
    name = str(path.relative_to(folder))
    if not path.is_file():
        yield Finding(kind="missing", path=name, message=f"{entry.size_in_bytes:,} bytes are gone")
        return
    found = digest(path, entry.size_in_bytes)
    if found.sha256 != entry.sha256:
        is_open = isinstance(entry, FileEntry) and entry.is_open
        if is_open and found.size_in_bytes > entry.size_in_bytes and found.prefix_sha256 == entry.sha256:
            message = "a run was stopped while it replaced this open segment by a longer piece: archive again"
            yield Finding(kind="unlisted", path=name, message=message)
            return
        yield Finding(kind="changed", path=name, message=_change(entry, found.size_in_bytes, found.sha256))
    elif isinstance(entry, FileEntry) and (wrong := _wrong_facts(path, entry, found)):
        message = f"the manifest says {wrong} other than the file's bytes do"
        yield Finding(kind="range", path=name, message=message)


def _change(entry: FileEntry | IndexEntry, size: int, sha256: str) -> str:
    if size != entry.size_in_bytes:
        return f"{size:,} bytes in place of the {entry.size_in_bytes:,} that were archived"
    return f"SHA-256 {sha256[:_SHOWN]}... in place of {entry.sha256[:_SHOWN]}...: its bytes were changed"


def _wrong_facts(path: Path, entry: FileEntry, digested: Digest) -> str:
    """Names of the columns in which the entry and the file differ."""
    found = described(
        path,
        log_file(path, source=entry.member),
        digested,
        member=entry.member,
        is_open=entry.is_open,
        now_ms=entry.archived_ms,
    )
    return ", ".join(name for name in FileEntry.__slots__ if getattr(found, name) != getattr(entry, name))


def _gaps(manifest: ArchiveManifest, member: str) -> Iterator[Finding]:
    """Gaps that no run noted: entries of the manifest are missing, or were never there."""
    known = manifest.known_gaps(member)
    for start, end in gaps_of(manifest, member):
        if (start, end) not in known:
            message = f"offsets {start} to {end - 1} are missing, and no run noted that"
            yield Finding(kind="gap", path=member, message=message)


def _unlisted(folder: Path, manifest: ArchiveManifest) -> Iterator[Finding]:
    """Segments and snapshots that readers of the archive would take for archived ones."""
    listed = {
        str(folder_in(folder / member, entry.file_kind) / entry.name)
        for member in manifest.members
        for entry in manifest.files(member).values()
    }
    try:
        found = find_log_files(folder)
    except NoLogFound:
        return
    for file in found:
        if file.path not in listed:
            message = "is in no line of the manifest: by a run that was stopped (archive again), or put there by others"
            path = str(Path(file.path).relative_to(folder))
            yield Finding(kind="unlisted", path=path, message=message)


def _verified(manifest: ArchiveManifest, member: MemberEntry) -> VerifiedMember:
    files = list(manifest.files(member.folder).values())
    segments = manifest.segments(member.folder)
    sound = [each for each in segments if each.batches]
    gaps = gaps_of(manifest, member.folder)
    return VerifiedMember(
        folder=member.folder,
        cluster_id=member.cluster_id,
        node_id=member.node_id,
        directory_id=member.directory_id,
        segments=len(segments),
        snapshots=sum(each.file_kind is FileKind.SNAPSHOT for each in files),
        size_in_bytes=sum(each.size_in_bytes for each in files),
        archived_from=segments[0].base_offset if segments else None,
        archived_to=segments[-1].end_offset if segments else None,
        first_timestamp_ms=sound[0].first_timestamp_ms if sound else None,
        last_timestamp_ms=sound[-1].last_timestamp_ms if sound else None,
        first_epoch=sound[0].first_epoch if sound else None,
        last_epoch=sound[-1].last_epoch if sound else None,
        gaps=tuple(
            Gap(from_offset=gap[0], to_offset=gap[1], others=others_with(manifest, member.folder, gap))
            for gap in gaps
        ),
        damaged=tuple(each for each in files if each.damaged_places),
    )
