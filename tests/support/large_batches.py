"""Batches of a few KiB that unpack to a great deal: bombs, and the largest that a KRaft node may write."""

import cramjam

from kquorum.wire.compression import CompressionCodec
from kquorum.wire.primitives import write_varint
from tests.support.batches import batch_of

ZSTD = CompressionCodec.ZSTD
NO_OP = b"\x01\x14\x00\x00"


def no_ops(count: int) -> bytes:
    """The records of so many NoOpRecords, as a leader writes them."""
    body = bytearray()
    for offset_delta in range(count):
        record = bytearray(b"\0\0")
        write_varint(record, offset_delta)
        record += b"\x01\x08" + NO_OP + b"\0"
        write_varint(body, len(record))
        body += record
    return bytes(body)


def bomb(record_count: int, plain: bytes) -> bytes:
    """A batch with a right checksum that says it has so many records, which are `plain` when they are unpacked."""
    packed = bytes(cramjam.zstd.compress(plain))
    return batch_of(packed, record_count=record_count, attributes=ZSTD)


def record_bomb(record_count: int) -> bytes:
    """Records of seven bytes each, the shortest of all: no key, no value, all of them with the same offset."""
    return bomb(record_count, b"\x0c\0\0\0\x01\x01\0" * record_count)
