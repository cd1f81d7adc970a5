"""Records of the log as messages of the gRPC service, and which of them a reader wants."""

import difflib
import json
from collections.abc import Iterable, Iterator

from wire.control_records import decode_control_record_lenient
from wire.log_batch import LogBatch
from wire.metadata_records.registry import ALL
from wire.proto import inspect_pb2 as pb
from wire.record_frame import decode_record_lenient
from wire.record_json import CONTROL_TYPE_NAMES, may_hold_secrets, record_to_json, type_name
from wire.record_parsing import Record

UNKNOWN = "Unknown"
CONTROL_TYPES = frozenset(CONTROL_TYPE_NAMES.values())
TYPES = frozenset(cls.__name__ for cls in ALL) | CONTROL_TYPES | {UNKNOWN}


class UnknownType(Exception):
    """A type name that no record has; the text names the nearest one that exists."""


class RecordFilter:
    """Which records a reader wants; control records when asked for, or when one of their types is named."""

    def __init__(self, types: Iterable[str], include_control: bool) -> None:
        """Raises UnknownType."""
        self._types = frozenset(types)
        for name in sorted(self._types - TYPES):
            near = difflib.get_close_matches(name, sorted(TYPES), n=1, cutoff=0.4)
            raise UnknownType(
                f"no record type is named '{name}'" + (f"; did you mean '{near[0]}'?" if near else "")
            )
        self._include_control = include_control or bool(self._types & CONTROL_TYPES)

    def messages(self, batch: LogBatch, start_offset: int, end_offset: int) -> Iterator[pb.LogRecord | None]:
        """The records of a batch from `start_offset` to below `end_offset`; None for each that is not wanted, which
        takes its time as well.

        Raises DecodeError for a malformed batch; a record that cannot be read is shown as Unknown.
        """
        if batch.is_control and not self._include_control:
            return
        for record in batch.records:
            if start_offset <= record.offset < end_offset:
                yield (
                    self._control_message(record, batch) if batch.is_control else self._message(record, batch)
                )

    def _wants(self, name: str) -> bool:
        return not self._types or name in self._types

    def _control_message(self, record: Record, batch: LogBatch) -> pb.LogRecord | None:
        decoded = decode_control_record_lenient(record.key, record.value)
        if not self._wants(UNKNOWN if decoded.record is None else type_name(decoded.record)):
            return None
        message = _empty_message(record, batch)
        message.api_key = decoded.control_type
        if decoded.record is None:
            _fill_unknown(message, record.value or b"", decoded.problem)
        else:
            message.type, message.json = type_name(decoded.record), _json(decoded.record)
            message.version = decoded.record.version
        return message

    def _message(self, record: Record, batch: LogBatch) -> pb.LogRecord | None:
        decoded = decode_record_lenient(record.value or b"")
        if not self._wants(UNKNOWN if decoded.record is None else type_name(decoded.record)):
            return None
        message = _empty_message(record, batch)
        message.api_key, message.version = decoded.api_key, decoded.version
        if decoded.record is None:
            hidden = may_hold_secrets(decoded.api_key)
            _fill_unknown(message, b"" if hidden else decoded.value, decoded.problem)
        else:
            message.type, message.json = type_name(decoded.record), _json(decoded.record)
        return message


def _empty_message(record: Record, batch: LogBatch) -> pb.LogRecord:
    return pb.LogRecord(
        offset=record.offset,
        leader_epoch=batch.leader_epoch,
        timestamp_ms=record.timestamp_ms,
        is_control=batch.is_control,
    )


def _fill_unknown(message: pb.LogRecord, value: bytes, problem: str | None) -> None:
    message.type, message.value, message.problem = UNKNOWN, value, problem or ""


def _json(record: object) -> str:
    return json.dumps(record_to_json(record), separators=(",", ":"))
