"""Sound batches behind damage are found again, for every writer."""

import struct
from pathlib import Path

import pytest

from kquorum.storage.torn_tail import valid_batches_behind
from kquorum.wire.log_batch import LogBatch, log_batch
from kquorum.wire.record_batch import HEADER_BYTES, MAX_BATCH_RECORDS
from tests.support.batches import with_valid_crc
from tests.support.storage.log_parts import FIRST, batch, recover, write_log

PRODUCERS = (-1, 0, 4711, 2**63 - 1)
_PRODUCER_POSITION = 43


def batch_of_producer(offset: int, producer_id: int) -> LogBatch:
    data = batch(offset).data
    sequence = (3, offset % 2**31) if producer_id >= 0 else (-1, -1)
    producer = struct.pack(">qhi", producer_id, *sequence)
    return log_batch(
        with_valid_crc(data[:_PRODUCER_POSITION] + producer + data[_PRODUCER_POSITION + len(producer) :])
    )


@pytest.mark.parametrize("producer_id", PRODUCERS)
@pytest.mark.parametrize("first_offset", [0, 250, 2**24 - 3, 2**40])
def test_those_of_any_producer_are_found_at_any_offset(producer_id: int, first_offset: int) -> None:
    written = [batch_of_producer(first_offset + number, producer_id) for number in range(6)]
    size = len(written[0].data)
    content = b"".join(each.data for each in written)
    garbled = content[:11] + b"\x7f" + content[12:]
    found = [(start, header.base_offset) for start, header in valid_batches_behind(garbled, 0, first_offset)]
    assert found == [(number * size, first_offset + number) for number in range(1, 6)]
    behind = [start for start, _ in valid_batches_behind(garbled, size, first_offset)]
    assert behind == [2 * size, 3 * size, 4 * size, 5 * size], "not the one at the position itself"
    assert [start for start, _ in valid_batches_behind(content, -1, first_offset)] == [
        number * size for number in range(6)
    ]


def test_of_offsets_that_cannot_be_there_none_is_found() -> None:
    """Compressed, the bytes may hold batches of very many records, but no more batches than headers fit into them."""
    content = bytes(7) + batch(4).data + batch(3).data
    content += batch(4 + (2 * len(content) // HEADER_BYTES + 1) * MAX_BATCH_RECORDS).data
    assert [header.base_offset for _, header in valid_batches_behind(content, 0, 4)] == [4]


def test_a_batch_within_a_record_is_none_of_the_log() -> None:
    inner = batch(2).data
    outer = with_valid_crc(batch(1, size=len(inner)).data.replace(bytes([2]) * len(inner), inner))
    content = bytes(3) + outer + batch(2).data
    found = [start for start, _ in valid_batches_behind(content, 0, 0)]
    assert found == [3, 3 + len(outer)]


@pytest.mark.parametrize("producer_id", PRODUCERS)
def test_a_damaged_length_with_sound_batches_behind_is_never_cut(tmp_path: Path, producer_id: int) -> None:
    """It makes a batch in the middle look like the torn end of the log."""
    written = [batch_of_producer(number, producer_id) for number in range(6)]
    content = bytearray(write_log(tmp_path, written, durable=None))
    content[2 * len(written[0].data) + 10] ^= 0x40
    (tmp_path / FIRST).write_bytes(content)
    recovered = recover(tmp_path)
    recovered.close()
    assert recovered.damage is not None
    assert (recovered.damage.start_offset, recovered.damage.end_offset) == (2, 6)
    assert (tmp_path / FIRST).read_bytes() == content
