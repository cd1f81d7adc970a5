"""Records as plain JSON-able values, with secrets held back unless they are asked for.

One rendering serves gRPC, `log dump` and the Spark tables, so that a record reads the same everywhere: field names in
snake_case, uuids in Kafka's base64 text, bytes in standard base64. Kafka keeps secrets in its metadata log in clear;
a user who can read the log files may ask for them, a client over a network may not.
"""

import base64
import dataclasses
import enum
import hashlib
import math
import uuid

from kquorum.wire.audit_note import AUDIT_NOTE_TAG, audit_note_to_json
from kquorum.wire.sensitive_configs import is_sensitive_config
from kquorum.wire.uuids import uuid_to_text

__all__ = [
    "REDACTED",
    "SECRET_FIELDS",
    "is_sensitive_config",
    "may_hold_secrets",
    "record_to_json",
    "redacted_token",
    "type_name",
]

REDACTED = "[redacted]"

CONTROL_TYPE_NAMES = {
    "LeaderChangeMessage": "LeaderChange",
    "SnapshotHeaderRecord": "SnapshotHeader",
    "SnapshotFooterRecord": "SnapshotFooter",
    "KRaftVersionRecord": "KRaftVersion",
    "VotersRecord": "KRaftVoters",
}

# The salted hashes of a SCRAM credential allow an offline search for the password; a token's id is its user name.
SECRET_FIELDS = {
    "UserScramCredentialRecord": ("salt", "stored_key", "server_key"),
    "DelegationTokenRecord": ("token_id",),
    "RemoveDelegationTokenRecord": ("token_id",),
}
SECRET_API_KEYS = frozenset({4, 10, 11, 26})
TAGS = "unknown_tagged_fields"


def type_name(record: object) -> str:
    """The record's type as Kafka's tools name it: `TopicRecord`, and for control records `LeaderChange` and so on."""
    name = type(record).__name__
    return CONTROL_TYPE_NAMES.get(name, name)


def may_hold_secrets(api_key: int) -> bool:
    """Whether the raw bytes of a record of this type, of whatever version, must not be shown unasked."""
    return api_key in SECRET_API_KEYS


def record_to_json(record: object, *, show_secrets: bool = False) -> dict[str, object]:
    """The fields of a metadata or control record as values which `json.dumps` accepts.

    Unknown tagged fields appear, when there are any, as `unknown_tagged_fields: [{"tag": int, "data": base64}]`; an
    audit note among them as `audit_note: {...}`.
    A secret reads `[redacted]`; a delegation token's id keeps a digest so that its records can be matched.
    """
    fields = _fields_to_json(record)
    return fields if show_secrets else _redact(type(record).__name__, fields)


def _fields_to_json(entity: object) -> dict[str, object]:
    assert dataclasses.is_dataclass(entity), f"not a record: {entity!r}"
    assert not isinstance(entity, type)
    fields: dict[str, object] = {}
    for field in dataclasses.fields(entity):
        value = getattr(entity, field.name)
        if field.name != TAGS:
            fields[field.name] = _value_to_json(value)
        elif value:
            fields |= _tagged_fields_to_json(value)
    return fields


def _tagged_fields_to_json(tagged_fields: tuple[tuple[int, bytes], ...]) -> dict[str, object]:
    """An audit note is shown as its fields, an unknown tagged field as its bytes."""
    unknown = []
    shown: dict[str, object] = {}
    for tag, data in tagged_fields:
        note = audit_note_to_json(data) if tag == AUDIT_NOTE_TAG else None
        if note is None:
            unknown.append({"tag": tag, "data": _base64(data)})
        else:
            shown["audit_note"] = note
    if unknown:
        shown[TAGS] = unknown
    return shown


def _value_to_json(value: object) -> object:
    match value:
        case None | bool() | str():
            return value
        case enum.Enum():
            return value.value
        case int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)  # JSON has no word for NaN and infinity
        case uuid.UUID():
            return uuid_to_text(value)
        case bytes() | bytearray() | memoryview():
            return _base64(bytes(value))
        case tuple() | list():
            return [_value_to_json(item) for item in value]
    return _fields_to_json(value)


def _redact(class_name: str, fields: dict[str, object]) -> dict[str, object]:
    hidden = SECRET_FIELDS.get(class_name, ())
    if class_name == "ConfigRecord" and is_sensitive_config(str(fields["name"])):
        hidden = ("value",)
    for name in hidden:
        if fields[name] is not None:
            fields[name] = redacted_token(str(fields[name])) if name == "token_id" else REDACTED
    if hidden and TAGS in fields:
        fields[TAGS] = REDACTED
    return fields


def redacted_token(token_id: str) -> str:
    """Token ids are random, so a digest gives nothing away; a password's digest would."""
    return f"{REDACTED} {hashlib.sha256(token_id.encode()).hexdigest()[:8]}"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
