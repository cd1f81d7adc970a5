"""How far a stream has read each log: an offset of Spark's that says enough to find the very same place again.

A log that a node is writing grows, rolls its segments, loses old ones to retention, and at a voter may lose a tail
that was never committed. The place remembers the last batch that was read (where it lies, its offset, epoch and
checksum), so that a log that was cut and written again is noticed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

from kquorum.spark_replay.decode.files import map_listed
from kquorum.spark_replay.decode.records import origin_of
from kquorum.spark_replay.decode.rows import DamageRow
from kquorum.spark_replay.decode.sources import FileKind, LogFile
from kquorum.spark_replay.decode.splits import scan_runs
from kquorum.wire.batch_runs import BatchRun
from kquorum.wire.errors import DecodeError
from kquorum.wire.record_batch import check_batch

FORMAT: Final = 1
NOWHERE: Final = -1
REMEDY: Final = (
    "What was read above the cut stays in the tables that hold it, so make them again in another folder. A tail that "
    "is not committed is never sent by `audit stream grpc://HOST:PORT`"
)


class TruncatedLog(Exception):
    """What was read is not in the log any more; the message names the offset and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPosition:
    """How far one log has been read.

    `offset` is the next one; the batches of `file` (a segment's name, empty before the first) below byte `position`
    have been read. The last of them begins at `last_position`. A reader that goes on begins at `anchor`, at or before
    it, and drops what is before `position`: so it knows what the next batch has to continue. `snapshots` are the other
    files that have been read, with their sizes in bytes.
    """

    offset: int = 0
    epoch: int = NOWHERE
    file: str = ""
    position: int = 0
    anchor: int = 0
    last_position: int = NOWHERE
    base_offset: int = NOWHERE
    crc: int = NOWHERE
    snapshots: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        return cls(**fields)


ReadPositions = Mapping[str, ReadPosition]


def positions_to_json(places: ReadPositions) -> dict[str, Any]:
    """An offset of the stream: dictionaries, strings and numbers only, as Spark wants it."""
    return {
        "format": FORMAT,
        "sources": {source: asdict(place) for source, place in sorted(places.items())},
    }


def positions_from_json(offset: Mapping[str, Any]) -> dict[str, ReadPosition]:
    """Raises ValueError for a checkpoint of another version."""
    if offset.get("format") != FORMAT:
        raise ValueError(f"the stream's checkpoint is of format {offset.get('format')}; this is {FORMAT}")
    return {source: ReadPosition.from_json(fields) for source, fields in offset["sources"].items()}


def latest_positions(files: Iterable[LogFile], before: ReadPositions) -> dict[str, ReadPosition]:
    """How far each log can be read now. Raises TruncatedLog.

    What follows the last sound batch is left for later: it may be a write under way.
    """
    of_source: dict[str, list[LogFile]] = {}
    for file in files:
        of_source.setdefault(file.source, []).append(file)
    found = {source: _latest(own, before.get(source)) for source, own in of_source.items()}
    # A log whose files are all gone keeps its place: if they come back, nothing of it is read twice.
    return {**before, **found}


def segments_of(files: Iterable[LogFile]) -> list[LogFile]:
    """In the order of their offsets."""
    return sorted(
        (file for file in files if file.kind is FileKind.LOG), key=lambda file: file.base_offset or 0
    )


def _latest(files: Sequence[LogFile], before: ReadPosition | None) -> ReadPosition:
    known = before or ReadPosition()
    snapshots = {file.name: file.size_in_bytes for file in files if file.kind is not FileKind.LOG}
    segments = segments_of(files)
    check_position(known, segments)
    return replace(_farthest(segments, known), snapshots=snapshots)


def _farthest(segments: Sequence[LogFile], known: ReadPosition) -> ReadPosition:
    """The place in the newest segment that has a sound batch: until it has one, the segment before may be written."""
    # Newest first: usually that is the segment of the known place, and no older one has to be read.
    for segment in reversed(segments):
        if segment.name == known.file:
            return _read_on(segment, known)
        place = _read_on(segment, _begin_of(segment, known))
        if place.position > 0:
            return place
    return known


def _begin_of(segment: LogFile, before: ReadPosition) -> ReadPosition:
    return ReadPosition(offset=segment.base_offset or 0, epoch=before.epoch, file=segment.name)


def _read_on(segment: LogFile, place: ReadPosition) -> ReadPosition:
    """The place behind the last sound batch of a segment."""
    view = map_listed(segment.path)
    damaged_at = NOWHERE
    for item in scan_runs(view, origin_of(segment), place.anchor, len(view)):
        if isinstance(item, DamageRow):
            damaged_at = item.position
        elif isinstance(item, BatchRun):
            header = item.headers[-1]
            place = ReadPosition(
                offset=item.next_offset,
                epoch=item.last_epoch,
                file=place.file,
                position=item.end,
                anchor=item.last_position,
                last_position=item.last_position,
                base_offset=int(header["base_offset"]),
                crc=int(header["crc"]),
            )
        else:
            header = item.header
            # A batch that does not continue the one before it says nothing about the next one: that needs this one too.
            is_continuous = damaged_at != item.position
            place = ReadPosition(
                offset=header.last_offset + 1,
                epoch=header.partition_leader_epoch,
                file=place.file,
                position=item.position + len(item.data),
                anchor=item.position if is_continuous else place.anchor,
                last_position=item.position,
                base_offset=header.base_offset,
                crc=header.crc,
            )
    return place


def check_position(place: ReadPosition, segments: Sequence[LogFile]) -> None:
    """Raises TruncatedLog where the last batch read has gone, other than with its whole segment by retention."""
    if not place.file:
        return
    file = next((each for each in segments if each.name == place.file), None)
    # Retention removes the oldest segments only, so a later one must be there. Otherwise the log was cut.
    if file is None:
        if not segments or segments[-1].name < place.file:
            raise _truncated(place, segments, f"the segment {place.file} is not there any more")
    elif place.position > 0:
        reason = _why_cut(place, map_listed(file.path))
        if reason:
            raise _truncated(place, segments, f"{file.name}: {reason}")


def _why_cut(place: ReadPosition, view: memoryview) -> str | None:
    if len(view) < place.position:
        return f"only {len(view)} bytes are left of {place.position} that were read"
    # A follower that truncates its log and fetches other records may have the same length again. The last batch that
    # was read tells: its checksum covers the records, and its epoch is compared as the checksum does not cover it.
    try:
        header = check_batch(view, place.last_position)
    except DecodeError as error:
        return f"the batch at byte {place.last_position} is another one now: {error}"
    is_same = (header.base_offset, header.partition_leader_epoch, header.crc) == (
        place.base_offset,
        place.epoch,
        place.crc,
    )
    if is_same and place.last_position + header.size_in_bytes == place.position:
        return None
    return (
        f"the batch at byte {place.last_position} had base offset {place.base_offset} and epoch {place.epoch}, and is "
        f"one of base offset {header.base_offset} and epoch {header.partition_leader_epoch} now"
    )


def _truncated(place: ReadPosition, segments: Sequence[LogFile], reason: str) -> TruncatedLog:
    where = str(Path(segments[0].path).parent) if segments else "the log"
    return TruncatedLog(
        f"{where} was cut off below offset {place.offset}, up to which it had been read: {reason}. {REMEDY}"
    )
