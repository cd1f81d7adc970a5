"""Control records: leader changes, the frame of a snapshot, the voter set; and the ends of transactions.

A control record's key is two int16, version and type, without tagged fields. Its value is a flexible message
without any prefix. Kafka reads and writes all of them in version 0; the field `version` inside repeats the
number. Schemas: KIP-595 (leader change), KIP-630 (snapshot header and footer), KIP-853 (kraft.version and
voters).
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final
from uuid import UUID

from kquorum.wire import schema
from kquorum.wire.errors import BufferUnderflow, DecodeError
from kquorum.wire.primitives import read_int16
from kquorum.wire.schema import Struct, codec_of, kafka
from kquorum.wire.transaction_markers import control_record_type
from kquorum.wire.uuids import ZERO_UUID

_KEY: Final = struct.Struct(">hh")


class ControlRecordType(IntEnum):
    """The control records of the metadata log; 0 and 1 mark transactions in other logs."""

    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


@schema.struct
class LeaderChangeVoter(Struct):
    """A voter as the new leader knows it; the directory id is in version 1 only, which Kafka never writes."""

    voter_id: int = kafka("int32")
    voter_directory_id: UUID = kafka("uuid", default=ZERO_UUID, since=1)


@schema.struct
class LeaderChangeMessage(Struct):
    """The first record of an epoch: its leader, the voters, and which of them voted for it."""

    version: int = kafka("int16", default=0)
    leader_id: int = kafka("int32")
    voters: tuple[LeaderChangeVoter, ...] = kafka([LeaderChangeVoter], default=())
    granting_voters: tuple[LeaderChangeVoter, ...] = kafka([LeaderChangeVoter], default=())


@schema.struct
class SnapshotHeaderRecord(Struct):
    """The first record of a snapshot; the timestamp (ms) is that of the last log batch it covers."""

    version: int = kafka("int16", default=0)
    last_contained_log_timestamp: int = kafka("int64")


@schema.struct
class SnapshotFooterRecord(Struct):
    """The last record of a snapshot."""

    version: int = kafka("int16", default=0)


@schema.struct
class KRaftVersionRecord(Struct):
    """The finalised kraft.version: 1 lets voters change."""

    version: int = kafka("int16", default=0)
    k_raft_version: int = kafka("int16")


@schema.struct
class VoterEndpoint(Struct):
    """A listener of a voter; the name is in upper case, the host as it was configured."""

    name: str = kafka("string")
    host: str = kafka("string")
    port: int = kafka("uint16")


@schema.struct
class KRaftVersionFeature(Struct):
    """The kraft.version levels that a voter supports."""

    min_supported_version: int = kafka("int16")
    max_supported_version: int = kafka("int16")


@schema.struct
class Voter(Struct):
    """A member of the voter set; a zero directory id means that it is not known."""

    voter_id: int = kafka("int32")
    voter_directory_id: UUID = kafka("uuid")
    endpoints: tuple[VoterEndpoint, ...] = kafka([VoterEndpoint], default=())
    k_raft_version_feature: KRaftVersionFeature = kafka(KRaftVersionFeature)


@schema.struct
class VotersRecord(Struct):
    """The voter set from this record on."""

    version: int = kafka("int16", default=0)
    voters: tuple[Voter, ...] = kafka([Voter])


ControlRecord = (
    LeaderChangeMessage | SnapshotHeaderRecord | SnapshotFooterRecord | KRaftVersionRecord | VotersRecord
)

_CLASSES: Final[Mapping[int, type[ControlRecord]]] = {
    ControlRecordType.LEADER_CHANGE: LeaderChangeMessage,
    ControlRecordType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlRecordType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlRecordType.KRAFT_VERSION: KRaftVersionRecord,
    ControlRecordType.KRAFT_VOTERS: VotersRecord,
}
_TYPES: Final[Mapping[type[ControlRecord], int]] = {cls: number for number, cls in _CLASSES.items()}
_HIGHEST_VERSION: Final[Mapping[type[ControlRecord], int]] = {LeaderChangeMessage: 1}


@dataclass(frozen=True, slots=True)
class DecodedControlRecord:
    """What could be read of a control record: `record` is None and `problem` says why where it could not.

    `control_type` is -1 where the key is unreadable.
    """

    control_type: int
    record: ControlRecord | None
    key: bytes | None
    value: bytes | None
    problem: str | None


def encode_control_record(record: ControlRecord) -> tuple[bytes, bytes]:
    """The key and the value. Raises ValueError if a value does not fit its field."""
    cls = type(record)
    out = bytearray()
    try:
        codec_of(cls, _layout_version(cls, record.version)).encode(record, out)
    except (struct.error, AttributeError, TypeError) as error:
        raise ValueError(f"{record} cannot be encoded: {error}") from error
    return _KEY.pack(0, _TYPES[cls]), bytes(out)


def decode_control_record(key: bytes | None, value: bytes | None) -> ControlRecord:
    """Read a control record. Raises DecodeError, also for a type that does not belong into the metadata log."""
    control_type = control_record_type(key)
    cls = _CLASSES.get(control_type)
    if cls is None:
        raise DecodeError(f"control record type {control_type} does not belong into a metadata log")
    if not value:
        raise DecodeError(f"the {cls.__name__} has no value")
    version, _ = read_int16(value, 0)
    try:
        record, end = codec_of(cls, _layout_version(cls, version)).decode(value, 0)
    except (struct.error, IndexError):
        raise BufferUnderflow(f"the {cls.__name__} is cut short", len(value)) from None
    except UnicodeDecodeError as error:
        raise DecodeError(f"a string of the {cls.__name__} is not UTF-8: {error.reason}") from None
    if end != len(value):
        raise DecodeError(f"{len(value) - end} bytes are left after the {cls.__name__}", end)
    assert isinstance(record, cls)
    return record


def decode_control_record_lenient(key: bytes | None, value: bytes | None) -> DecodedControlRecord:
    """Read as much as possible of a control record; never raises."""
    control_type = -1
    try:
        control_type = control_record_type(key)
        return DecodedControlRecord(control_type, decode_control_record(key, value), key, value, None)
    except DecodeError as error:
        return DecodedControlRecord(control_type, None, key, value, str(error))


def _layout_version(cls: type[ControlRecord], version: int) -> int:
    # Kafka's reader ignores the version inside; only the leader change has a second layout to choose.
    return max(0, min(version, _HIGHEST_VERSION.get(cls, 0)))
