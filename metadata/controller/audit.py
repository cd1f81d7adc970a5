"""Audit notes: who asked for the records that follow, in the log itself.

A note is the value of a tagged field of a NoOpRecord, which Kafka's readers skip. Each holds the hash of the one
before it, so that a note cannot be taken out or changed without a trace.
"""

from metadata.controller.requests import ControllerRequest
from wire.audit_note import AUDIT_NOTE_TAG
from wire.metadata_records.features import NoOpRecord
from wire.proto.audit_pb2 import AuditNote


def audit_record(
    request: ControllerRequest,
    *,
    reason: str,
    previous_note_hash: bytes,
    covered_records: int,
    is_whole: bool = False,
) -> NoOpRecord:
    """The record to put before the `covered_records` that carry the request out, all of it if `is_whole`."""
    note = AuditNote(
        principal=request.principal,
        client_id=request.client_id or "",
        client_address=request.client_host,
        api_key=int(request.api_key),
        correlation_id=request.correlation_id,
        reason=reason,
        previous_note_hash=previous_note_hash,
        covered_records=covered_records,
        operator_reason=request.operator_reason or "",
        forwarding_id=request.forwarding_id,
        is_whole=is_whole,
    )
    value = note.SerializeToString(deterministic=True)
    return NoOpRecord(unknown_tagged_fields=((AUDIT_NOTE_TAG, value),))


def audit_notes(record: NoOpRecord) -> tuple[AuditNote, ...]:
    """The notes that a record carries, none or one; raises protobuf's DecodeError when one is garbage."""
    return tuple(
        AuditNote.FromString(value) for tag, value in record.unknown_tagged_fields if tag == AUDIT_NOTE_TAG
    )
