"""What a run has copied and not entered into the manifest yet: a line before each rename, by which the next run knows
its files if this one is stopped. Anything else in the archive was put there by others."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from kquorum.regular_files import read_regular
from kquorum.spark_replay.archive.files import ArchiveFiles, Digest, digest

PENDING: Final = ".archive.pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCopy:
    """A file of a member as it was copied. `is_open`: the beginning of a segment that was still being written."""

    member: str
    name: str
    size_in_bytes: int
    sha256: str
    is_open: bool


class Pending:
    """The copies that no line of the manifest in `folder` may tell of yet; nothing is written before a `note`."""

    def __init__(self, folder: Path) -> None:
        """Raises OSError."""
        self._path = folder / PENDING
        self._copies = _read(self._path)
        self._is_whole = False  # its last line may be torn

    def note(self, disk: ArchiveFiles, copy: PendingCopy) -> None:
        """Durable on return."""
        self._copies.append(copy)
        if not self._is_whole:
            disk.write_whole(self._path, b"".join(map(_line, self._copies)))
            self._is_whole = True
            return
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
        try:
            disk.write(descriptor, _line(copy))
            disk.flush(descriptor)
        finally:
            os.close(descriptor)

    def settle(self, disk: ArchiveFiles, member: str) -> None:
        """The manifest tells of everything of this member."""
        left = [copy for copy in self._copies if copy.member != member]
        if len(left) == len(self._copies):
            return
        self._copies = left
        if left:
            disk.write_whole(self._path, b"".join(map(_line, left)))
        else:
            disk.remove(self._path)
        self._is_whole = bool(left)

    def find(self, member: str, path: Path) -> PendingCopy | None:
        """The copy that lies at `path` byte for byte. Raises OSError."""
        named = [copy for copy in self._copies if (copy.member, copy.name) == (member, path.name)]
        if not named:
            return None
        found = digest(path)
        same = (copy for copy in named if _is_of(copy, found))
        return next(same, None)


def _is_of(copy: PendingCopy, found: Digest) -> bool:
    return (copy.size_in_bytes, copy.sha256) == (found.size_in_bytes, found.sha256)


def _line(copy: PendingCopy) -> bytes:
    return json.dumps(asdict(copy)).encode() + b"\n"


def _read(path: Path) -> list[PendingCopy]:
    """Without a line that is torn: what it was to tell of has not been renamed."""
    copies = list[PendingCopy]()
    for line in read_regular(path).splitlines() if path.is_file() else ():
        try:
            copies.append(PendingCopy(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return copies
