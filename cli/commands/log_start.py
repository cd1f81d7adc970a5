"""Where in a segment to begin when what is before an offset is not asked for: found in its offset index.

The index is believed only where the segment agrees: at the place that it names there must be a sound batch with that
last offset, and the batches before must lead there; else the segment is read from its beginning. Of those before only
the names of topics are wanted, which need not be decoded.
"""

from pathlib import Path

import numpy as np

from cli.commands.log_topics import TopicNames
from spark_replay.files import read_listed
from spark_replay.sources import FileKind, LogFile
from wire.errors import DecodeError
from wire.record_batch import check_batch
from wire.topic_records import names_in_batches

_ENTRY_BYTES = 8


def start_position(file: LogFile, view: memoryview, from_offset: int | None, names: TopicNames) -> int:
    """The byte at which a batch begins that is not behind `from_offset`, 0 without a usable index; `names` learns what
    is told before."""
    position = _indexed_position(file, view, from_offset)
    learnt = names_in_batches(view, position) if position else None
    if learnt is None:
        return 0
    names.learn(learnt)
    return position


def _indexed_position(file: LogFile, view: memoryview, from_offset: int | None) -> int:
    if file.kind is not FileKind.LOG or file.base_offset is None or from_offset is None:
        return 0
    last_offsets, positions = _entries(Path(file.path).with_suffix(".index"))
    count = int(last_offsets.searchsorted(from_offset - file.base_offset, side="right"))
    if count == 0:
        return 0
    position, last_offset = int(positions[count - 1]), file.base_offset + int(last_offsets[count - 1])
    try:
        return position if check_batch(view, position).last_offset == last_offset else 0
    except DecodeError:
        return 0


def _entries(path: Path) -> tuple["np.ndarray[tuple[int], np.dtype[np.int32]]", ...]:
    """Last offsets, counted from the segment's first, and positions; both ascend. What does not is left out."""
    try:
        data = read_listed(path)
    except OSError:
        data = b""
    entries = np.frombuffer(data[: len(data) // _ENTRY_BYTES * _ENTRY_BYTES], dtype=">i4").reshape(-1, 2)
    is_next = (entries[1:] > entries[:-1]).all(axis=1)
    sound = len(entries) if is_next.all() else int(is_next.argmin()) + 1
    return entries[:sound, 0].astype(np.int32), entries[:sound, 1].astype(np.int32)
