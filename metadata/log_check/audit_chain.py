"""Checks the chain of audit notes: each holds the hash of the one before, and covers the records behind it.

Begins with what is known of the note before the log's first record: nothing where the log begins at offset 0, the note
that a snapshot carries, or, where neither says it, whatever the first note holds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from google.protobuf.message import DecodeError as ProtobufDecodeError

from kquorum.wire.audit_note import AUDIT_NOTE_TAG, NO_NOTE_HASH, note_hash
from kquorum.wire.errors import DecodeError
from kquorum.wire.metadata_records.features import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
)
from kquorum.wire.proto.audit_pb2 import AuditNote
from kquorum.wire.record_batch import Record
from kquorum.wire.record_frame import decode_record
from kquorum.wire.wording import counted

# The second byte of a record's frame is its type, for types below 128: most records need not be decoded here.
_TYPES = frozenset(
    each.api_key
    for each in (NoOpRecord, BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)
)


@dataclass(frozen=True, slots=True)
class AuditFault:
    """`offset` is that of the note, or of the record that should not be where it is."""

    file: str
    position: int
    offset: int
    reason: str


@dataclass(slots=True)
class _Note:
    """`left` of the `covered` records are still to come."""

    offset: int
    covered: int
    left: int


class AuditChain:
    """`note_count` counts the notes that were checked; `last_hash` is None while it is not known."""

    def __init__(self, report: Callable[[AuditFault], None]) -> None:
        self.note_count = 0
        self.last_hash: bytes | None = None
        self._report = report
        self._last_offset: int | None = None
        self._open: _Note | None = None
        self._hash_before_transaction: bytes | None = None
        self._is_in_transaction = False
        self._place = ("", 0)

    def begin(self, last_note: bytes | None) -> None:
        """The note before what is taken next; None where there was none."""
        self.lose()
        self.last_hash = NO_NOTE_HASH if last_note is None else note_hash(last_note)

    def lose(self) -> None:
        """Records are missing here: the next note starts a new chain."""
        self.last_hash = self._last_offset = self._open = None
        self._is_in_transaction = False

    def take(self, file: str, position: int, records: Sequence[Record]) -> None:
        """A data batch."""
        self._place = (file, position)
        for record in records:
            self._take_record(record)
        if not self._is_in_transaction:
            self._end_note("are behind it in its batch")

    def _take_record(self, record: Record) -> None:
        value = record.value or b""
        decoded: object = None
        if value[1:2] and value[1] in _TYPES:
            try:
                decoded = decode_record(value)
            except DecodeError:
                decoded = None  # the replay reports it
        if isinstance(decoded, BeginTransactionRecord | EndTransactionRecord | AbortTransactionRecord):
            self._take_marker(decoded)
            return
        note = _note_of(decoded)
        if note is not None:
            self._end_note("come before the next note")
            self._take_note(record.offset, note)
        elif self._open is not None:
            self._open.left -= 1
            self._open = self._open if self._open.left else None

    def _take_marker(self, marker: object) -> None:
        if isinstance(marker, AbortTransactionRecord):
            # What it undoes may end anywhere, and its notes are not part of the chain.
            self._open = None
            if self._is_in_transaction:
                self.last_hash = self._hash_before_transaction
        else:
            self._end_note("come before the transaction's bounds")
        self._is_in_transaction = isinstance(marker, BeginTransactionRecord)
        if self._is_in_transaction:
            self._hash_before_transaction = self.last_hash

    def _take_note(self, offset: int, value: bytes) -> None:
        self.note_count += 1
        try:
            note = AuditNote.FromString(value)
        except ProtobufDecodeError:
            self._fault(offset, "the audit note cannot be read")
        else:
            if self.last_hash is not None and note.previous_note_hash != self.last_hash:
                self._fault(offset, self._broken(note.previous_note_hash))
            if note.covered_records:
                self._open = _Note(offset, note.covered_records, note.covered_records)
            else:
                self._fault(offset, "the audit note covers no records")
        self.last_hash, self._last_offset = note_hash(value), offset

    def _broken(self, held: bytes) -> str:
        before = (
            "the note before it" if self._last_offset is None else f"the note at offset {self._last_offset}"
        )
        if self.last_hash == NO_NOTE_HASH:
            return "the audit note holds the hash of one before it, but it is the first: notes are missing"
        if not held:
            return f"the audit note says that it is the first, but there is {before}"
        return f"the audit note holds {held.hex()[:16]}..., not the hash of {before}: notes are missing or changed"

    def _end_note(self, how_many: str) -> None:
        note, self._open = self._open, None
        if note is not None:
            there = note.covered - note.left
            self._fault(
                note.offset,
                f"the audit note covers {counted(note.covered, 'record')}, but only {there} {how_many}",
            )

    def _fault(self, offset: int, reason: str) -> None:
        self._report(AuditFault(*self._place, offset, reason))


def _note_of(record: object) -> bytes | None:
    if not isinstance(record, NoOpRecord):
        return None
    return next((value for tag, value in record.unknown_tagged_fields if tag == AUDIT_NOTE_TAG), None)
