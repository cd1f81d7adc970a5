"""Batches that the writer never makes: other codecs, timestamp types, headers, lying counts, all with a valid CRC."""

import struct

import cramjam
from crc32c import crc32c


def with_valid_crc(batch: bytes) -> bytes:
    """The same batch with its checksum made right."""
    return batch[:17] + struct.pack(">I", crc32c(batch[21:])) + batch[21:]


def rewrite_offsets(batch: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """The same batch at another offset and epoch; its checksum covers neither."""
    return struct.pack(">q", base_offset) + batch[8:12] + struct.pack(">i", leader_epoch) + batch[16:]


def batch_of(
    payload: bytes,
    *,
    record_count: int = 1,
    attributes: int = 0,
    base_offset: int = 0,
    base_timestamp_ms: int = 1000,
    max_timestamp_ms: int = 1000,
    last_offset_delta: int | None = None,
) -> bytes:
    """A batch around raw record bytes."""
    delta = record_count - 1 if last_offset_delta is None else last_offset_delta
    checked = struct.pack(
        ">hiqqqhii", attributes, delta, base_timestamp_ms, max_timestamp_ms, -1, -1, -1, record_count
    )
    head = struct.pack(">qiibI", base_offset, 49 + len(payload), 0, 2, 0)
    return with_valid_crc(head + checked + payload)


def xerial(plain: bytes, block_bytes: int = 32 * 1024) -> bytes:
    """The framing of snappy-java: magic, version 1, compatible version 1, then blocks with their sizes."""
    out = bytearray(b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1))
    for start in range(0, len(plain), block_bytes):
        block = bytes(cramjam.snappy.compress_raw(plain[start : start + block_bytes]))
        out += struct.pack(">i", len(block)) + block
    return bytes(out)
