"""What a log checks of the batches that it is to append, and what a leader writes into them.

The first pass (`analyze`) reads headers and checksums, for leaders and followers. The second (`validate_and_assign`) is
the leader's: it walks the records once, gives them offsets, and sets the leader's epoch. The payload of a batch is
untouched unless the topic asks for another codec, or the records are not numbered 0, 1, 2 and so on.

All integers of time are ms. Sources: KIP-98 (the format), KIP-467 (errors of single records), KIP-937 (bounds of
timestamps), KIP-390 and KIP-780 (compression levels).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

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
from kquorum.wire.data_batch import (
    CODEC_BITS,
    NO_EPOCH,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    BatchHeader,
    CompressionCodec,
    computed_crc,
    data_headers,
    place_batch,
    placed_header,
    plain_records,
    read_data_header,
    seal_batch,
    stamp_batch,
)
from kquorum.wire.errors import BufferUnderflow, DecodeError, TooMuchData
from kquorum.wire.record_batch import HEADER_BYTES
from kquorum.wire.record_survey import (
    RecordSpan,
    RecordSurvey,
    outliers,
    record_spans,
    renumbered,
    survey_records,
)

DEFAULT_MAX_MESSAGE_BYTES: Final = 1_048_588
NO_BOUND_MS: Final = 2**63 - 1
_MAGIC: Final = 2
# What a batch costs the loop is bounded: some 40 ms for the most that is decompressed, or for the most records.
# Kafka has neither bound. A Java producer answers MESSAGE_TOO_LARGE by sending the records in smaller batches.
_UNFOLDS_AT_MOST: Final = 16
_LEAST_PLAIN_LIMIT: Final = 8 * 1024 * 1024
_MOST_RECORDS: Final = 1 << 17
# To number records again, or to compress them again, costs more than to look at them.
_MOST_REBUILT_RECORDS: Final = 1 << 13
_REBUILDS_AT_MOST: Final = 4
_LEAST_REBUILT_LIMIT: Final = 4 * 1024 * 1024
_LISTED_ERRORS: Final = 3
# Of the 16 bits, those of the codec, transactions, control records and the delete horizon.
_KEPT_ATTRIBUTES: Final = 0x77


@dataclass(frozen=True, slots=True)
class ValidationRules:
    """The configs of a topic that decide what its log takes and how it stores it."""

    codec: CompressionCodec | None = None
    """`compression.type`: None is `producer`, which keeps the codec of the batch; NONE is `uncompressed`."""
    gzip_level: int = -1
    lz4_level: int = 9
    zstd_level: int = 3
    log_append_time: bool = False
    """`message.timestamp.type`: True is LogAppendTime, False CreateTime."""
    timestamp_before_max_ms: int = NO_BOUND_MS
    timestamp_after_max_ms: int = 3_600_000
    max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES
    compacted: bool = False
    """Whether `cleanup.policy` holds compact: each record needs a key then."""

    def level_of(self, codec: CompressionCodec) -> int | None:
        levels = {
            CompressionCodec.GZIP: self.gzip_level,
            CompressionCodec.LZ4: self.lz4_level,
            CompressionCodec.ZSTD: self.zstd_level,
        }
        return levels.get(codec)

    @property
    def max_plain_bytes(self) -> int:
        """How much a compressed batch may unfold to: the broker decompresses no more of it."""
        return max(_LEAST_PLAIN_LIMIT, _UNFOLDS_AT_MOST * self.max_message_bytes)

    @property
    def max_rebuilt_bytes(self) -> int:
        """Of the records of a batch that has to be built again."""
        return max(_LEAST_REBUILT_LIMIT, _REBUILDS_AT_MOST * self.max_message_bytes)


@dataclass(slots=True)
class Analysis:
    """What the first pass found. Offsets are inclusive, and -1 where nothing was sent."""

    batches: tuple[BatchHeader, ...]
    valid_bytes: int
    """How many bytes the batches have together; what is behind them is a cut batch, or was left out."""
    first_offset: int
    """-1 for messages of magic 0 and 1, whose first offset only their content tells."""
    last_offset: int
    last_offset_of_first_batch: int
    max_timestamp_ms: int
    source_codec: CompressionCodec
    last_leader_epoch: int
    """That of the last batch; -1 if it is not known."""
    left_out: int = 0
    """How many batches of a newer epoch than the replica's were left out."""


@dataclass(slots=True)
class Validated:
    """Batches that are ready to be written. `records` may be the bytes that were given, changed in place."""

    records: bytes | bytearray | memoryview
    batches: tuple[BatchHeader, ...]
    last_offset: int
    max_timestamp_ms: int
    offset_of_max_timestamp: int
    log_append_time_ms: int
    """The time that was stamped on the records, or -1 where the topic keeps the producer's."""
    rebuilt: bool = False
    """True where the records lie in a new batch: their size may differ from what was sent."""


def analyze(
    records: bytes | bytearray | memoryview,
    *,
    origin: AppendOrigin,
    max_message_bytes: int | None,
    from_leader_epoch: int | None = None,
) -> Analysis:
    """The batches at the head of `records`, each whole and with a right checksum.

    `max_message_bytes` is None for a follower, which takes what its leader took. `from_leader_epoch` is the epoch of a
    follower's Fetch: batches of a newer one were written after that leader lost its place, and are left out with all
    behind them. Raises CorruptRecord, InvalidRecord, RecordTooLarge, UnknownCodec, and for a follower
    OffsetsOutOfOrder.
    """
    headers: list[BatchHeader] = []
    valid_bytes, last_offset, max_timestamp_ms, left_out = 0, -1, NO_TIMESTAMP, 0
    source_codec = CompressionCodec.NONE
    try:
        for position, header in data_headers(records):
            if origin is AppendOrigin.CLIENT and header.base_offset and header.magic >= _MAGIC:
                raise InvalidRecord(f"a producer's batch has base offset {header.base_offset} instead of 0")
            if left_out or _is_newer(header, origin, from_leader_epoch):
                left_out += 1
                continue
            _check_batch(records, position, header, max_message_bytes)
            if origin is AppendOrigin.REPLICATION and header.last_offset <= last_offset:
                raise OffsetsOutOfOrder(
                    f"a batch that ends at offset {header.last_offset} follows one that ends at {last_offset}"
                )
            last_offset = header.last_offset
            if header.max_timestamp_ms > max_timestamp_ms:
                max_timestamp_ms = header.max_timestamp_ms
            if header.attributes & CODEC_BITS:
                source_codec = _codec_of(header)
            headers.append(header)
            valid_bytes += header.size_in_bytes
    except DecodeError as error:
        raise CorruptRecord(str(error)) from error
    first = headers[0] if headers else None
    return Analysis(
        tuple(headers),
        valid_bytes,
        -1 if first is None or first.magic < _MAGIC else first.base_offset,
        last_offset,
        -1 if first is None else first.last_offset,
        max_timestamp_ms,
        source_codec,
        headers[-1].partition_leader_epoch if headers else NO_EPOCH,
        left_out,
    )


def validate_and_assign(
    records: bytes | bytearray | memoryview,
    analysis: Analysis,
    *,
    first_offset: int,
    leader_epoch: int,
    now_ms: int,
    origin: AppendOrigin,
    rules: ValidationRules,
) -> Validated:
    """Check the one batch that `analyze` found, and give its records the offsets from `first_offset` on.

    A writable `records` is changed in place, also if an error is raised later by the caller; anything else is copied.
    Raises InvalidRecord and InvalidTimestamp (with the records at fault), RecordTooLarge, UnreadableRecords.
    """
    header = _only_batch(analysis)
    if origin is AppendOrigin.CLIENT:
        _check_produced(header)
    if header.record_count > _MOST_RECORDS:
        raise RecordTooLarge(
            f"a batch has {header.record_count} records; a broker takes {_MOST_RECORDS} at once"
        )
    source = CompressionCodec(header.attributes & CODEC_BITS)
    target = source if rules.codec is None or (header.is_control and not source) else rules.codec
    plain, start, end = _payload(records, header, rules)
    try:
        survey = survey_records(plain, start, end, header.record_count)
    except TooMuchData as error:
        raise RecordTooLarge(str(error)) from error
    except DecodeError as error:
        raise InvalidRecord(str(error)) from error
    if not _are_sound(header, survey, now_ms, rules):
        _refuse_records(plain, start, end, header, now_ms, rules)
    offset_of_max = first_offset
    if rules.log_append_time:
        max_timestamp_ms = now_ms
    elif header.is_log_append_time:
        max_timestamp_ms = max(header.max_timestamp_ms, NO_TIMESTAMP)
    else:
        max_timestamp_ms = max(header.base_timestamp_ms + survey.greatest_timestamp_delta, NO_TIMESTAMP)
        offset_of_max += survey.index_of_greatest
    attributes = header.attributes & _KEPT_ATTRIBUTES | TIMESTAMP_TYPE_BIT * rules.log_append_time
    batch: bytes | bytearray | memoryview
    is_in_place = target == source and (survey.is_sequential or not source)
    if is_in_place:
        batch, placed = _in_place(records, header, first_offset, leader_epoch, attributes, max_timestamp_ms)
    else:
        if header.record_count > _MOST_REBUILT_RECORDS or end - start > rules.max_rebuilt_bytes:
            raise RecordTooLarge(
                f"a batch of {header.record_count} records with {end - start} bytes would have to be built again; a "
                f"broker does that with {_MOST_REBUILT_RECORDS} records and {rules.max_rebuilt_bytes} bytes at most"
            )
        spans = record_spans(plain, start, end, header.record_count)
        fields = replace(
            header,
            base_offset=first_offset,
            partition_leader_epoch=leader_epoch,
            attributes=attributes & ~CODEC_BITS | target,
            max_timestamp_ms=max_timestamp_ms,
        )
        batch, placed = _rebuilt(plain, spans, header, fields, rules)
    return Validated(
        batch,
        (placed,),
        placed.last_offset,
        max_timestamp_ms,
        offset_of_max,
        now_ms if rules.log_append_time else -1,
        not is_in_place,
    )


def _is_newer(header: BatchHeader, origin: AppendOrigin, leader_epoch: int | None) -> bool:
    if origin is not AppendOrigin.REPLICATION or leader_epoch is None:
        return False
    return header.partition_leader_epoch != NO_EPOCH and header.partition_leader_epoch > leader_epoch


def _check_batch(
    records: bytes | bytearray | memoryview, position: int, header: BatchHeader, max_message_bytes: int | None
) -> None:
    size = header.size_in_bytes
    if max_message_bytes is not None and size > max_message_bytes:
        raise _too_large(size, max_message_bytes)
    computed = computed_crc(records, position, header)
    if computed != header.crc:
        raise CorruptRecord(
            f"the batch at offset {header.base_offset} has CRC {header.crc:#010x}, but its bytes give {computed:#010x}"
        )


def _codec_of(header: BatchHeader) -> CompressionCodec:
    try:
        return header.codec
    except DecodeError as error:
        raise UnknownCodec(str(error)) from None


def _only_batch(analysis: Analysis) -> BatchHeader:
    if len(analysis.batches) != 1:
        raise InvalidRecord(f"a record set has {len(analysis.batches)} batches where one is due")
    header = analysis.batches[0]
    if header.magic != _MAGIC:
        raise InvalidRecord(
            f"a batch has magic {header.magic}; since Kafka 4.0 only magic {_MAGIC} is written"
        )
    return header


def _check_produced(header: BatchHeader) -> None:
    """What a producer's batch must not be; a coordinator's may."""
    count = header.last_offset_delta + 1
    if count <= 0:
        raise InvalidRecord(f"a batch reaches from offset {header.base_offset} to {header.last_offset}")
    if header.record_count <= 0:
        raise InvalidRecord(f"a batch says that it has {header.record_count} records")
    if header.record_count != count:
        raise InvalidRecord(f"a batch of {count} offsets says that it has {header.record_count} records")
    if header.is_control:
        raise InvalidRecord("producers do not write control records")
    if header.has_producer_id and header.base_sequence < 0:
        raise InvalidRecord(f"producer {header.producer_id} sent sequence {header.base_sequence}")


def _payload(
    records: bytes | bytearray | memoryview, header: BatchHeader, rules: ValidationRules
) -> tuple[bytes, int, int]:
    """The records as bytes, and where they begin and end in them."""
    start, end = HEADER_BYTES, header.size_in_bytes
    if not header.attributes & CODEC_BITS and type(records) is bytes:
        return records, start, end
    try:
        plain = plain_records(records, 0, header, rules.max_plain_bytes)
    except TooMuchData as error:
        raise RecordTooLarge(str(error)) from error
    except BufferUnderflow as error:
        raise InvalidRecord(str(error)) from error
    except DecodeError as error:
        raise UnreadableRecords(str(error)) from error
    return plain, 0, len(plain)


def _are_sound(header: BatchHeader, survey: RecordSurvey, now_ms: int, rules: ValidationRules) -> bool:
    """True where no record can break a rule; False where each has to be asked."""
    if rules.compacted and not survey.has_every_key:
        return False
    if rules.log_append_time or header.is_log_append_time:
        return not header.is_log_append_time
    oldest = header.base_timestamp_ms + survey.least_timestamp_delta
    newest = header.base_timestamp_ms + survey.greatest_timestamp_delta
    return (
        now_ms - oldest <= rules.timestamp_before_max_ms and newest - now_ms <= rules.timestamp_after_max_ms
    )


def _refuse_records(
    plain: bytes, start: int, end: int, header: BatchHeader, now_ms: int, rules: ValidationRules
) -> None:
    """Raise InvalidRecord or InvalidTimestamp with the records that break a rule, if there is one. Only the first
    hundred are listed: a batch of a hundred bytes may have a hundred thousand."""
    oldest, newest = now_ms - rules.timestamp_before_max_ms, now_ms + rules.timestamp_after_max_ms
    base_ms, of_all = header.base_timestamp_ms, None
    bounds = (oldest - base_ms, newest - base_ms)
    exempt_delta: int | None = NO_TIMESTAMP - base_ms
    if rules.log_append_time or header.is_log_append_time:
        # The time is that of the whole batch.
        of_all = _timestamp_error(header, header.max_timestamp_ms, oldest, newest, rules)
        bounds = (-NO_BOUND_MS, NO_BOUND_MS) if of_all is None else (1, 0)
        exempt_delta = None if of_all is not None else exempt_delta
    count, found = outliers(
        plain,
        start,
        end,
        header.record_count,
        deltas=bounds,
        exempt_delta=exempt_delta,
        needs_key=rules.compacted,
    )
    if not count:
        return
    errors: list[tuple[int, LogError]] = []
    for index, delta, has_key in found:
        if rules.compacted and not has_key:
            errors.append((index, InvalidRecord("a record of a compacted topic needs a key")))
            continue
        error = of_all or _timestamp_error(header, base_ms + delta, oldest, newest, rules)
        assert error is not None, "an outlier breaks a rule"
        errors.append((index, error))
    listed = [(index, str(error)) for index, error in errors]
    first = "; ".join(f"record {index}: {text}" for index, text in listed[:_LISTED_ERRORS])
    message = f"{count} records are refused; {first}"
    if any(isinstance(error, InvalidTimestamp) for _, error in errors):
        raise InvalidTimestamp(message, listed)
    raise InvalidRecord(message, listed)


def _timestamp_error(
    header: BatchHeader, timestamp_ms: int, oldest: int, newest: int, rules: ValidationRules
) -> InvalidTimestamp | None:
    if rules.log_append_time or timestamp_ms == NO_TIMESTAMP:
        if header.is_log_append_time:
            return InvalidTimestamp("producers do not set the timestamp type LogAppendTime")
        return None
    if oldest <= timestamp_ms <= newest:
        return None
    return InvalidTimestamp(f"timestamp {timestamp_ms} is not within [{oldest}, {newest}]")


def _in_place(
    records: bytes | bytearray | memoryview,
    header: BatchHeader,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    max_timestamp_ms: int,
) -> tuple[bytearray | memoryview, BatchHeader]:
    """The batch with a changed header, in its own bytes where they can be written."""
    size, crc = header.size_in_bytes, header.crc
    if isinstance(records, bytes) or (isinstance(records, memoryview) and records.readonly):
        batch: bytearray | memoryview = bytearray(memoryview(records)[:size])
    else:
        batch = memoryview(records)[:size]
    place_batch(batch, 0, base_offset=base_offset, leader_epoch=leader_epoch)
    if (attributes ^ header.attributes) & TIMESTAMP_TYPE_BIT or max_timestamp_ms != header.max_timestamp_ms:
        crc = stamp_batch(batch, 0, header, attributes=attributes, max_timestamp_ms=max_timestamp_ms)
    else:
        attributes = header.attributes
    return batch, placed_header(
        header,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=attributes,
        max_timestamp_ms=max_timestamp_ms,
        crc=crc,
    )


def _rebuilt(
    plain: bytes, spans: list[RecordSpan], header: BatchHeader, fields: BatchHeader, rules: ValidationRules
) -> tuple[bytes, BatchHeader]:
    """The records in a new batch of these fields: numbered without gaps, in the fields' codec."""
    if header.is_log_append_time:
        # The producer's time is that of all its records.
        delta = header.max_timestamp_ms - header.base_timestamp_ms
        spans = [replace(span, timestamp_delta=delta) for span in spans]
    first_delta = spans[0].timestamp_delta if spans else 0
    fields = replace(
        fields,
        base_timestamp_ms=header.base_timestamp_ms + first_delta,
        last_offset_delta=max(len(spans) - 1, 0),
    )
    batch = seal_batch(renumbered(plain, spans, first_delta), fields, rules.level_of(fields.codec))
    if len(batch) > rules.max_message_bytes:
        raise _too_large(len(batch), rules.max_message_bytes)
    return batch, read_data_header(batch)


def _too_large(size: int, limit: int) -> RecordTooLarge:
    return RecordTooLarge(f"a batch has {size} bytes; max.message.bytes allows {limit}")
