"""Batches of all three formats against kafka-python, a client that knows nothing of this project."""

import pytest
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from kquorum.wire.compression import CompressionCodec
from kquorum.wire.data_batch import (
    Record,
    check_data_batch,
    data_headers,
    read_data_records,
    write_data_batch,
)

RECORDS = [
    Record(index, 1_700_000_000_000 + 7 * index, b"key %d" % index if index % 3 else None, bytes(index % 90))
    for index in range(300)
]


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.GZIP])
def test_what_it_writes_is_read(magic: int, codec: CompressionCodec) -> None:
    builder = MemoryRecordsBuilder(magic=magic, compression_type=int(codec), batch_size=1 << 20)
    for record in RECORDS:
        builder.append(timestamp=record.timestamp_ms, key=record.key, value=record.value, headers=[])
    builder.close()
    data = bytes(builder.buffer())
    found: list[Record] = []
    for position, header in data_headers(data):
        assert check_data_batch(data, position) == header
        assert (header.magic, header.codec) == (magic, codec)
        found += read_data_records(data, position, header)
    assert [(each.offset, each.key, each.value) for each in found] == [
        (each.offset, each.key, each.value) for each in RECORDS
    ]
    if magic:
        assert [each.timestamp_ms for each in found] == [each.timestamp_ms for each in RECORDS]


@pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.GZIP])
def test_it_reads_what_is_written(codec: CompressionCodec) -> None:
    headers = (("name", b"value"), ("name", None))
    records = [Record(each.offset + 50, each.timestamp_ms, each.key, each.value, headers) for each in RECORDS]
    data = write_data_batch(records, codec=codec, producer_id=5, producer_epoch=1, base_sequence=3)
    batch = MemoryRecords(data).next_batch()
    assert batch.validate_crc()
    read = [(each.offset, each.timestamp, each.key, each.value, tuple(each.headers)) for each in batch]
    assert read == [(each.offset, each.timestamp_ms, each.key, each.value, headers) for each in records]
