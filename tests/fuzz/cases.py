"""Bytes that a decoder did not cope with once, or that claim far more than they hold; (decoder, bytes)."""

import gzip
import struct

import pytest

from tests.fuzz import seeds

TWO_GIB = 2**31 - 1


def _batch_of(length: int, records: int) -> bytes:
    data = bytearray(seeds.batches()[0])
    data[8:12] = struct.pack(">i", length)
    data[57:61] = struct.pack(">i", records)
    return bytes(data)


def _empty_control_batch() -> bytes:
    data = bytearray(seeds.snapshots()[0][:61])
    data[57:61] = bytes(4)
    return seeds.sealed(bytes(data))


def _zstd_of(size: int) -> bytes:
    """A frame of one segment, which says how much it holds in 8 bytes."""
    return b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", size) + b"\x01\x00\x00"


def _lz4_of(size: int) -> bytes:
    data = bytearray(seeds.lz4_data()[0])
    data[6:14] = struct.pack("<Q", size)
    return bytes(data)


CASES = [
    pytest.param("quorum-state", b'{"currentVoters":[' * 3000, id="quorum-state nested too deeply"),
    pytest.param("election", b'{"timestamp_ms":[' * 3000, id="election nested too deeply"),
    pytest.param(
        "offset-index",
        seeds.offset_indexes()[0] + bytes(60_000) + b"\x01",
        id="zeros in the middle of an index",
    ),
    pytest.param(
        "time-index", seeds.time_indexes()[0] + bytes(60_000) + b"\x01", id="the same of a time index"
    ),
    pytest.param("gzip", gzip.compress(b"", mtime=0) * 3000, id="thousands of gzip members"),
    pytest.param(
        "zstd", seeds.zstd_data()[0][:-9] + bytes(9), id="damaged zstd was tried in ever larger space"
    ),
    pytest.param("snapshot-file", _empty_control_batch(), id="a snapshot whose first batch is empty"),
    pytest.param("batch", _batch_of(TWO_GIB, 1), id="a batch of 2 GiB"),
    pytest.param("batch", seeds.sealed(_batch_of(200, TWO_GIB)), id="2^31 records"),
    pytest.param("snappy", b"\xff\xff\xff\xff\x07" + bytes(20), id="snappy of 2 GiB"),
    pytest.param("zstd", _zstd_of(TWO_GIB), id="zstd of 2 GiB"),
    pytest.param("lz4", _lz4_of(TWO_GIB), id="lz4 of 2 GiB"),
    pytest.param(
        "control-record", seeds.control_records()[-1][:7] + b"\xfe\xff\xff\xff\x0f", id="2^31 voters"
    ),
    pytest.param("metadata-record", b"\x01\x02\x00\xff\xff\xff\xff\x07", id="a topic's name of 2 GiB"),
]
