"""`log dump` and `log verify` of a partition's folder, and of the single files that brokers keep beside its batches."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kquorum.broker.log.errors import LogError
from kquorum.broker.log.folder_names import FolderKind, FolderName, parse_folder_name
from kquorum.broker.log.leader_epochs import LeaderEpochs
from kquorum.broker.log.partition_log import AppendOrigin
from kquorum.broker.log.producer_state import ProducerStates, decode_snapshot
from kquorum.broker.log.transactions import AbortedEntry, decode_entries
from kquorum.cli.clients.record_text import record_as_json
from kquorum.cli.commands.log.internal_records import DECODERS
from kquorum.cli.failures import CliError, ExitStatus
from kquorum.cli.output import json_text, print_json, print_table, remark, say, utc_text
from kquorum.spark_replay.decode.files import map_listed, read_listed
from kquorum.storage.entry_file import OFFSET_ENTRY, TIME_ENTRY
from kquorum.storage.leader_epoch_checkpoint import FILE_NAME as EPOCHS_FILE
from kquorum.storage.leader_epoch_checkpoint import decode_epochs
from kquorum.storage.offset_checkpoints import (
    CLEANED,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    decode_offsets,
)
from kquorum.wire.data_batch import NO_TIMESTAMP, BatchHeader, Record, check_data_batch, read_data_records
from kquorum.wire.errors import BufferUnderflow, DecodeError
from kquorum.wire.safe_text import safe_text
from kquorum.wire.transaction_markers import decode_transaction_marker

_METADATA = "__cluster_metadata-"
_OF_METADATA = ("quorum-state", ".checkpoint")
_CHECKPOINTS = (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, CLEANED)
_SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


def is_of_partition(path: Path) -> bool:
    """Whether the path is a partition's folder, a file in one, or a checkpoint file of a log directory."""
    if path.name in _CHECKPOINTS and path.is_file():
        return True
    folder = path.parent if path.is_file() else path
    if path.is_file() and path.name != EPOCHS_FILE and path.suffix not in _SUFFIXES:
        return False
    return _partition_of(folder) is not None


def _partition_of(folder: Path) -> FolderName | None:
    try:
        found = parse_folder_name(folder.resolve().name)
        names = [each.name for each in folder.iterdir()]
    except (ValueError, OSError):
        return None
    is_metadata = folder.resolve().name.startswith(_METADATA) or any(
        name.endswith(_OF_METADATA) for name in names
    )
    return None if is_metadata or not any(name.endswith(".log") for name in names) else found


def partition_folders(log_dir: Path) -> list[Path]:
    """The partitions' folders in a broker's log directory, by topic and number; without those that wait for their
    removal. None for any other path."""
    if not log_dir.is_dir() or any(each.suffix == ".log" for each in log_dir.iterdir()):
        return []
    found = []
    for folder in log_dir.iterdir():
        name = _partition_of(folder) if folder.is_dir() and not folder.is_symlink() else None
        if name is not None and name.kind is not FolderKind.DELETED:
            found.append((name.topic, name.partition, folder.name, folder))
    return [folder for *_, folder in sorted(found)]


def _in_folder(path: Path) -> Path:
    """The same file, by a path whose folders are resolved. A link in its place is not followed: the writer of the
    folder chose where it leads."""
    return path.parent.resolve() / path.name


def base_of(path: Path) -> int:
    return int(path.name.partition(".")[0])


def segment_files(path: Path) -> list[Path]:
    """Those of a folder, in the order of their offsets."""
    files = [each for each in path.iterdir() if each.suffix == ".log" and each.stem.isdecimal()]
    return sorted(files, key=base_of)


@dataclass(frozen=True, slots=True)
class BadBytes:
    """From `position` on no batch can be read; `is_torn` where the file merely ends too early."""

    position: int
    reason: str
    is_torn: bool


def batches_of(path: Path) -> Iterator[tuple[int, BatchHeader, memoryview] | BadBytes]:
    """Each sound batch, and what ends the file if that is no batch."""
    view = memoryview(map_listed(_in_folder(path)))
    position = 0
    while position < len(view):
        try:
            header = check_data_batch(view, position)
        except DecodeError as error:
            yield BadBytes(position, error.reason, isinstance(error, BufferUnderflow))
            return
        end = position + header.size_in_bytes
        yield position, header, view[position:end]
        position = end


def with_extent(header: BatchHeader, data: memoryview) -> BatchHeader:
    """A compressed message of magic 0 or 1 names the offset of its last record alone: the same header with the first
    offset and the number of its records, which have to be read for that. Raises DecodeError."""
    if header.magic >= 2 or header.record_count >= 0:
        return header
    records = read_data_records(data, 0, header)
    first = records[0].offset
    return replace(
        header,
        base_offset=first,
        last_offset_delta=header.base_offset - first,
        record_count=len(records),
    )


# Dump


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDump:
    """Offsets from `from_offset` up to, not including, `to_offset`; None is no bound. Values are shown where asked for,
    else their lengths. `files`: the index and snapshot files too."""

    path: Path
    from_offset: int | None = None
    to_offset: int | None = None
    batches: bool = False
    files: bool = False
    as_json: bool = False
    values: bool = False


def dump_partition(request: PartitionDump, write: Callable[[str], object]) -> ExitStatus:
    """Raises CliError for a file that cannot be read as what its name says."""
    status = ExitStatus.OK

    def show(row: dict[str, Any]) -> None:
        write((_json(row) if request.as_json else _line(row)) + "\n")

    if request.path.is_file():
        # An argument that is a link is followed.
        paths = [request.path.resolve()]
    else:
        paths = segment_files(request.path)
        if request.files:
            paths = sorted(each for each in request.path.iterdir() if each.suffix in _SUFFIXES)
    for path in paths:
        if path.suffix != ".log":
            for row in _file_rows(path):
                show(row)
            continue
        for found in batches_of(path):
            if isinstance(found, BadBytes):
                remark(f"{path}: byte {found.position}: {found.reason}")
                status = ExitStatus.DAMAGED_INPUT
                break
            try:
                for row in _batch_rows(path, *found, request):
                    show(row)
            except DecodeError as error:
                remark(f"{path}: byte {found[0]}: {error.reason}")
                status = ExitStatus.DAMAGED_INPUT
    return status


def _batch_rows(
    path: Path, position: int, header: BatchHeader, data: memoryview, request: PartitionDump
) -> Iterator[dict[str, Any]]:
    """Raises DecodeError for records that cannot be read."""
    start, end = request.from_offset, request.to_offset
    extent = with_extent(header, data)
    if (start is not None and extent.last_offset < start) or (end is not None and extent.base_offset >= end):
        return
    place = {"file": path.name, "position": position}
    if request.batches:
        yield {"kind": "batch", **place, **_batch_fields(extent)}
        return
    for record in read_data_records(data, 0, header):
        if (start is None or record.offset >= start) and (end is None or record.offset < end):
            yield {**_record_fields(header, record, _topic_of(path), values=request.values), **place}


def _batch_fields(header: BatchHeader) -> dict[str, Any]:
    return {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.record_count,
        "leader_epoch": header.partition_leader_epoch,
        "magic": header.magic,
        "codec": header.codec.name.lower(),
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
        "is_log_append_time": header.is_log_append_time,
        "delete_horizon_ms": header.delete_horizon_ms,
        "max_timestamp_ms": header.max_timestamp_ms,
        "size": header.size_in_bytes,
    }


def _topic_of(segment: Path) -> str:
    """The topic that the folder is named after; empty for a file elsewhere."""
    try:
        return parse_folder_name(segment.resolve().parent.name).topic
    except ValueError:
        return ""


def _record_fields(header: BatchHeader, record: Record, topic: str, *, values: bool) -> dict[str, Any]:
    told: dict[str, Any] = {"offset": record.offset, "timestamp_ms": record.timestamp_ms}
    if header.has_producer_id:
        told |= {"producer_id": header.producer_id, "producer_epoch": header.producer_epoch}
    if header.is_control:
        try:
            marker = decode_transaction_marker(record.key, record.value)
        except DecodeError as error:
            return {"kind": "control", **told, "reason": error.reason}
        word = "commit" if marker.is_commit else "abort"
        return {"kind": "marker", **told, "marker": word, "coordinator_epoch": marker.coordinator_epoch}
    if header.is_transactional:
        told["is_transactional"] = True
    if topic in DECODERS:
        return {"kind": "record", **told, **DECODERS[topic](record)}
    shown = record_as_json(0, record)
    for name in ("partition", "offset", "timestamp_ms", "timestamp"):
        shown.pop(name, None)
    if not values:
        shown = {name: each for name, each in shown.items() if not name.startswith(("value", "headers"))}
        shown["value_bytes"] = None if record.value is None else len(record.value)
        shown["headers"] = [name for name, _ in record.headers]
    return {"kind": "record", **told, **shown}


def _file_rows(path: Path) -> Iterator[dict[str, Any]]:
    content = read_listed(_in_folder(path))
    read = _checkpoint_rows if path.name in _CHECKPOINTS else _ROWS[path.suffix]
    try:
        for kind, row in read(content, 0 if path.suffix == "" else base_of(path)):
            yield {"kind": kind, "file": path.name, **row}
    except (ValueError, DecodeError) as error:
        raise CliError(f"{path} cannot be read: {error}", status=ExitStatus.DAMAGED_INPUT) from None


_Rows = Iterator[tuple[str, dict[str, Any]]]


def _checkpoint_rows(content: bytes, _base: int) -> _Rows:
    for (topic, partition), offset in sorted(decode_offsets(content).items()):
        yield "checkpoint", {"topic": topic, "partition": partition, "offset": offset}


def _epoch_rows(content: bytes, _base: int) -> _Rows:
    for epoch, offset in decode_epochs(content):
        yield "epoch", {"leader_epoch": epoch, "start_offset": offset}


def _producer_rows(content: bytes, _base: int) -> _Rows:
    for entry in decode_snapshot(content):
        yield (
            "producer",
            {
                "producer_id": entry.producer_id,
                "producer_epoch": entry.epoch,
                "last_sequence": entry.last_sequence,
                "last_offset": entry.batches[-1].last_offset if entry.batches else -1,
                "timestamp_ms": entry.last_timestamp_ms,
                "coordinator_epoch": entry.coordinator_epoch,
                "transaction_first_offset": entry.transaction_first_offset,
            },
        )


def _aborted_rows(content: bytes, _base: int) -> _Rows:
    for entry in decode_entries(content):
        yield (
            "aborted",
            {
                "producer_id": entry.producer_id,
                "first_offset": entry.first_offset,
                "last_offset": entry.last_offset,
                "last_stable_offset": entry.last_stable_offset,
            },
        )


def _index_rows(content: bytes, base: int) -> _Rows:
    for relative, position in entries_of(content, OFFSET_ENTRY.size):
        yield "index", {"last_offset": base + relative, "position": position}


def _time_rows(content: bytes, base: int) -> _Rows:
    for timestamp_ms, relative in entries_of(content, TIME_ENTRY.size):
        yield "time", {"timestamp_ms": timestamp_ms, "offset": base + relative}


# By the suffix of the file; the epochs' file has none.
_ROWS: dict[str, Callable[[bytes, int], _Rows]] = {
    "": _epoch_rows,
    ".index": _index_rows,
    ".timeindex": _time_rows,
    ".txnindex": _aborted_rows,
    ".snapshot": _producer_rows,
}


def entries_of(content: bytes, size: int) -> list[tuple[int, int]]:
    """Those of an offset or time index, without the zeros that Kafka allocates before it needs them."""
    entry = OFFSET_ENTRY if size == OFFSET_ENTRY.size else TIME_ENTRY
    found = [entry.unpack_from(content, start) for start in range(0, len(content) - size + 1, size)]
    while found and not any(found[-1]):
        found.pop()
    return [(first, second) for first, second in found]


def _json(row: dict[str, Any]) -> str:
    return json_text(row, separators=(",", ":"))


def _line(row: dict[str, Any]) -> str:
    rest = dict(row)
    kind = rest.pop("kind")
    parts = [f"{kind:<10}"]
    for name, value in rest.items():
        if name == "timestamp_ms":
            parts.append("no time" if value == NO_TIMESTAMP else utc_text(value))
        elif value is not None and value is not False and name != "file":
            parts.append(name if value is True else f"{name}={value}")
    return safe_text(" ".join([*parts, str(row["file"])]))


# Verify

_SEVERITIES = {"note": ExitStatus.OK, "violation": ExitStatus.FAILED, "damage": ExitStatus.DAMAGED_INPUT}
VERDICTS = {
    ExitStatus.OK: "sound",
    ExitStatus.FAILED: "rules are violated",
    ExitStatus.DAMAGED_INPUT: "damaged",
}


@dataclass(slots=True)
class PartitionCheck:
    """Reads a folder as a recovery would, and compares what lies beside the batches with them."""

    folder: Path
    findings: list[dict[str, Any]] = field(default_factory=list)
    batches: int = 0
    records: int = 0
    start_offset: int | None = None
    end_offset: int = 0

    @property
    def status(self) -> ExitStatus:
        return max((_SEVERITIES[each["severity"]] for each in self.findings), default=ExitStatus.OK)

    @property
    def verdict(self) -> str:
        return VERDICTS[self.status]

    def facts(self) -> dict[str, int | None]:
        return {
            "start_offset": self.start_offset,
            "end_offset": self.end_offset,
            "segments": len(segment_files(self.folder)),
            "batches": self.batches,
            "records": self.records,
        }

    def told(self) -> dict[str, Any]:
        """As JSON."""
        return {"verdict": self.verdict, **self.facts(), "findings": self.findings}

    def note(self, severity: str, path: Path, reason: str, **place: int) -> None:
        self.findings.append({"severity": severity, "file": path.name, **place, "reason": reason})

    def run(self) -> None:
        segments = segment_files(self.folder)
        epochs = self._epochs()
        snapshots = self._snapshots()
        states, is_whole = ProducerStates(expiration_ms=2**62), True
        for index, path in enumerate(segments):
            next_base = base_of(segments[index + 1]) if index + 1 < len(segments) else None
            if index == 0:
                self.end_offset = base_of(path)
                is_whole = self._begin(states, base_of(path), snapshots)
            self._segment(path, next_base, epochs, states, snapshots if is_whole else {})
        for offset in sorted(snapshots):
            if is_whole and offset == self.end_offset:
                self._compare(states, offset, snapshots[offset])

    def _begin(self, states: ProducerStates, base: int, snapshots: dict[int, bytes]) -> bool:
        """Whether the producers before the first segment are known."""
        if base in snapshots:
            states.load_snapshot(snapshots[base], offset=base, now_ms=0)
        return base == 0 or base in snapshots

    def _epochs(self) -> LeaderEpochs | None:
        path = self.folder / EPOCHS_FILE
        if not path.is_file():
            return None
        try:
            return LeaderEpochs(decode_epochs(read_listed(_in_folder(path))))
        except ValueError as error:
            self.note("violation", path, f"{error}; a broker builds it again from the batches")
            return None

    def _snapshots(self) -> dict[int, bytes]:
        found = {}
        for path in sorted(self.folder.glob("*.snapshot")):
            content = read_listed(_in_folder(path))
            try:
                decode_snapshot(content)
                found[base_of(path)] = content
            except (DecodeError, ValueError) as error:
                self.note("violation", path, f"{error}; a broker uses the one before")
        return found

    def _segment(
        self,
        path: Path,
        next_base: int | None,
        epochs: LeaderEpochs | None,
        states: ProducerStates,
        snapshots: dict[int, bytes],
    ) -> None:
        due = max(base_of(path), self.end_offset)
        by_position: dict[int, BatchHeader] = {}
        aborted: list[AbortedEntry] = []
        readable: int | None = None
        self._compare_at(states, base_of(path), snapshots)
        for found in batches_of(path):
            if isinstance(found, BadBytes):
                readable = found.position
                is_end = next_base is None and found.is_torn
                reason = f"{found.reason}; a recovery cuts the log here, at offset {due}"
                self.note("note" if is_end else "damage", path, reason, position=found.position)
                break
            position, header, data = found
            if header.base_offset < due and header.magic == 2:
                self.note(
                    "damage", path, f"offset {due} was due, not {header.base_offset}", position=position
                )
                break
            if next_base is not None and header.last_offset >= next_base:
                self.note(
                    "damage", path, f"offset {header.last_offset} is of the next segment", position=position
                )
            by_position[position] = header
            with suppress(DecodeError):  # told below
                by_position[position] = with_extent(header, data)
            if self.start_offset is None:
                self.start_offset = by_position[position].base_offset
            self._batch(path, position, header, data, epochs)
            aborted += self._count(path, position, header, data, states)
            due = header.next_offset
        self.end_offset = due
        self._indexes(path, by_position, readable)
        if snapshots or base_of(path) == 0:
            self._aborted(path, aborted)

    def _batch(
        self, path: Path, position: int, header: BatchHeader, data: memoryview, epochs: LeaderEpochs | None
    ) -> None:
        self.batches += 1
        try:
            self.records += len(read_data_records(data, 0, header))
        except DecodeError as error:
            self.note("damage", path, error.reason, position=position, offset=header.base_offset)
        epoch = header.partition_leader_epoch
        if epochs is not None and epoch >= 0 and epochs.epoch_at(header.base_offset) not in (None, epoch):
            reason = f"the batch has leader epoch {epoch}, but {EPOCHS_FILE} says {epochs.epoch_at(header.base_offset)}"
            self.note("violation", path, reason, position=position, offset=header.base_offset)

    def _count(
        self, path: Path, position: int, header: BatchHeader, data: memoryview, states: ProducerStates
    ) -> list[AbortedEntry]:
        try:
            prepared = states.prepare((header,), data, origin=AppendOrigin.REPLICATION)
        except LogError as error:
            self.note("violation", path, str(error), position=position, offset=header.base_offset)
            return []
        return states.apply(prepared, header.next_offset)

    def _indexes(self, log: Path, by_position: dict[int, BatchHeader], readable: int | None) -> None:
        """`readable`: what the entries say of bytes from there on cannot be judged, and is built again.

        Kafka before 2.0 notes the first offset of a batch, later ones the last one, or that of the last batch written
        with it. Any of them leads a reader to the batch or before it.
        """
        path = log.with_suffix(".index")
        if path.is_file():
            content = read_listed(_in_folder(path))
            before = (-1, -1)
            for relative, position in entries_of(content, OFFSET_ENTRY.size):
                if readable is not None and position >= readable:
                    break
                header, offset = by_position.get(position), base_of(path) + relative
                if header is None or offset < header.base_offset or (relative, position) <= before:
                    reason = f"the entry of offset {offset} names byte {position}, where no such batch begins"
                    self.note("violation", path, f"{reason}; remove the file, and a broker builds it again")
                    break
                before = (relative, position)
        path = log.with_suffix(".timeindex")
        if path.is_file() and readable is None:
            content = read_listed(_in_folder(path))
            greatest = max((each.max_timestamp_ms for each in by_position.values()), default=-1)
            entries = entries_of(content, TIME_ENTRY.size)
            if entries != sorted(entries) or (entries and entries[-1][0] > greatest):
                reason = f"its entries do not ascend, or go beyond the greatest timestamp, {greatest}"
                self.note("violation", path, f"{reason}; remove the file, and a broker builds it again")

    def _aborted(self, log: Path, aborted: list[AbortedEntry]) -> None:
        path = log.with_suffix(".txnindex")
        content = read_listed(_in_folder(path)) if path.is_file() else b""
        try:
            entries = decode_entries(content)
        except DecodeError as error:
            self.note("violation", path, error.reason)
            return
        markers = {(each.producer_id, each.last_offset) for each in entries}
        missing = [each for each in aborted if (each.producer_id, each.last_offset) not in markers]
        if missing:
            reason = f"the transaction that was aborted at offset {missing[0].last_offset} is missing"
            self.note("violation", path, reason, offset=missing[0].first_offset)

    def _compare_at(self, states: ProducerStates, offset: int, snapshots: dict[int, bytes]) -> None:
        if offset in snapshots and offset == self.end_offset and states.end_offset <= offset:
            self._compare(states, offset, snapshots[offset])

    def _compare(self, states: ProducerStates, offset: int, content: bytes) -> None:
        """A producer may be missing on either side, as producers expire; what is on both must agree."""
        path = self.folder / f"{offset:020}.snapshot"
        for entry in decode_snapshot(content):
            known = states.entries.get(entry.producer_id)
            if known is None or not known.batches or not entry.batches:
                continue
            mine, theirs = known.batches[-1], entry.batches[-1]
            if (known.epoch, mine.last_sequence, mine.last_offset) != (
                entry.epoch,
                theirs.last_sequence,
                theirs.last_offset,
            ):
                reason = (
                    f"producer {entry.producer_id} ends with sequence {theirs.last_sequence} at offset "
                    f"{theirs.last_offset}, but by the batches with {mine.last_sequence} at {mine.last_offset}"
                )
                self.note("violation", path, reason)


def verify_partition(path: Path, *, as_json: bool, keep: int) -> ExitStatus:
    """Check a partition's folder and show what was found. Raises CliError for a single file."""
    if not path.is_dir():
        raise CliError(f"{path}: name the partition's folder, not a file of it", status=ExitStatus.USAGE)
    check = PartitionCheck(path)
    check.run()
    if as_json:
        print_json({"path": str(path), **check.told()})
        return check.status
    facts = check.facts()
    print_table(path.name, tuple(f"#{name}" for name in facts), [tuple(facts.values())])
    show_findings_of(check, keep)
    say(f"{path.name}: {check.verdict}")
    return check.status


def show_findings_of(check: PartitionCheck, keep: int, *, name: str = "") -> None:
    """At most `keep` of them, each with `name` before its file."""
    for each in check.findings[:keep]:
        place = "".join(f", {word} {each[word]}" for word in ("position", "offset") if word in each)
        say(f"{each['severity']} {name}{each['file']}{place}: {each['reason']}")
    if len(check.findings) > keep:
        say(f"and {len(check.findings) - keep} more; --findings shows more")
