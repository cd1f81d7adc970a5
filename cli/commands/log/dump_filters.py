"""What `log dump` was asked to show: record types, offsets, times and a topic."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from kquorum.cli.failures import CliError, ExitStatus
from kquorum.spark_replay.decode.rows import UNKNOWN_TYPE, RecordRow
from kquorum.wire.metadata_records.registry import ALL
from kquorum.wire.near_names import near_names
from kquorum.wire.record_batch import BatchHeader
from kquorum.wire.record_json import CONTROL_TYPE_NAMES

RECORD_TYPES = (*sorted(cls.__name__ for cls in ALL), *CONTROL_TYPE_NAMES.values(), UNKNOWN_TYPE)


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpFilter:
    """Bounds are inclusive at the start and exclusive at the end; None means unbounded."""

    types: frozenset[str] | None = None
    from_offset: int | None = None
    to_offset: int | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    topic: str | None = None
    shows_noop: bool = True

    def may_hold(self, header: BatchHeader) -> bool:
        """Whether a record of the batch can pass by offset and time; decoding is saved for the others."""
        return (
            (self.from_offset is None or header.last_offset >= self.from_offset)
            and (self.to_offset is None or header.base_offset < self.to_offset)
            and (self.from_ms is None or header.max_timestamp_ms >= self.from_ms)
            and (self.to_ms is None or header.base_timestamp_ms < self.to_ms)
        )

    def is_over(self, header: BatchHeader) -> bool:
        """Whether this batch and all behind it in the log are past the last offset that was asked for."""
        return self.to_offset is not None and header.base_offset >= self.to_offset

    def wants_type(self, record_type: str) -> bool:
        return self.types is None or record_type in self.types

    def passes(self, row: RecordRow, topic_name: str | None) -> bool:
        """Whether to show the record; `topic_name` is that of the topic it is about, as far as known."""
        return (
            self.wants_type(row.record_type)
            and (self.shows_noop or row.record_type != "NoOpRecord" or has_audit_note(row))
            and (self.topic is None or topic_name == self.topic)
            and (self.from_offset is None or row.offset >= self.from_offset)
            and (self.to_offset is None or row.offset < self.to_offset)
            and (self.from_ms is None or row.timestamp_ms >= self.from_ms)
            and (self.to_ms is None or row.timestamp_ms < self.to_ms)
        )


def has_audit_note(row: RecordRow) -> bool:
    """Whether it is a NoOpRecord that says who asked for the records behind it."""
    return row.record_type == "NoOpRecord" and row.payload is not None and "audit_note" in row.payload


def parse_types(names: Iterable[str]) -> frozenset[str] | None:
    """Record types by name, in any case and with or without the ending `Record`. Raises CliError for a miss."""
    asked = list(names)
    if not asked:
        return None
    by_lower_case = {name.lower().removesuffix("record"): name for name in RECORD_TYPES}
    by_lower_case |= {name.lower(): name for name in RECORD_TYPES}
    for name in asked:
        if name.lower() not in by_lower_case:
            raise CliError(_unknown_type(name, by_lower_case), status=ExitStatus.USAGE)
    return frozenset(by_lower_case[name.lower()] for name in asked)


def _unknown_type(name: str, by_lower_case: dict[str, str]) -> str:
    asked = name.lower().removesuffix("record")
    near = [known for known in by_lower_case if len(asked) > 3 and asked in known]  # voters: KRaftVoters
    near += near_names(asked, by_lower_case)
    nearest = list(dict.fromkeys(by_lower_case[match] for match in near))[:3]
    remedy = f"did you mean {' or '.join(nearest)}?" if nearest else f"known are {', '.join(RECORD_TYPES)}"
    return f"--type {name}: no record type of this name; {remedy}"


def parse_time(option: str, text: str | None) -> int | None:
    """Milliseconds since the epoch, given as such or as ISO 8601 (UTC unless it says otherwise)."""
    if text is None:
        return None
    if text.lstrip("-").isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CliError(
            f"{option} {text}: neither ISO 8601 (2026-01-31T12:00:00Z) nor milliseconds since 1970",
            status=ExitStatus.USAGE,
        ) from None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)
