"""Audit notes: who asked for the records that follow, carried by a NoOpRecord in a tagged field that Kafka skips."""

import hashlib
from typing import Final

from kquorum.wire.protocol.api_keys import ApiKey

AUDIT_NOTE_TAG: Final = 7000
# What the first note of a log holds in place of the hash of the one before.
NO_NOTE_HASH: Final = b""


def note_hash(note: bytes) -> bytes:
    """What the next note holds of this one, so that none can be changed or taken out without a trace."""
    return hashlib.sha256(note).digest()


def audit_note_to_json(data: bytes) -> dict[str, object] | None:
    """The note in a tagged field's bytes as plain values; None if it is not one.

    Fields as in `wire/proto/audit.proto`, with the API by name and bytes in hex. What brokers need the last two for
    (`forwarding_id`, `is_whole`) is of no use to people, and left out where there is no id.
    """
    # Protobuf is imported here because most logs, Kafka's own above all, hold no note.
    from google.protobuf.message import DecodeError

    from kquorum.wire.proto.audit_pb2 import AuditNote

    try:
        note = AuditNote.FromString(data)
    except DecodeError:
        return None
    forwarded = {"forwarding_id": note.forwarding_id.hex(), "is_whole": note.is_whole}
    return {
        "principal": note.principal,
        "client_id": note.client_id,
        "client_address": note.client_address,
        "api": api_name(note.api_key),
        "correlation_id": note.correlation_id,
        "reason": note.reason,
        "operator_reason": note.operator_reason,
        "covered_records": note.covered_records,
        **(forwarded if note.forwarding_id else {}),
        "note_hash": note_hash(data).hex(),
        "previous_note_hash": note.previous_note_hash.hex(),
    }


def api_name(api_key: int) -> str:
    try:
        return ApiKey(api_key).name
    except ValueError:
        return f"API {api_key}"
