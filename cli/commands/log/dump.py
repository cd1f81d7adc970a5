"""The work of `log dump`: walk the files, show what passes the filter, report what is damaged.

`--from-offset` begins at a place of the segment that its offset index names. The index is used only where the segment
agrees: a sound batch with that last offset begins there, and the batches before lead there. Otherwise the segment is
read from its beginning. Of the batches before only the names of topics are needed, without decoding them.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kquorum.cli.commands.log.dump_filters import DumpFilter, has_audit_note
from kquorum.cli.commands.log.dump_lines import LineWriter, batch_json, damage_line, record_json
from kquorum.cli.commands.log.files import refuse_what_is_no_log
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.output import remark
from kquorum.spark_replay.decode.files import map_listed, read_listed
from kquorum.spark_replay.decode.records import RecordDecoder, batch_row, origin_of, scan
from kquorum.spark_replay.decode.rows import BatchRow, DamageRow, RecordRow
from kquorum.spark_replay.decode.sources import FileKind, LogFile, NoLogFound, files_of_folder, find_log_files
from kquorum.wire.errors import DecodeError
from kquorum.wire.log_scan import ScannedBatch
from kquorum.wire.near_names import near_names
from kquorum.wire.record_batch import check_batch
from kquorum.wire.topic_records import names_in_batch, names_in_batches


class PrecedingNote:
    """`observe` every record in order; `take` the note that covers the newest one, once."""

    def __init__(self) -> None:
        self._note: RecordRow | None = None
        self._last_covered = -1

    def observe(self, row: RecordRow) -> None:
        if has_audit_note(row):
            assert row.payload is not None, "it has a note"
            note = row.payload["audit_note"]
            assert isinstance(note, dict), note
            self._note = row
            self._last_covered = row.offset + int(note["covered_records"])
        elif row.offset > self._last_covered:
            self._note = None

    def take(self) -> RecordRow | None:
        note, self._note = self._note, None
        return note


_TOPIC = "TopicRecord"


class TopicNames:
    """Ids are never used again, so a removed topic keeps its name here: its last records still are about it."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def observe(self, row: RecordRow) -> None:
        if row.record_type == _TOPIC and row.topic_id is not None and row.topic_name is not None:
            self._names[row.topic_id] = row.topic_name

    def name_of(self, row: RecordRow) -> str | None:
        """The name of the topic that the record is about, by its own words or by its topic id."""
        if row.topic_name is not None or row.topic_id is None:
            return row.topic_name
        return self._names.get(row.topic_id)

    def known(self) -> frozenset[str]:
        return frozenset(self._names.values())

    def learn(self, names: Mapping[str, str]) -> None:
        """By the texts of their ids."""
        self._names.update(names)

    def learn_batch(self, batch: ScannedBatch) -> None:
        """Learn from a batch which is not shown, and need not be decoded for that. One that cannot be read teaches
        nothing."""
        if not batch.header.is_control:
            with contextlib.suppress(DecodeError):
                self.learn(names_in_batch(batch.data))

    def learn_files(self, files: Iterable[LogFile]) -> None:
        """Learn from files which come before the ones shown; what is damaged in them is not told here."""
        for file in files:
            origin = origin_of(file)
            for item in scan(map_listed(file.path), origin):
                if not isinstance(item, DamageRow):
                    self.learn_batch(item)


_ENTRY_BYTES = 8


def start_position(file: LogFile, view: memoryview, from_offset: int | None, names: TopicNames) -> int:
    """The byte at which a batch begins that is not behind `from_offset`, 0 without a usable index; `names` learns the
    topics of the batches before."""
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
        # Kafka preallocates an index with zeros and may leave a stale one, so an entry counts only if the batch at its
        # position agrees.
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


Shown = tuple[RecordRow, str | None] | BatchRow | DamageRow


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpRequest:
    """What to dump and how."""

    path: Path
    filter: DumpFilter
    batches: bool = False
    snapshots: bool = False
    as_json: bool = False
    colour: bool = False
    show_secrets: bool = False


def dump(request: DumpRequest, write: Callable[[str], object]) -> ExitStatus:
    """Write a line for each record or batch that passes, and to standard error one for each damaged place.

    Raises CliError if the path holds no log.
    """
    files = files_to_show(request.path, snapshots=request.snapshots)
    names = TopicNames()
    names.learn_files(_files_before(files[0], thorough=request.filter.topic is not None))
    lines = LineWriter(colour=request.colour)
    damaged, shown = False, 0
    for file in files:
        if len(files) > 1 and not request.as_json:
            write(lines.file(file.source, file.name) + "\n")
        for item in _shown_rows(file, request, names):
            if isinstance(item, DamageRow):
                damaged = True
                remark(damage_line(file.path, item))
                continue
            shown += 1
            write(_line(file, item, lines, as_json=request.as_json) + "\n")
    if request.filter.topic is not None and not shown:
        _say_topic_is_unknown(request.filter.topic, names)
    return ExitStatus.DAMAGED_INPUT if damaged else ExitStatus.OK


def files_to_show(path: Path, *, snapshots: bool) -> list[LogFile]:
    """One file as it is; of a folder the segments, and its snapshots where asked for or where there is no segment."""
    try:
        files = find_log_files(path)
    except NoLogFound as error:
        raise CliError(str(error), status=ExitStatus.USAGE) from None
    if path.is_file():
        refuse_what_is_no_log(path)
        return list(files)
    segments = [file for file in files if file.kind is FileKind.LOG]
    return list(files) if snapshots or not segments else segments


def _shown_rows(file: LogFile, request: DumpRequest, names: TopicNames) -> Iterator[Shown]:
    chosen, origin = request.filter, origin_of(file)

    # TopicRecords give the ids of later records their names, and NoOpRecords carry audit notes, so both are decoded
    # even where the filter does not show them.
    def wants(record_type: str) -> bool:
        is_needed = record_type == "TopicRecord" or (chosen.topic is not None and record_type == "NoOpRecord")
        return is_needed or chosen.wants_type(record_type)

    note = PrecedingNote()
    decoder = RecordDecoder(origin, show_secrets=request.show_secrets, wants=wants)
    view = map_listed(file.path)
    start = start_position(file, view, chosen.from_offset, names)
    for item in scan(view, origin, start):
        if isinstance(item, DamageRow):
            yield item
        elif file.kind is FileKind.LOG and chosen.is_over(item.header):
            return
        # The header alone shows that no record passes; the names of topics in it may still be needed later.
        elif not chosen.may_hold(item.header):
            names.learn_batch(item)
        elif request.batches:
            yield batch_row(item, origin)
        else:
            for row in decoder.rows(item):
                if isinstance(row, DamageRow):
                    yield row
                    continue
                names.observe(row)
                topic_name = names.name_of(row)
                note.observe(row)
                if chosen.passes(row, topic_name):
                    if chosen.topic is not None and (before := note.take()) is not None:
                        yield before, None
                    yield row, topic_name


def _line(
    file: LogFile, item: tuple[RecordRow, str | None] | BatchRow, lines: LineWriter, *, as_json: bool
) -> str:
    if isinstance(item, BatchRow):
        return batch_json(file.source, item) if as_json else lines.batch(item)
    row, topic_name = item
    return record_json(file.source, row, topic_name) if as_json else lines.record(row, topic_name)


def _files_before(first: LogFile, *, thorough: bool) -> list[LogFile]:
    """What to read for the names of topics made before the first file shown: snapshots, and segments if thorough."""
    if first.kind is not FileKind.LOG or not first.base_offset:
        return []
    neighbours = files_of_folder(Path(first.path).parent, first.source)
    segments = [file for file in neighbours if file.kind is FileKind.LOG]
    earlier = [file for file in segments if (file.base_offset or 0) < first.base_offset]
    # Without `--topic` a name is only shown beside the id, which is not worth reading all earlier segments for.
    return [file for file in neighbours if file.kind is FileKind.SNAPSHOT] + (earlier if thorough else [])


def _say_topic_is_unknown(topic: str, names: TopicNames) -> None:
    if topic in names.known():
        return
    near = near_names(topic, names.known())
    hint = f"; near to it: {', '.join(near)}" if near else ""
    remark(f"no topic named {topic} in this log{hint}")
