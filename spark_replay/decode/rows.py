"""What the decoder yields: one row per record, per batch and per damaged place.

These are named tuples and not dataclasses because a log of ten million records makes as many of them, and a tuple
is made in a third of the time.
"""

from typing import NamedTuple

UNKNOWN_TYPE = "Unknown"
# Of a metadata transaction: begin, end and abort.
MARKERS = ("BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord")


class RecordRow(NamedTuple):
    """One record. Offsets and positions are of the file: a snapshot numbers its records from 0.

    `state_offset`, `state_timestamp_ms`: the log offset and time at which the record takes effect: its own in a log,
    those of the last record contained in a snapshot, and None where that is not known (`bootstrap.checkpoint`).
    `raw` is the record's value, kept only where `payload` is None; `problem` then says why.
    """

    file: str
    segment_base_offset: int | None
    position: int
    offset: int
    batch_base_offset: int
    leader_epoch: int
    timestamp_ms: int
    state_offset: int | None
    state_timestamp_ms: int | None
    is_control: bool
    record_type: str
    api_key: int | None
    version: int | None
    payload: dict[str, object] | None
    topic_id: str | None
    topic_name: str | None
    partition_id: int | None
    broker_id: int | None
    raw: bytes | None
    problem: str | None


class BatchRow(NamedTuple):
    """One whole batch with a good checksum. Sizes in bytes, header included."""

    file: str
    segment_base_offset: int | None
    position: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    timestamp_ms: int
    record_count: int
    size_in_bytes: int
    is_control: bool
    codec: str
    crc: int


class DamageRow(NamedTuple):
    """A place which could not be read. `kind` is `torn`, `corrupt` or `undecodable` (good checksum, bad records)."""

    file: str
    segment_base_offset: int | None
    position: int
    offset: int | None
    kind: str
    reason: str
