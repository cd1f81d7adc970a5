"""Batches that cost the broker more than their bytes: many records in a hundred bytes, headers, numbers that have to be
changed, a hundred thousand refusals."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kquorum.broker.log.errors import InvalidRecord, InvalidTimestamp, LogError, RecordTooLarge
from kquorum.broker.log.partition_log import AppendOrigin
from kquorum.broker.log.validation import ValidationRules, analyze, validate_and_assign
from kquorum.wire.compression import CompressionCodec
from kquorum.wire.data_batch import (
    Record,
    first_record_since,
    read_data_header,
    seal_batch,
    write_data_batch,
)
from kquorum.wire.primitives import write_varint
from tests.support.broker.disk_logs import NOW_MS, log_dir_at, offset_for_time, open_log
from tests.support.calls import calls_of

MANY = 1 << 17
# To find where each record begins takes one call for each, and is done twice where records are refused. To make a
# value of each takes five more.
MOST_CALLS = 300_000


def hostile(record: bytes, count: int = MANY, *, last: bytes | None = None, codec: int = 4) -> bytes:
    """`count` times the same record (with its length), or another `last` one."""
    body = record * (count - 1) + (record if last is None else last)
    empty = write_data_batch([Record(0, NOW_MS, None, None)])
    header = replace(
        read_data_header(empty), record_count=count, last_offset_delta=count - 1, attributes=codec
    )
    return seal_batch(body, header)


def record(*, timestamp_delta: bytes = b"\0", offset_delta: bytes = b"\0", headers: int = 0) -> bytes:
    """Without key and value; each header has an empty key and no value."""
    count = bytearray()
    write_varint(count, headers)
    body = b"\0" + timestamp_delta + offset_delta + b"\x01\x01" + bytes(count) + b"\x00\x01" * headers
    size = bytearray()
    write_varint(size, len(body))
    return bytes(size) + body


def append(batch: bytes, rules: ValidationRules) -> LogError | None:
    try:
        validate_and_assign(
            batch,
            analyze(batch, origin=AppendOrigin.CLIENT, max_message_bytes=1 << 20),
            first_offset=0,
            leader_epoch=0,
            now_ms=NOW_MS,
            origin=AppendOrigin.CLIENT,
            rules=rules,
        )
    except LogError as error:
        return error
    return None


def cheaply(step: Callable[[], LogError | None]) -> LogError | None:
    outcomes: list[LogError | None] = []
    assert calls_of(lambda: outcomes.append(step())) < MOST_CALLS
    return outcomes[0]


PRODUCERS_CODEC = ValidationRules()


@pytest.mark.parametrize(
    ("batch", "rules", "expected"),
    [
        pytest.param(hostile(record()), PRODUCERS_CODEC, RecordTooLarge, id="offsets that are all 0"),
        pytest.param(
            write_data_batch(
                [Record(n, NOW_MS, None, None) for n in range(MANY)], codec=CompressionCodec.ZSTD
            ),
            ValidationRules(codec=CompressionCodec.GZIP),
            RecordTooLarge,
            id="another codec",
        ),
        pytest.param(
            write_data_batch([Record(0, NOW_MS, None, bytes(5 << 20))], codec=CompressionCodec.ZSTD),
            ValidationRules(codec=CompressionCodec.GZIP),
            RecordTooLarge,
            id="many bytes in another codec",
        ),
        pytest.param(
            hostile(record(timestamp_delta=b"\xfe\xff\xff\xff\xff\xff\x01")),
            PRODUCERS_CODEC,
            InvalidTimestamp,
            id="timestamps of the future",
        ),
        pytest.param(hostile(record()), ValidationRules(compacted=True), InvalidRecord, id="no keys"),
        pytest.param(
            hostile(record(), last=b"\x0c\0"), PRODUCERS_CODEC, InvalidRecord, id="damage at the end"
        ),
        pytest.param(
            hostile(record(headers=1)), PRODUCERS_CODEC, RecordTooLarge, id="a header in each record"
        ),
        pytest.param(
            hostile(record(headers=400_000), 1), PRODUCERS_CODEC, RecordTooLarge, id="400,000 headers"
        ),
        pytest.param(
            hostile(record(headers=40_000), 200), PRODUCERS_CODEC, RecordTooLarge, id="8 million headers"
        ),
    ],
)
def test_a_batch_of_a_few_bytes_does_not_hold_up_the_broker(
    batch: bytes, rules: ValidationRules, expected: type[LogError]
) -> None:
    """Before: 0.2 to 0.7 s in one turn of the loop for each of the first six, four seconds for the headers."""
    assert type(cheaply(lambda: append(batch, rules))) is expected


def test_a_refusal_lists_a_hundred_records() -> None:
    """Before: 131,072 messages, 11 MB of an answer for 160 bytes of a request."""
    error = append(hostile(record(timestamp_delta=b"\xfe\xff\xff\xff\xff\xff\x01")), PRODUCERS_CODEC)
    assert isinstance(error, InvalidTimestamp)
    assert (len(error.record_errors), str(error)[:27]) == (100, "131072 records are refused;")


def test_headers_that_a_producer_sends_are_taken() -> None:
    records = [Record(n, NOW_MS, b"k", b"v", (("trace", b"1"), ("span", None))) for n in range(5_000)]
    assert append(write_data_batch(records, codec=CompressionCodec.ZSTD), PRODUCERS_CODEC) is None


def test_a_search_by_time_makes_no_value_of_each_record() -> None:
    """Before: 150 ms for each partition that a ListOffsets names, all of them in one turn."""
    batch = write_data_batch(
        [Record(n, NOW_MS + n, None, None) for n in range(MANY)], codec=CompressionCodec.ZSTD
    )
    header = read_data_header(batch)
    found: list[object] = []

    def search() -> None:
        found.append(first_record_since(batch, 0, header, NOW_MS + MANY - 1, 0))
        found.append(first_record_since(batch, 0, header, NOW_MS, MANY - 2))

    assert calls_of(search) < MOST_CALLS
    assert found == [(NOW_MS + MANY - 1, MANY - 1), (NOW_MS + MANY - 2, MANY - 2)]
    assert first_record_since(batch, 0, header, NOW_MS + MANY, 0) is None


def test_the_log_finds_times_in_large_batches(tmp_path: Path) -> None:
    log = open_log(log_dir_at(tmp_path))
    records = [Record(n, NOW_MS + n // 2, b"k", None) for n in range(1_000)]
    for codec in (CompressionCodec.NONE, CompressionCodec.LZ4):
        log.append_as_leader(write_data_batch(records, codec=codec), leader_epoch=0, now_ms=NOW_MS)
    log.update_high_watermark(2_000)
    assert offset_for_time(log, NOW_MS + 400).offset == 800
    assert (log.offset_of_max_time().offset, log.offset_of_max_time().timestamp_ms) == (998, NOW_MS + 499)
    log.advance_log_start_offset(999)
    assert offset_for_time(log, NOW_MS + 400).offset == 999
