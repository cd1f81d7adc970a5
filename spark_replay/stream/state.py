"""What a stream has written into its folder, batch by batch: the file `state.json` in it, replaced whole.

A micro-batch counts from the moment this file names it. Before that its rows may lie in the tables, and are replaced
when Spark repeats it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from kquorum.private_files import replacing
from kquorum.regular_files import read_regular
from kquorum.spark_replay.decode.bases import is_whole_snapshot
from kquorum.spark_replay.decode.sources import STREAM_FOLDER, FileKind, LogFile
from kquorum.spark_replay.decode.split_facts import BatchEnds, LogBounds, SplitFacts

FOLDER: Final = STREAM_FOLDER
STATE: Final = "state.json"
FORMAT: Final = 1
# How much the tables of the state lag behind the records.
FRESH, NOOPS_BEHIND, BEHIND = 0, 1, 2
_NOOP: Final = "NoOpRecord"


class NoStream(Exception):
    """The folder holds no stream's tables, or those of another version or of another log; the message says which."""


@dataclass(slots=True, kw_only=True)
class StreamedSource:
    """Of one log: every file that was read, by name, which snapshots are whole, and figures of its segments.

    `end_offset` is exclusive. `last` are the splits from the last one with batches on: what the next has to continue.
    """

    files: dict[str, LogFile] = field(default_factory=dict)
    is_whole: dict[str, bool] = field(default_factory=dict)
    unknown_records: int = 0
    bounds: LogBounds | None = None
    start_offset: int | None = None
    end_offset: int | None = None
    last: tuple[SplitFacts, ...] = ()

    def note(self, split: SplitFacts) -> None:
        """Take in what has been written of a split."""
        file, ends = split.file, split.ends
        known = self.files.get(file.name)
        if known is None or known.size_in_bytes < file.size_in_bytes:
            self.files[file.name] = file
        if file.kind is FileKind.SNAPSHOT and file.name not in self.is_whole:
            self.is_whole[file.name] = _is_whole(file)
        self.unknown_records += split.unknown_records
        if split.bounds is not None:
            self.bounds = split.bounds.with_others(self.bounds)
        if ends is not None:
            starts = [each for each in (self.start_offset, ends.lowest_offset) if each is not None]
            self.start_offset = min(starts)
            self.end_offset = max(self.end_offset or 0, ends.highest_offset + 1)
        if file.kind is FileKind.LOG:
            self.last = (split,) if ends is not None else (*self.last, split)


@dataclass(slots=True, kw_only=True)
class StreamState:
    """`last_batch` is the last micro-batch that is in the tables whole; -1 before the first. `rows` are counted by kind
    of row, `types` are the records of all files by type. `version` is that of the tables of the state, and `behind` how
    they lag."""

    input: str
    last_batch: int = -1
    rows: dict[str, int] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)
    sources: dict[str, StreamedSource] = field(default_factory=dict)
    version: int = 0
    behind: int = FRESH

    @property
    def files(self) -> tuple[LogFile, ...]:
        """Of all logs, segments before snapshots, in the order of their names."""
        every = [file for source in self.sources.values() for file in source.files.values()]
        return tuple(sorted(every, key=lambda file: (file.source, str(file.kind), file.name)))

    def last_splits(self) -> list[SplitFacts]:
        return [split for source in self.sources.values() for split in source.last]

    def note(self, batch: int, splits: Iterable[SplitFacts], gaps: int) -> None:
        """Take in a batch that has been written."""
        self.last_batch = batch
        rows, types = Counter(self.rows), Counter(self.types)
        rows["damage"] += gaps
        self.behind = BEHIND if gaps else self.behind
        for split in splits:
            self.sources.setdefault(split.file.source, StreamedSource()).note(split)
            rows.update(split.rows)
            types.update(split.types)
            has_others = split.types.keys() - {_NOOP} or split.rows.get("damage")
            self.behind = max(self.behind, BEHIND if has_others else NOOPS_BEHIND)
        self.rows, self.types = dict(rows), dict(types)


def stream_folder(out: Path) -> Path:
    return out / FOLDER


def is_stream(out: Path) -> bool:
    """Whether a stream owns the tables in `out`."""
    return stream_folder(out).is_dir()


def read_state(out: Path, log: str) -> StreamState:
    """What has been written from `log`; nothing in a new folder. Raises NoStream."""
    path = stream_folder(out) / STATE
    try:
        content = json.loads(read_regular(path))
        if content["format"] != FORMAT:
            raise NoStream(f"{path} is of format {content['format']}; this program writes {FORMAT}")
        state = _state(content)
    except FileNotFoundError:
        return StreamState(input=log)
    except (ValueError, KeyError, TypeError) as error:
        raise NoStream(f"{path} cannot be read: {error!r}; stream into a new folder") from error
    if state.input != log:
        raise NoStream(f"the tables in {out} are streamed from {state.input}, not from {log}")
    return state


def write_state(out: Path, state: StreamState) -> None:
    """Whole or not at all."""
    path = stream_folder(out) / STATE
    with replacing(path) as file:
        file.write(json.dumps({"format": FORMAT, **asdict(state)}).encode())


def _is_whole(file: LogFile) -> bool:
    try:
        return is_whole_snapshot(file.path)
    except FileNotFoundError:
        return False


def _state(content: Mapping[str, Any]) -> StreamState:
    fields = {name: value for name, value in content.items() if name != "format"}
    sources = {name: _source(each) for name, each in fields.pop("sources").items()}
    return StreamState(sources=sources, **fields)


def _source(content: Mapping[str, Any]) -> StreamedSource:
    fields = {
        "files": {name: LogFile.from_json(each) for name, each in content["files"].items()},
        "bounds": None if content["bounds"] is None else LogBounds(**content["bounds"]),
        "last": tuple(_split(each) for each in content["last"]),
    }
    return StreamedSource(**{**content, **fields})


def _split(content: Mapping[str, Any]) -> SplitFacts:
    fields = {
        "file": LogFile.from_json(content["file"]),
        "bounds": None if content["bounds"] is None else LogBounds(**content["bounds"]),
        "ends": None if content["ends"] is None else BatchEnds(**content["ends"]),
    }
    # An earlier version called it so.
    renamed = {"stateful_types" if name == "told" else name: value for name, value in content.items()}
    return SplitFacts(**{**renamed, **fields})
