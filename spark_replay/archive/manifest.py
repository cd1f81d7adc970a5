"""The manifest of an archive: one JSON object on each line, each with the hash of the line before it.

A line carries its own hash as well, so that an edit shows at the line where it was made. A writer who replaces
all hashes that follow changes the last one, the head: kept elsewhere, it proves everything before it.
"""

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from kquorum.regular_files import read_regular
from kquorum.spark_replay.decode.json_values import check_values
from kquorum.spark_replay.decode.sources import FileKind

MANIFEST: Final = "archive.jsonl"
FORMAT: Final = 1
_START: Final = "0" * 64


class ManifestBroken(Exception):
    """The manifest is not as it was written; the message says where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveEntry:
    """The first line. `made_ms` keeps the chains of two archives apart."""

    format: int
    made_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberEntry:
    """A log of the archive, in a folder of its own: one life of the disk of one voter or observer."""

    folder: str
    cluster_id: str | None
    node_id: int | None
    directory_id: str | None
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """An archived file; a later entry of the same member and name stands in its place.

    `end_offset` is exclusive: of a segment the end of its last sound batch, of a snapshot that of its name. `is_open`:
    the beginning of a segment that the node was still writing. `damage` names the first places, of
    `damaged_places`. Epochs and times are of the sound batches, None without any.
    """

    member: str
    name: str
    file_kind: FileKind
    size_in_bytes: int
    sha256: str
    archived_ms: int
    base_offset: int | None = None
    end_offset: int | None = None
    first_epoch: int | None = None
    last_epoch: int | None = None
    first_timestamp_ms: int | None = None
    last_timestamp_ms: int | None = None
    batches: int = 0
    records: int = 0
    is_open: bool = False
    damaged_places: int = 0
    damage: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # JSON has no enums and no tuples: entries that were read must equal those that were written.
        object.__setattr__(self, "file_kind", FileKind(self.file_kind))
        object.__setattr__(self, "damage", tuple(self.damage))


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """The offset index beside a segment, with which Spark cuts a large one into pieces."""

    member: str
    name: str
    size_in_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GapEntry:
    """Offsets [from_offset, to_offset) that this member's log no longer had when the archive came for them."""

    member: str
    from_offset: int
    to_offset: int
    noted_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """What a run that archived something saw at a member: its log from `log_start_offset` on, closed up to
    `active_base_offset`; the epoch and leader that the node knew."""

    member: str
    made_ms: int
    log_start_offset: int | None
    active_base_offset: int | None
    leader_epoch: int | None
    leader_id: int | None


Entry = ArchiveEntry | MemberEntry | FileEntry | IndexEntry | GapEntry | RunEntry
_KINDS: Final[dict[str, type[Entry]]] = {
    "archive": ArchiveEntry,
    "member": MemberEntry,
    "file": FileEntry,
    "index": IndexEntry,
    "gap": GapEntry,
    "run": RunEntry,
}
# Of files and folders of the archive.
_FILE_NAMES: Final = frozenset({"folder", "member", "name"})
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_NAMES: Final = {kind: name for name, kind in _KINDS.items()}


@dataclass(slots=True)
class ArchiveManifest:
    """The entries so far. `hashes` has one for each line."""

    entries: list[Entry] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    hashes: list[str] = field(default_factory=list)

    @property
    def head(self) -> str:
        """The hash of the last line, which all lines lead to."""
        return self.hashes[-1] if self.hashes else _START

    def add(self, entry: Entry) -> None:
        # Number and previous hash are part of what is hashed: a line that is moved, removed or repeated breaks the
        # chain.
        content = {"line": len(self.lines) + 1, "previous": self.head, "kind": _NAMES[type(entry)]}
        content |= asdict(entry)
        line_hash = _hash(content)
        self.entries.append(entry)
        self.lines.append(json.dumps({**content, "hash": line_hash}))
        self.hashes.append(line_hash)

    def encode(self) -> bytes:
        return "".join(f"{line}\n" for line in self.lines).encode()

    @property
    def members(self) -> dict[str, MemberEntry]:
        """By folder."""
        return {entry.folder: entry for entry in self.entries if isinstance(entry, MemberEntry)}

    @property
    def cluster_id(self) -> str | None:
        """The first that a member named."""
        return next((each.cluster_id for each in self.members.values() if each.cluster_id is not None), None)

    def files(self, member: str) -> dict[str, FileEntry]:
        """The newest entry of each file of a member, by its name."""
        return {
            entry.name: entry
            for entry in self.entries
            if isinstance(entry, FileEntry) and entry.member == member
        }

    def indexes(self, member: str) -> dict[str, IndexEntry]:
        return {
            entry.name: entry
            for entry in self.entries
            if isinstance(entry, IndexEntry) and entry.member == member
        }

    def segments(self, member: str) -> list[FileEntry]:
        """The archived segments of a member, ascending."""
        found = [entry for entry in self.files(member).values() if entry.file_kind is FileKind.LOG]
        return sorted(found, key=lambda entry: entry.base_offset or 0)

    def known_gaps(self, member: str) -> list[tuple[int, int]]:
        """As [from, to)."""
        found = {
            (entry.from_offset, entry.to_offset)
            for entry in self.entries
            if isinstance(entry, GapEntry) and entry.member == member
        }
        return sorted(found)


def is_archive(folder: Path) -> bool:
    return (folder / MANIFEST).is_file()


def read_manifest(folder: Path) -> ArchiveManifest:
    """Raises ManifestBroken, at the first line that is not as it was written, and OSError."""
    path = folder / MANIFEST
    manifest = ArchiveManifest()
    try:
        text = read_regular(path).decode()
    except UnicodeDecodeError as error:
        raise ManifestBroken(f"{path} is not text: {error}") from None
    for number, line in enumerate(text.splitlines(), 1):
        try:
            manifest.add(_entry(line))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ManifestBroken(f"{path}, line {number}: cannot be read: {error!r}") from None
        # `add` has written the entry again. Comparing the text covers every byte: hash, order of keys, and fields that
        # a reader would ignore.
        if manifest.lines[-1] != line:
            raise ManifestBroken(f"{path}, line {number}: {_difference(line)}")
    # The manifest is replaced as a whole, so a last line without an end was not written by this program.
    if not manifest.entries or not text.endswith("\n"):
        raise ManifestBroken(f"{path} ends within a line" if text else f"{path} is empty")
    first = manifest.entries[0]
    if not isinstance(first, ArchiveEntry) or first.format != FORMAT:
        raise ManifestBroken(f"{path} is no manifest of format {FORMAT}")
    return manifest


def _entry(line: str) -> Entry:
    """Raises ValueError, KeyError, TypeError or RecursionError."""
    content = json.loads(line)
    kind = _KINDS[content["kind"]]
    entry = kind(
        **{key: value for key, value in content.items() if key not in ("line", "previous", "kind", "hash")}
    )
    _check_values(entry)
    return entry


def _check_values(entry: Entry) -> None:
    """The hashes say that the lines belong together, not who wrote them: a name must not lead out of the archive.
    Raises ValueError."""
    check_values(entry)
    for name in _FILE_NAMES.intersection(entry.__slots__):
        if not _FILE_NAME.fullmatch(value := getattr(entry, name)):
            raise ValueError(f"{name} is {value!r}, which is not the name of a file or folder in the archive")


def _difference(line: str) -> str:
    """Why the line is not what its entry is written as."""
    content = json.loads(line)
    hashed = {key: value for key, value in content.items() if key != "hash"}
    if content.get("hash") != _hash(hashed):
        return "was changed: its content and its hash do not belong together"
    return "does not follow the line before it: lines were changed, removed or moved"


def _hash(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
