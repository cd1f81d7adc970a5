"""What a leader takes and refuses of a produced batch, and how the batch lies in its log then."""

import struct
import zlib

import pytest

from kquorum.broker.log.errors import (
    CorruptRecord,
    InvalidRecord,
    InvalidTimestamp,
    LogError,
    OffsetsOutOfOrder,
    RecordTooLarge,
    UnknownCodec,
    UnreadableRecords,
)
from kquorum.broker.log.partition_log import AppendOrigin
from kquorum.broker.log.validation import Validated, ValidationRules, analyze, validate_and_assign
from kquorum.wire.compression import CompressionCodec, compress
from kquorum.wire.data_batch import (
    Record,
    check_data_batch,
    read_data_records,
    write_data_batch,
    write_transaction_marker,
)
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.transaction_markers import TransactionMarker
from tests.support.batches import batch_of, rewrite_offsets, with_valid_crc

NOW = 1_700_000_000_000
CODECS = list(CompressionCodec)
BROKER_RULES = ValidationRules()


def records_at(*timestamps: int, key: bytes | None = b"k") -> list[Record]:
    return [
        Record(index, timestamp, key, b"value %d" % index, (("name", b"x"), ("name", None)))
        for index, timestamp in enumerate(timestamps)
    ]


def produce(
    batch: bytes | bytearray | memoryview,
    rules: ValidationRules = BROKER_RULES,
    *,
    origin: AppendOrigin = AppendOrigin.CLIENT,
    first_offset: int = 1234,
    now_ms: int = NOW,
) -> Validated:
    found = analyze(batch, origin=origin, max_message_bytes=rules.max_message_bytes)
    return validate_and_assign(
        batch, found, first_offset=first_offset, leader_epoch=7, now_ms=now_ms, origin=origin, rules=rules
    )


def stored(validated: Validated) -> tuple[Record, ...]:
    """The records as a reader of the log sees them; the checksum and the answer's header are checked."""
    header = check_data_batch(validated.records)
    assert (header,) == validated.batches
    assert header.partition_leader_epoch == 7
    assert header.last_offset == validated.last_offset
    records = read_data_records(validated.records, 0, header)
    assert header.max_timestamp_ms == validated.max_timestamp_ms
    return records


def refused(error: type[LogError], batch: bytes, rules: ValidationRules = BROKER_RULES) -> LogError:
    before = bytearray(batch)
    with pytest.raises(error) as caught:
        produce(before, rules)
    assert before == batch, "a refused batch is untouched"
    return caught.value


@pytest.mark.parametrize("source", CODECS)
@pytest.mark.parametrize("target", [None, *CODECS])
def test_each_codec_into_each_topic(source: CompressionCodec, target: CompressionCodec | None) -> None:
    """BrokerCompressionTest.testBrokerSideCompression, LogValidatorTest.testRelativeOffsetAssignment..."""
    sent = records_at(NOW + 2, NOW + 7, NOW)
    batch = write_data_batch(
        sent, codec=source, producer_id=5, producer_epoch=3, base_sequence=9, transactional=True
    )
    validated = produce(batch, ValidationRules(codec=target))
    assert stored(validated) == tuple(
        Record(1234 + each.offset, each.timestamp_ms, each.key, each.value, each.headers) for each in sent
    )
    header = validated.batches[0]
    assert header.codec == (source if target is None else target)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 3, 9)
    assert header.is_transactional
    assert not header.is_control
    assert (validated.max_timestamp_ms, validated.offset_of_max_timestamp) == (NOW + 7, 1235)
    assert validated.log_append_time_ms == -1
    assert validated.rebuilt == (target is not None and target != source)


def test_an_idempotent_batch_is_placed_in_its_own_bytes() -> None:
    batch = bytearray(
        write_data_batch(records_at(NOW), producer_id=1, producer_epoch=0, base_sequence=0) + b"cut"
    )
    payload = bytes(batch[61:-3])
    validated = produce(batch)
    assert isinstance(validated.records, memoryview)
    assert validated.records.obj is batch
    assert validated.records[61:] == payload
    assert stored(validated)[0].offset == 1234


def test_bytes_that_cannot_be_written_are_copied() -> None:
    batch = write_data_batch(records_at(NOW))
    for given in (batch, memoryview(batch)):
        assert stored(produce(given))[0].offset == 1234
    assert check_data_batch(batch).base_offset == 0


@pytest.mark.parametrize("codec", CODECS)
def test_log_append_time_without_recompression(codec: CompressionCodec) -> None:
    """LogValidatorTest.checkLogAppendTime...: the header says the broker's time, the payload stays."""
    batch = write_data_batch(records_at(5, -1, NOW + 10**9), codec=codec)
    validated = produce(batch, ValidationRules(log_append_time=True))
    assert [record.timestamp_ms for record in stored(validated)] == [NOW] * 3
    assert validated.records[61:] == batch[61:]
    assert validated.batches[0].base_timestamp_ms == 5, "the producer's base stays"
    assert (validated.log_append_time_ms, validated.offset_of_max_timestamp) == (NOW, 1234)
    assert not validated.rebuilt


def test_log_append_time_with_recompression() -> None:
    batch = write_data_batch(records_at(5, 9), codec=CompressionCodec.GZIP)
    rules = ValidationRules(codec=CompressionCodec.ZSTD, log_append_time=True)
    validated = produce(batch, rules)
    assert [record.timestamp_ms for record in stored(validated)] == [NOW, NOW]
    assert validated.batches[0].codec is CompressionCodec.ZSTD


def test_a_producer_does_not_set_log_append_time() -> None:
    batch = write_data_batch(records_at(1, 2), log_append_time_ms=NOW)
    error = refused(InvalidTimestamp, batch, ValidationRules(log_append_time=True))
    assert isinstance(error, InvalidTimestamp)
    assert [index for index, _ in error.record_errors] == [0, 1]
    # In a topic of CreateTime the time that it claims is that of all records, and the mark goes.
    validated = produce(batch, ValidationRules(codec=CompressionCodec.LZ4))
    assert [record.timestamp_ms for record in stored(validated)] == [NOW, NOW]
    assert not validated.batches[0].is_log_append_time
    refused(InvalidTimestamp, write_data_batch(records_at(1), log_append_time_ms=-1))
    refused(InvalidTimestamp, write_data_batch(records_at(1), log_append_time_ms=NOW + 3_600_001))


def test_a_lying_maximum_timestamp_is_corrected() -> None:
    for codec in CODECS:
        batch = write_data_batch(records_at(NOW - 3, NOW - 9), codec=codec, max_timestamp_ms=NOW + 99)
        validated = produce(batch)
        assert validated.max_timestamp_ms == NOW - 3
        assert stored(validated)[0].timestamp_ms == NOW - 3
        assert not validated.rebuilt


def test_records_without_a_timestamp_pass() -> None:
    """UnifiedLogTest.testAppendWithNoTimestamp."""
    rules = ValidationRules(timestamp_before_max_ms=1000, timestamp_after_max_ms=1000)
    validated = produce(write_data_batch(records_at(-1, -1)), rules)
    assert validated.max_timestamp_ms == -1
    assert [record.timestamp_ms for record in stored(validated)] == [-1, -1]
    assert produce(write_data_batch(records_at(-1, NOW)), rules).max_timestamp_ms == NOW


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("target", [None, CompressionCodec.LZ4])
def test_timestamps_outside_of_the_topics_bounds(
    codec: CompressionCodec, target: CompressionCodec | None
) -> None:
    """LogValidatorTest.testInvalidCreateTime..., testRecordWithPastTimestampIsRejected, ...FutureTimestamp..."""
    rules = ValidationRules(codec=target, timestamp_before_max_ms=1000, timestamp_after_max_ms=500)
    produce(write_data_batch(records_at(NOW - 1000, NOW + 500), codec=codec), rules)
    for bad in (NOW - 1001, NOW + 501, -2, 0):
        error = refused(
            InvalidTimestamp, write_data_batch(records_at(NOW, bad, NOW, bad), codec=codec), rules
        )
        assert isinstance(error, InvalidTimestamp)
        assert [index for index, _ in error.record_errors] == [1, 3]
        assert str(bad) in error.record_errors[0][1]
        assert error.error_code is ErrorCode.invalid_timestamp
    # The default bounds: any past, an hour of future.
    produce(write_data_batch(records_at(0, NOW + 3_600_000), codec=codec))
    refused(InvalidTimestamp, write_data_batch(records_at(NOW + 3_600_001), codec=codec))


@pytest.mark.parametrize("codec", CODECS)
def test_a_record_of_a_compacted_topic_needs_a_key(codec: CompressionCodec) -> None:
    """LogValidatorTest.checkNoKeyCompactedTopic, UnifiedLogTest.testCompactedTopicConstraints."""
    keyed, keyless = records_at(NOW)[0], records_at(NOW, key=None)[0]
    batch = write_data_batch(
        [Record(index, NOW, each.key, each.value) for index, each in enumerate((keyed, keyless, keyed))],
        codec=codec,
    )
    produce(batch)
    error = refused(InvalidRecord, batch, ValidationRules(compacted=True))
    assert isinstance(error, InvalidRecord)
    assert [index for index, _ in error.record_errors] == [1]
    assert error.error_code is ErrorCode.invalid_record
    produce(write_data_batch(records_at(NOW, key=b""), codec=codec), ValidationRules(compacted=True))


def test_a_bad_timestamp_outweighs_a_missing_key() -> None:
    """LogValidatorTest.testBatchWithInvalidRecordsAndInvalidTimestamp: one error a record, the message names three."""
    records = [
        Record(0, NOW, None, b""),
        Record(1, 0, b"k", b""),
        *(Record(index, NOW, None, b"") for index in range(2, 7)),
    ]
    rules = ValidationRules(compacted=True, timestamp_before_max_ms=10)
    error = refused(InvalidTimestamp, write_data_batch(records), rules)
    assert isinstance(error, InvalidTimestamp)
    assert [index for index, _ in error.record_errors] == list(range(7))
    assert "record 2" in str(error)
    assert "record 3" not in str(error)


@pytest.mark.parametrize("codec", CODECS)
def test_inner_offsets_that_are_not_sequential(codec: CompressionCodec) -> None:
    """LogValidatorTest.testValidationOfBatchesWithNonSequentialInnerOffsets: a compressed batch gets new numbers; Kafka
    leaves an uncompressed one as it is, as its reader goes by the batch's last offset."""
    records = [Record(offset, NOW + offset, b"k", b"v") for offset in (0, 0, 2, 1)]
    batch = write_data_batch(records, codec=codec, base_offset=0, last_offset=3)
    validated = produce(batch)
    offsets = [record.offset for record in stored(validated)]
    assert offsets == ([1234, 1235, 1236, 1237] if codec else [1234, 1234, 1236, 1235])
    assert validated.rebuilt == bool(codec)
    assert validated.last_offset == 1237
    assert [record.timestamp_ms for record in stored(validated)] == [NOW, NOW, NOW + 2, NOW + 1]


def test_another_level_of_the_same_codec_does_not_compress_again() -> None:
    """LogValidatorTest.testDifferentLevelDoesNotCauseRecompression."""
    batch = write_data_batch(records_at(NOW), codec=CompressionCodec.GZIP, level=1)
    validated = produce(batch, ValidationRules(codec=CompressionCodec.GZIP, gzip_level=9))
    assert validated.records[61:] == batch[61:]


def test_recompression_takes_the_topics_level() -> None:
    records = [Record(index, NOW, b"k", b"%d" % (index * index)) for index in range(5000)]
    batch = write_data_batch(records)
    sizes = [
        len(produce(batch, ValidationRules(codec=CompressionCodec.GZIP, gzip_level=level)).records)
        for level in (1, 9)
    ]
    assert sizes[1] < sizes[0] < len(batch)


def test_a_batch_that_grows_is_measured_again() -> None:
    """Recompression may pass max.message.bytes."""
    batch = write_data_batch([Record(0, NOW, b"k", bytes(100_000))], codec=CompressionCodec.ZSTD)
    rules = ValidationRules(codec=CompressionCodec.NONE, max_message_bytes=2000)
    assert len(batch) < 2000
    assert refused(RecordTooLarge, batch, rules).error_code is ErrorCode.message_too_large


def test_a_batch_above_max_message_bytes() -> None:
    """UnifiedLogTest.testMessageSizeCheck, testMessageSizeCheckInAppendAsFollower."""
    batch = write_data_batch(records_at(NOW))
    produce(batch, ValidationRules(max_message_bytes=len(batch)))
    refused(RecordTooLarge, batch, ValidationRules(max_message_bytes=len(batch) - 1))
    assert analyze(batch, origin=AppendOrigin.REPLICATION, max_message_bytes=None).valid_bytes == len(batch)


@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_decompression_bomb_is_bounded(codec: CompressionCodec) -> None:
    """A Java producer answers MESSAGE_TOO_LARGE by splitting the batch; the broker unfolds no more than its bound."""
    rules = ValidationRules(max_message_bytes=600_000)
    assert rules.max_plain_bytes == 16 * 600_000
    bomb = batch_of(compress(codec, bytes(rules.max_plain_bytes + 1)), attributes=codec)
    assert len(bomb) < 600_000
    assert refused(RecordTooLarge, bomb, rules).error_code is ErrorCode.message_too_large
    within = batch_of(compress(codec, bytes(rules.max_plain_bytes)), attributes=codec)
    refused(InvalidRecord, within, rules)


def test_a_batch_of_too_many_records() -> None:
    empty_records = b"\x0c\0\0\0\1\1\0" * (1 << 17)
    produce(batch_of(empty_records, record_count=1 << 17))
    refused(RecordTooLarge, batch_of(empty_records + b"\x0c\0\0\0\1\1\0", record_count=(1 << 17) + 1))


@pytest.mark.parametrize("codec", CODECS[1:])
def test_damaged_compressed_data_with_a_right_checksum(codec: CompressionCodec) -> None:
    whole = compress(codec, b"".join(b"%d" % (number * number) for number in range(3000)))
    damaged = whole[:20] + bytes(len(whole) - 20)
    refused(UnreadableRecords, batch_of(damaged, attributes=codec))


@pytest.mark.parametrize("codec", [CompressionCodec.GZIP, CompressionCodec.LZ4])
def test_compressed_data_that_end_too_early(codec: CompressionCodec) -> None:
    refused(InvalidRecord, batch_of(compress(codec, bytes(3000))[:-5], attributes=codec))


def test_an_unknown_codec() -> None:
    for number in (5, 6, 7):
        error = refused(UnknownCodec, batch_of(b"\x0c\0\0\0\1\1\0", attributes=number))
        assert error.error_code is ErrorCode.unknown_server_error


@pytest.mark.parametrize("magic", [-128, -1, 3, 127])
def test_an_unknown_magic(magic: int) -> None:
    batch = bytearray(write_data_batch(records_at(NOW)))
    struct.pack_into("b", batch, 16, magic)
    assert refused(CorruptRecord, bytes(batch)).error_code is ErrorCode.corrupt_message


def test_a_wrong_checksum() -> None:
    """LogValidatorTest.checkInvalidChecksum, UnifiedLogTest.testInvalidMemoryRecords."""
    batch = write_data_batch(records_at(NOW))
    for position in (17, 22, 60, len(batch) - 1):
        damaged = bytearray(batch)
        damaged[position] ^= 1
        refused(CorruptRecord, bytes(damaged))


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13, 14, 48])
def test_a_batch_length_that_cannot_be_right(length: int) -> None:
    batch = write_data_batch(records_at(NOW))
    refused(CorruptRecord, batch[:8] + struct.pack(">i", length) + batch[12:])


def test_what_is_behind_the_last_whole_batch_is_left_out() -> None:
    """A fetch answer may end in half a batch (KIP-74)."""
    batch = rewrite_offsets(write_data_batch(records_at(NOW)), 5, 0)
    for cut in range(len(batch)):
        found = analyze(batch + batch[:cut], origin=AppendOrigin.REPLICATION, max_message_bytes=None)
        assert (found.valid_bytes, found.last_offset, len(found.batches)) == (len(batch), 5, 1)
        alone = analyze(batch[:cut], origin=AppendOrigin.CLIENT, max_message_bytes=10)
        assert (alone.valid_bytes, alone.first_offset, alone.last_offset, alone.batches) == (0, -1, -1, ())


def test_a_producer_numbers_from_zero() -> None:
    """A coordinator's batch may begin anywhere."""
    batch = rewrite_offsets(write_data_batch(records_at(NOW)), 1, 0)
    refused(InvalidRecord, batch)
    assert stored(produce(batch, origin=AppendOrigin.COORDINATOR))[0].offset == 1234


def test_exactly_one_batch() -> None:
    """LogValidatorTest.checkOnlyOneBatch."""
    batch = write_data_batch(records_at(NOW))
    refused(InvalidRecord, batch + batch)
    refused(InvalidRecord, b"")


def test_an_older_format_is_not_produced() -> None:
    message = struct.pack(">bbqi1si1s", 1, 0, NOW, 1, b"k", 1, b"v")
    body = struct.pack(">I", zlib.crc32(message)) + message
    refused(InvalidRecord, struct.pack(">qi", 0, len(body)) + body)


@pytest.mark.parametrize(
    ("delta", "count"), [(0, 3), (15, 3), (-3, 3), (1, 3), (3, 3), (2, 0), (2, -1), (-1, 0), (2**31 - 1, 3)]
)
@pytest.mark.parametrize("codec", CODECS)
def test_inconsistent_count_and_offset(delta: int, count: int, codec: CompressionCodec) -> None:
    """LogValidatorTest.testInconsistentCountAndOffset, testBatchWithoutRecordsNotAllowed."""
    payload = compress(codec, write_data_batch(records_at(1, 2, 3))[61:])
    assert stored(produce(batch_of(payload, attributes=codec, record_count=3, last_offset_delta=2)))
    refused(InvalidRecord, batch_of(payload, attributes=codec, record_count=count, last_offset_delta=delta))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("claimed", [1, 2, 4, 5, 1000])
def test_unmatched_number_of_records(codec: CompressionCodec, claimed: int) -> None:
    """LogValidatorTest.testUnmatchedNumberOfRecords: more or fewer than the payload holds."""
    payload = compress(codec, write_data_batch(records_at(1, 2, 3))[61:])
    refused(InvalidRecord, batch_of(payload, attributes=codec, record_count=claimed))


def test_control_records_not_allowed_from_clients() -> None:
    marker = write_transaction_marker(
        TransactionMarker(True, 3), producer_id=1, producer_epoch=0, timestamp_ms=NOW
    )
    refused(InvalidRecord, marker)


def test_control_records_not_compressed() -> None:
    """LogValidatorTest.testControlRecordsNotCompressed: a marker stays plain whatever the topic's codec."""
    marker = write_transaction_marker(
        TransactionMarker(True, 3), producer_id=1, producer_epoch=0, timestamp_ms=NOW
    )
    assert len(marker) == 78
    rules = ValidationRules(codec=CompressionCodec.GZIP, compacted=True)
    validated = produce(marker, rules, origin=AppendOrigin.COORDINATOR)
    assert validated.records[61:] == marker[61:]
    assert validated.batches[0].codec is CompressionCodec.NONE
    assert stored(validated)[0].key == b"\0\0\0\1"


def test_invalid_sequence() -> None:
    """LogValidatorTest.checkInvalidSequence."""
    for sequence in (-1, -2):
        batch = write_data_batch(records_at(NOW), producer_id=1, producer_epoch=0, base_sequence=sequence)
        refused(InvalidRecord, batch)
        produce(batch, origin=AppendOrigin.COORDINATOR)


def test_a_follower_takes_batches_in_order_only() -> None:
    """UnifiedLogTest.testAppendWithOutOfOrderOffsetsThrowsException; gaps are no fault."""
    batch = write_data_batch(records_at(NOW, NOW))
    parts = [rewrite_offsets(batch, offset, 3) for offset in (10, 12, 40)]
    found = analyze(b"".join(parts), origin=AppendOrigin.REPLICATION, max_message_bytes=None)
    assert (found.first_offset, found.last_offset, found.last_offset_of_first_batch) == (10, 41, 11)
    assert (found.last_leader_epoch, found.max_timestamp_ms) == (3, NOW)
    for wrong in (10, 9, 0):
        with pytest.raises(OffsetsOutOfOrder):
            analyze(
                parts[0] + rewrite_offsets(batch, wrong, 3),
                origin=AppendOrigin.REPLICATION,
                max_message_bytes=None,
            )


def test_batches_of_a_newer_epoch_are_left_out() -> None:
    """UnifiedLogTest.testInvalidLeaderEpoch (KAFKA-18723)."""
    batch = write_data_batch(records_at(NOW))
    epochs = (4, -1, 5, 6, 5)
    data = b"".join(rewrite_offsets(batch, offset, epoch) for offset, epoch in enumerate(epochs))
    found = analyze(data, origin=AppendOrigin.REPLICATION, max_message_bytes=None, from_leader_epoch=5)
    assert (len(found.batches), found.left_out, found.last_offset) == (3, 2, 2)
    assert found.valid_bytes == 3 * len(batch)


def test_the_source_codec_is_that_of_the_last_compressed_batch() -> None:
    batches = [
        rewrite_offsets(write_data_batch(records_at(NOW), codec=codec), offset, 0)
        for offset, codec in enumerate((CompressionCodec.GZIP, CompressionCodec.LZ4, CompressionCodec.NONE))
    ]
    found = analyze(b"".join(batches), origin=AppendOrigin.REPLICATION, max_message_bytes=None)
    assert found.source_codec is CompressionCodec.LZ4


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    "payload",
    [
        b"\x0c\0\0\0\1\1",  # the header count is missing
        b"\x0c\0\0\0\1\1\0\0",  # a byte too many
        b"\x0e\0\0\0\1\1\0",  # longer than the batch
        b"\x0a\0\0\0\1\0",  # shorter than any record
        b"\x0c\0\0\0\3\1\0",  # a key of -2 bytes
        b"\x0c\0\0\0\1\3\0",  # a value of -2 bytes
        b"\x0c\0\0\0\1\1\2",  # a header that is not there
        b"\x10\0\0\0\1\1\2\1\1",  # a header without a name
        b"\x0c\0\0\0\x64\1\0",  # a key that is longer than the record
        b"\x01\0\0\0\1\1\0",  # a negative length
        b"\xff\xff\xff\xff\xff\xff\0",  # a length of too many bytes
    ],
)
def test_records_that_are_malformed(codec: CompressionCodec, payload: bytes) -> None:
    """DefaultRecordBatchTest.testInvalidRecordSize and its like: the checksum is right, the content is not."""
    assert stored(produce(batch_of(compress(codec, b"\x0c\0\0\0\1\1\0"), attributes=codec)))
    refused(InvalidRecord, batch_of(compress(codec, payload), attributes=codec))


def test_an_unused_attribute_is_dropped_when_the_time_is_stamped() -> None:
    batch = write_data_batch(records_at(NOW))
    odd = with_valid_crc(batch[:21] + struct.pack(">h", 0x7F80) + batch[23:])
    assert produce(odd).batches[0].attributes == 0x7F80, "nothing else changed: the checksum stays"
    validated = produce(odd, ValidationRules(log_append_time=True))
    assert validated.batches[0].attributes == 0x08
    assert stored(validated)[0].timestamp_ms == NOW
