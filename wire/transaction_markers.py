"""Transaction markers: the control records that end a producer's transaction in the log of a partition (KIP-98).

They stand apart from `wire.control_records`, which are the metadata log's: the storage reads batches of partitions, and
knows nothing of a quorum.
"""

import struct
from dataclasses import dataclass
from typing import Final

from kquorum.wire.errors import BufferUnderflow, DecodeError

_KEY: Final = struct.Struct(">hh")
_VALUE: Final = struct.Struct(">hi")
_ABORT, _COMMIT = 0, 1


@dataclass(frozen=True, slots=True)
class TransactionMarker:
    """The end of a producer's transaction, and the epoch of the coordinator that wrote it."""

    is_commit: bool
    coordinator_epoch: int


def encode_transaction_marker(marker: TransactionMarker) -> tuple[bytes, bytes]:
    """The key and the value; neither is a flexible message."""
    kind = _COMMIT if marker.is_commit else _ABORT
    return _KEY.pack(0, kind), _VALUE.pack(0, marker.coordinator_epoch)


def decode_transaction_marker(key: bytes | None, value: bytes | None) -> TransactionMarker:
    """Read a marker; what a newer version adds is ignored. Raises DecodeError, also for other control records."""
    kind = control_record_type(key)
    if kind not in (_ABORT, _COMMIT):
        raise DecodeError(f"control record type {kind} does not end a transaction")
    if value is None or len(value) < _VALUE.size:
        raise BufferUnderflow(f"a transaction marker has {_VALUE.size} bytes, this one {len(value or b'')}")
    version, coordinator_epoch = _VALUE.unpack_from(value)
    if version < 0:
        raise DecodeError(f"the version {version} of a transaction marker is negative")
    return TransactionMarker(kind == _COMMIT, coordinator_epoch)


def control_record_type(key: bytes | None) -> int:
    """The type in a control record's key; as Kafka does, tolerate a newer key version and more bytes."""
    if key is None or len(key) < _KEY.size:
        raise BufferUnderflow(f"a control record's key has {_KEY.size} bytes, this one {len(key or b'')}")
    version, control_type = _KEY.unpack_from(key)
    if version < 0:
        raise DecodeError(f"the version {version} of a control record's key is negative")
    return int(control_type)
