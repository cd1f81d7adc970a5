"""How `log dump` shows a row: one aligned line for the eye, or one JSON object for a program."""

import json

from kquorum.cli.output import utc_text
from kquorum.spark_replay.decode.rows import BatchRow, DamageRow, RecordRow
from kquorum.wire.safe_text import safe_json, safe_text

TYPE_WIDTH = 31
_ENCODE = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_RESET, _DIM, _CYAN, _GREEN, _YELLOW, _RED = (
    "\x1b[0m",
    "\x1b[2m",
    "\x1b[36m",
    "\x1b[32m",
    "\x1b[33m",
    "\x1b[31m",
)


def iso_time(timestamp_ms: int) -> str:
    """`2026-01-31T12:00:00.000Z`; the bare number where no calendar has such a time."""
    text = utc_text(timestamp_ms)
    return f"{text.replace(' ', 'T')}Z" if " " in text else text


def compact_json(value: object) -> str:
    return safe_json(_ENCODE(value))


def record_json(source: str, row: RecordRow, topic_name: str | None) -> str:
    fields: dict[str, object] = {
        "source": source,
        "file": row.file,
        "position": row.position,
        "offset": row.offset,
        "batch_base_offset": row.batch_base_offset,
        "leader_epoch": row.leader_epoch,
        "timestamp_ms": row.timestamp_ms,
        "timestamp": iso_time(row.timestamp_ms),
        "is_control": row.is_control,
        "type": row.record_type,
        "api_key": row.api_key,
        "version": row.version,
        "topic_name": topic_name,
        "payload": row.payload,
    }
    if row.payload is None:
        fields |= {"raw_hex": None if row.raw is None else row.raw.hex(), "problem": row.problem}
    return compact_json(fields)


def batch_json(source: str, row: BatchRow) -> str:
    return compact_json({"source": source, **row._asdict(), "timestamp": iso_time(row.timestamp_ms)})


class LineWriter:
    """Rows as aligned lines, coloured for a terminal."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour

    def record(self, row: RecordRow, topic_name: str | None) -> str:
        version = "" if row.version is None else f"v{row.version}"
        kind = f"{row.record_type} {version}".ljust(TYPE_WIDTH + 3)
        content = self._fields(row, topic_name) if row.payload is not None else self._raw(row)
        place = self._place(row.offset, row.leader_epoch, row.timestamp_ms)
        return f"{place}  {self._type(row, kind)}  {content}".rstrip()

    def batch(self, row: BatchRow) -> str:
        offsets = f"{row.base_offset}..{row.last_offset}"
        kind = "control" if row.is_control else "data"
        return (
            f"{self._place(row.base_offset, row.leader_epoch, row.timestamp_ms)}  {kind:<7}  {offsets:<21}  "
            f"{row.record_count:>6} records  {row.size_in_bytes:>8} bytes at {row.position:<10}  "
            f"{row.codec:<6}  crc {row.crc:08x}"
        )

    def file(self, source: str, name: str) -> str:
        return self._painted(safe_text(f"# {source}: {name}"), _DIM)

    def _place(self, offset: int, leader_epoch: int, timestamp_ms: int) -> str:
        when = self._painted(iso_time(timestamp_ms), _DIM)
        return f"{offset:>10}  {leader_epoch:>5}  {when}"

    def _type(self, row: RecordRow, text: str) -> str:
        if row.payload is None:
            return self._painted(text, _RED)
        if row.record_type == "NoOpRecord":
            return self._painted(text, _DIM)
        return self._painted(text, _YELLOW if row.is_control else _CYAN)

    def _fields(self, row: RecordRow, topic_name: str | None) -> str:
        assert row.payload is not None
        shown = {name: value for name, value in row.payload.items() if value is not None}
        if topic_name is not None and row.topic_name is None:
            shown = {"topic": topic_name, **shown}
        return " ".join(
            f"{self._painted(name, _GREEN)}={_field_text(value)}" for name, value in shown.items()
        )

    def _raw(self, row: RecordRow) -> str:
        number = "" if row.api_key is None else f"key={row.api_key} "
        raw = "" if row.raw is None else f"raw={row.raw.hex()} "
        return safe_text(f"{number}{raw}({row.problem})")

    def _painted(self, text: str, colour: str) -> str:
        return f"{colour}{text}{_RESET}" if self._colour else text


def damage_line(path: str, row: DamageRow) -> str:
    """What is damaged, where, for standard error."""
    offset = "" if row.offset is None else f", offset {row.offset}"
    return f"{row.kind}: {path} at byte {row.position}{offset}: {row.reason}"


def _field_text(value: object) -> str:
    """A bare word where nothing is ambiguous about it, else JSON, in which control characters are escaped."""
    if (
        isinstance(value, str)
        and value
        and value.isprintable()
        and not any(mark in value for mark in ' "=[]{}')
    ):
        return value
    return compact_json(value)
