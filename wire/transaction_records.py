"""The records of `__transaction_state`: keys and values, byte for byte as Kafka's transaction coordinator writes them.

A key is an int16 with the type of the record (0), then the transactional id; a value is an int16 with its version (0
or 1), then its fields. A null value (tombstone) removes the id. Version 1 is flexible: its tags hold the producer ids
before and after the current one, and what the client could do (KIP-890, KIP-915).
"""

from __future__ import annotations

import struct
from typing import Final

from kquorum.wire import message_schema
from kquorum.wire.errors import BufferUnderflow, DecodeError, UnsupportedVersion
from kquorum.wire.message_codec import decode, encode
from kquorum.wire.message_schema import Data, Struct, kafka, message

TRANSACTION_LOG: Final = 0
"""The one type of record that exists."""
NO_PRODUCER: Final = -1
NO_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1
_INT16: Final = struct.Struct(">h")


@message(versions=(0, 0), flexible_since=None)
class _TransactionKey(Data):
    transactional_id: str = kafka("string", default="")


@message_schema.struct
class PartitionsOfTopic(Struct):
    topic: str = kafka("string", default="")
    partition_ids: tuple[int, ...] = kafka("[]int32", default=())


@message(versions=(0, 1), flexible_since=1)
class TransactionValue(Data):
    """`partitions` is null without a transaction. Times are in ms since 1970."""

    producer_id: int = kafka("int64", default=0)
    producer_epoch: int = kafka("int16", default=0)
    timeout_ms: int = kafka("int32", default=0)
    status: int = kafka("int8", default=0)
    partitions: tuple[PartitionsOfTopic, ...] | None = kafka([PartitionsOfTopic], default=(), nullable=True)
    last_update_timestamp_ms: int = kafka("int64", default=0)
    start_timestamp_ms: int = kafka("int64", default=0)
    previous_producer_id: int = kafka("int64", default=NO_PRODUCER, since=1, tag=0, is_ignorable=True)
    next_producer_id: int = kafka("int64", default=NO_PRODUCER, since=1, tag=1, is_ignorable=True)
    client_transaction_version: int = kafka("int16", default=0, since=1, tag=2, is_ignorable=True)
    next_producer_epoch: int = kafka("int16", default=NO_EPOCH, since=1, tag=3, is_ignorable=True)


def decode_transaction_key(data: bytes) -> str | None:
    """The transactional id; None for a type of a later release, which a reader skips. Raises DecodeError."""
    if _number(data) != TRANSACTION_LOG:
        return None
    key, end = decode(_TransactionKey, 0, data, _INT16.size)
    _check_end("a key", data, end)
    return key.transactional_id


def encode_transaction_key(transactional_id: str) -> bytes:
    return _INT16.pack(TRANSACTION_LOG) + encode(_TransactionKey(transactional_id=transactional_id), 0)


def decode_transaction_value(data: bytes) -> TransactionValue:
    """Raises DecodeError, for a version that is not known too: what it says would be lost if it were skipped."""
    try:
        value, end = decode(TransactionValue, _number(data), data, _INT16.size)
    except UnsupportedVersion as error:
        raise DecodeError(str(error)) from None
    _check_end("a value", data, end)
    return value


def encode_transaction_value(value: TransactionValue, version: int) -> bytes:
    """Version 0 has no room for the tags."""
    return _INT16.pack(version) + encode(value, version)


def _number(data: bytes) -> int:
    if len(data) < _INT16.size:
        raise BufferUnderflow("a record of __transaction_state is cut short", len(data))
    number: int = _INT16.unpack_from(data)[0]
    return number


def _check_end(what: str, data: bytes, end: int) -> None:
    if end != len(data):
        raise DecodeError(f"{what} of __transaction_state has {len(data) - end} bytes too many")
