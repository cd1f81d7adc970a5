"""An audit note reads as what it says; anything else under its tag is shown as bytes."""

from kquorum.wire.audit_note import AUDIT_NOTE_TAG, audit_note_to_json, note_hash
from kquorum.wire.metadata_records.features import NoOpRecord
from kquorum.wire.proto.audit_pb2 import AuditNote
from kquorum.wire.record_json import record_to_json


def test_a_note_is_shown_in_words() -> None:
    note = AuditNote(
        principal="User:alice",
        api_key=20,
        reason="delete topics: a",
        operator_reason="spring cleaning",
        previous_note_hash=b"\x01\xff",
    )
    record = NoOpRecord(unknown_tagged_fields=((AUDIT_NOTE_TAG, note.SerializeToString()), (7001, b"x")))
    shown = record_to_json(record)
    assert shown["audit_note"] == {
        "principal": "User:alice",
        "client_id": "",
        "client_address": "",
        "api": "DELETE_TOPICS",
        "correlation_id": 0,
        "reason": "delete topics: a",
        "operator_reason": "spring cleaning",
        "covered_records": 0,
        "note_hash": note_hash(note.SerializeToString()).hex(),
        "previous_note_hash": "01ff",
    }
    assert shown["unknown_tagged_fields"] == [{"tag": 7001, "data": "eA=="}]


def test_bytes_that_are_no_note_are_kept() -> None:
    record = NoOpRecord(unknown_tagged_fields=((AUDIT_NOTE_TAG, b"\xff\xff\xff"),))
    assert record_to_json(record) == {"unknown_tagged_fields": [{"tag": AUDIT_NOTE_TAG, "data": "////"}]}


def test_the_id_of_a_forwarded_request_is_shown() -> None:
    note = AuditNote(principal="User:alice", forwarding_id=b"\x0f" * 16, is_whole=True)
    shown = audit_note_to_json(note.SerializeToString())
    assert shown is not None
    assert (shown["forwarding_id"], shown["is_whole"]) == ("0f" * 16, True)
