"""The election recorder: which roles this replica took in elections and why, for `kquorum quorum history`.

One line of JSON each in `elections.jsonl` of the metadata log's folder, where Kafka passes over files that it does not
know. A diary, not state: nothing is read back for decisions, so it is not fsynced, and a disk that refuses it is
logged and otherwise left to those whom it endangers.
"""

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from kquorum.raft.elections_history import RoleEvent
from kquorum.raft.ready import RoleChanged
from kquorum.regular_files import read_regular

FILE_NAME = "elections.jsonl"
OLD_FILE_NAME = "elections.jsonl.1"
MAX_FILE_BYTES = 1024 * 1024
DEFAULT_LIMIT = 10_000
_ELECTION_ROLES = frozenset({"prospective", "candidate", "leader", "resigned"})
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionEvent:
    """A role was taken; `leader_id` is the leader as known just then, -1 for none."""

    timestamp_ms: int
    node_id: int
    epoch: int
    role: str
    cause: str
    leader_id: int


class ElectionLog:
    """Appends; when the file has grown to a mebibyte or `limit` lines it becomes the old one, and a new one begins."""

    def __init__(self, folder: Path, limit: int = DEFAULT_LIMIT) -> None:
        self._path = folder / FILE_NAME
        self._old_path = folder / OLD_FILE_NAME
        self._limit = limit
        self._last: RoleChanged | None = None
        self._noted: set[RoleChanged] = set()
        self._held: ElectionEvent | None = None
        self._lines, self._bytes, self._is_torn = _measure(self._path)

    def record(self, now_ms: int, node_id: int, change: RoleChanged, leader_id: int) -> None:
        """Note the change if it begins or ends a candidacy or a leadership, or is the first of this process.

        A voter that is cut off asks for pre-votes again and again in the same epoch. Such repetitions are noted once,
        and once more when something comes of the last one.
        """
        last, self._last = self._last, change
        if last is not None and not {last.role, change.role} & _ELECTION_ROLES:
            return
        event = ElectionEvent(
            timestamp_ms=now_ms,
            node_id=node_id,
            epoch=change.epoch,
            role=change.role,
            cause=change.cause,
            leader_id=leader_id,
        )
        if change in self._noted:
            self._held = event
            return
        if last is not None and last.epoch != change.epoch:
            self._noted.clear()
        self._noted.add(change)
        held, self._held = self._held, None
        self._write([event] if held is None else [held, event])

    def _write(self, events: Sequence[ElectionEvent]) -> None:
        try:
            for event in events:
                self._append(json.dumps(asdict(event), separators=(",", ":")).encode() + b"\n")
        except OSError as error:
            logger.warning("%s: an election is not recorded: %s", self._path, error)

    def _append(self, line: bytes) -> None:
        if self._lines >= self._limit or self._bytes + len(line) > MAX_FILE_BYTES:
            self._path.replace(self._old_path)
            self._lines, self._bytes, self._is_torn = 0, 0, False
        data = b"\n" + line if self._is_torn else line
        with self._path.open("ab") as file:
            # Until the whole line is written its end may be missing; the next one then begins a line of its own.
            self._is_torn = True
            file.write(data)
        self._is_torn = False
        self._lines += 1
        self._bytes += len(data)


def _measure(path: Path) -> tuple[int, int, bool]:
    """Lines, bytes, and whether the last line was not finished."""
    try:
        content = read_regular(path)
    except OSError:
        return 0, 0, False
    return content.count(b"\n"), len(content), not content.endswith(b"\n") and content != b""


def read_role_events(folder: Path) -> Iterator[RoleEvent]:
    """The same without the leaders that were known, decoded as they are asked for. Raises OSError for unreadable
    files."""
    for event in read_elections(folder):
        yield RoleEvent(
            node_id=event.node_id,
            timestamp_ms=event.timestamp_ms,
            role=event.role,
            epoch=event.epoch,
            cause=event.cause,
        )


def read_elections(folder: Path) -> Iterator[ElectionEvent]:
    """All that is kept, oldest first; lines that a crash tore are left out. Raises OSError for unreadable files."""
    return (event for name in (OLD_FILE_NAME, FILE_NAME) for event in _events(folder / name))


def _events(path: Path) -> Iterator[ElectionEvent]:
    try:
        lines = read_regular(path).split(b"\n")
    except FileNotFoundError:
        return
    for line in lines:
        event = _event(line)
        if event is not None:
            yield event


def _event(line: bytes) -> ElectionEvent | None:
    try:
        fields = json.loads(line)
        event = ElectionEvent(**{name: fields[name] for name in ElectionEvent.__slots__})
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    numbers = (event.timestamp_ms, event.node_id, event.epoch, event.leader_id)
    is_sound = all(type(number) is int for number in numbers) and all(
        isinstance(text, str) for text in (event.role, event.cause)
    )
    return event if is_sound else None
