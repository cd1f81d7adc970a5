"""A plain walk over partition folders by struct formats alone, which shares nothing with the tables of `audit data`.

Only batches of format 2 whose records are not compressed, as the internal topics and the transactional test topics
have.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HEADER = struct.Struct(">qiibIhiqqqhii")


def batches(path: Path) -> Iterator[tuple[dict[str, Any], bytes]]:
    """The header of each batch as Kafka's fields, and the bytes behind it."""
    names = (
        *("base_offset", "length", "leader_epoch", "magic", "crc", "attributes", "last_delta", "base_ms"),
        *("max_ms", "producer_id", "producer_epoch", "base_sequence", "count"),
    )
    data, position = path.read_bytes(), 0
    while position + HEADER.size <= len(data):
        header = dict(zip(names, HEADER.unpack_from(data, position), strict=True))
        end = position + 12 + header["length"]
        if header["magic"] != 2 or end > len(data):
            return
        yield header, data[position + HEADER.size : end]
        position = end


def varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position


def records(header: dict[str, Any], data: bytes) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of each record; of a batch that is not compressed."""
    assert not header["attributes"] & 7, "compressed"
    position = 0
    for _ in range(header["count"]):
        length, start = varint(data, position)
        position = start + length
        at = start + 1
        _, at = varint(data, at)
        delta, at = varint(data, at)
        parts: list[bytes | None] = []
        for _ in range(2):
            size, at = varint(data, at)
            parts.append(None if size < 0 else data[at : at + size])
            at += max(size, 0)
        yield header["base_offset"] + delta, parts[0], parts[1]


def segments(folder: Path) -> Iterator[Path]:
    return iter(sorted(folder.glob("*.log")))


def transactions(folder: Path) -> list[tuple[int, int | None, int | None, str]]:
    """(producer id, first offset, offset of the marker, outcome) of each transaction of a partition."""
    found: list[tuple[int, int | None, int | None, str]] = []
    begun: dict[int, int] = {}
    for path in segments(folder):
        for header, data in batches(path):
            if not header["attributes"] & 0x10:
                continue
            producer = header["producer_id"]
            if header["attributes"] & 0x20:
                ((_, key, _),) = records(header, data)
                assert key is not None
                outcome = "committed" if struct.unpack(">hh", key)[1] == 1 else "aborted"
                found.append((producer, begun.pop(producer, None), header["base_offset"], outcome))
            else:
                begun.setdefault(producer, header["base_offset"])
    return found + [(producer, first, None, "open") for producer, first in begun.items()]


def text(data: bytes, position: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">h", data, position)
    end = position + 2 + size
    return data[position + 2 : end].decode(), end


def group_offsets(folder: Path) -> list[tuple[int, str, str, int, int | None]]:
    """(offset, group, topic, partition, committed offset) of the offset records in a partition of the topic."""
    found = []
    for path in segments(folder):
        for header, data in batches(path):
            if header["attributes"] & 0x20:
                continue
            for offset, key, value in records(header, data):
                if key is None or struct.unpack_from(">h", key)[0] > 1:
                    continue
                group, at = text(key, 2)
                topic, at = text(key, at)
                (partition,) = struct.unpack_from(">i", key, at)
                committed = None if value is None else struct.unpack_from(">q", value, 2)[0]
                found.append((offset, group, topic, partition, committed))
    return found
