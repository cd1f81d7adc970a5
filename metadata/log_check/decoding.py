"""Tells a record that a newer Kafka wrote from one that is broken."""

from wire.metadata_records.registry import BY_API_KEY
from wire.record_frame import decode_record_lenient


def is_unknown_record(value: bytes) -> bool:
    """Whether the value has a sound frame, but of a type or version that is not known here."""
    decoded = decode_record_lenient(value)
    if decoded.record is not None or decoded.api_key < 0 or decoded.version < 0:
        return False
    known = BY_API_KEY.get(decoded.api_key)
    return known is None or not known.versions[0] <= decoded.version <= known.versions[1]
