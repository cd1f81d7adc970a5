"""The work of `log dump`: walk the files, show what passes the filter, report what is damaged."""

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cli.commands.log_filters import DumpFilter
from cli.commands.log_lines import LineWriter, batch_json, damage_line, record_json
from cli.commands.log_notes import PrecedingNote
from cli.commands.log_start import start_position
from cli.commands.log_topics import TopicNames
from cli.errors import CliError
from cli.exit_status import ExitStatus
from cli.output import remark
from spark_replay.decode import RecordDecoder, batch_row, origin_of, scan
from spark_replay.files import map_file
from spark_replay.probe import why_not_a_log
from spark_replay.rows import BatchRow, DamageRow, RecordRow
from spark_replay.sources import FileKind, LogFile, NoLogFound, find_log_files

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


def refuse_what_is_no_log(path: Path) -> None:
    """Raises CliError if the file is neither a log segment nor a snapshot, not even a damaged one."""
    reason = why_not_a_log(path.name, map_file(path.resolve()))
    if reason is not None:
        raise CliError(f"{path} is not a Kafka log segment or snapshot: {reason}", status=ExitStatus.USAGE)


def _shown_rows(file: LogFile, request: DumpRequest, names: TopicNames) -> Iterator[Shown]:
    chosen, origin = request.filter, origin_of(file)

    def wants(record_type: str) -> bool:
        is_needed = record_type == "TopicRecord" or (chosen.topic is not None and record_type == "NoOpRecord")
        return is_needed or chosen.wants_type(record_type)

    note = PrecedingNote()
    decoder = RecordDecoder(origin, show_secrets=request.show_secrets, wants=wants)
    view = map_file(file.path)
    start = start_position(file, view, chosen.from_offset, names)
    for item in scan(view, origin, start):
        if isinstance(item, DamageRow):
            yield item
        elif file.kind is FileKind.LOG and chosen.is_over(item.header):
            return
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
    neighbours = find_log_files(Path(first.path).parent)
    segments = [file for file in neighbours if file.kind is FileKind.LOG]
    earlier = [file for file in segments if (file.base_offset or 0) < first.base_offset]
    return [file for file in neighbours if file.kind is FileKind.SNAPSHOT] + (earlier if thorough else [])


def _say_topic_is_unknown(topic: str, names: TopicNames) -> None:
    if topic in names.known():
        return
    near = difflib.get_close_matches(topic, names.known(), n=3)
    hint = f"; near to it: {', '.join(near)}" if near else ""
    remark(f"no topic named {topic} in this log{hint}")
