"""Batches in the logs of partitions, in all formats that such logs hold: read, written, and placed in a log.

The metadata log needs nothing of this: keys, headers, producers, transactions, offsets that compaction left out,
batches larger than a KRaft node's, and messages of the formats before 2 (`wire.legacy_messages`).
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Final

from crc32c import crc32c

from kquorum.wire.compression import CompressionCodec, compress, decompress
from kquorum.wire.drafts import draft_of
from kquorum.wire.errors import BufferUnderflow, CorruptBatch, DecodeError
from kquorum.wire.legacy_messages import LEAST_MESSAGE_BYTES, read_legacy_header, read_legacy_records
from kquorum.wire.primitives import Buffer, write_varint, write_varlong
from kquorum.wire.record_batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC, BatchHeader
from kquorum.wire.record_parsing import Record, parse_records
from kquorum.wire.record_survey import first_at_or_after
from kquorum.wire.transaction_markers import TransactionMarker, encode_transaction_marker

MAX_PLAIN_BYTES: Final = 64 * 1024 * 1024
"""What a reader decompresses of one batch at most, if not told otherwise."""
NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_TIMESTAMP: Final = -1

TIMESTAMP_TYPE_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40
CODEC_BITS: Final = 0x07

_MAX_HEADERS: Final = 500_000
_MAGIC_AT: Final = 16
_CRC_AT: Final = 17
_CHECKED_AT: Final = 21
_LEGACY_CRC_AT: Final = 12
_MAX_TIMESTAMP_AT: Final = 35

_unpack_header: Final = struct.Struct(">qiibIhiqqqhii").unpack_from
_unpack_size: Final = struct.Struct(">i").unpack_from
_UNCHECKED: Final = struct.Struct(">qiibI")
_CHECKED: Final = struct.Struct(">hiqqqhii")
_OFFSET: Final = struct.Struct(">q")
_EPOCH: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_ATTRIBUTES: Final = struct.Struct(">h")
_Draft: Final = draft_of(BatchHeader)


def read_data_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Read the header at `position`; the checksum and the presence of the records are not checked.

    A message of magic 0 or 1 is answered as a batch of its own whose base offset is the message's: for a compressed one
    that is the offset of its last record, and the count is -1. Raises BufferUnderflow where the header is cut short,
    CorruptBatch where magic or length cannot be right.
    """
    left = len(buffer) - position
    if left <= _MAGIC_AT:
        raise BufferUnderflow(f"a batch header has more than {_MAGIC_AT} bytes, {left} are left", position)
    (length,) = _unpack_size(buffer, position + 8)
    if length < LEAST_MESSAGE_BYTES:
        raise CorruptBatch(f"batch length {length} is less than {LEAST_MESSAGE_BYTES}", position)
    magic = buffer[position + _MAGIC_AT]
    if magic < MAGIC:
        return read_legacy_header(buffer, position)
    if magic != MAGIC:
        raise CorruptBatch(f"batch has magic {magic}; 0, 1 and 2 exist", position)
    if length < HEADER_BYTES - LOG_OVERHEAD_BYTES:
        raise CorruptBatch(f"batch length {length} is less than that of a header", position)
    header = _Draft()
    try:
        (
            header.base_offset,
            header.batch_length,
            header.partition_leader_epoch,
            header.magic,
            header.crc,
            header.attributes,
            header.last_offset_delta,
            header.base_timestamp_ms,
            header.max_timestamp_ms,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.record_count,
        ) = _unpack_header(buffer, position)
    except struct.error:
        raise BufferUnderflow(f"a batch header has {HEADER_BYTES} bytes, {left} are left", position) from None
    header.__class__ = BatchHeader
    read: BatchHeader = header
    return read


def data_headers(buffer: Buffer, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each whole batch from `position` on; a cut batch at the end is left out.

    Raises CorruptBatch at a header that cannot be right. Checksums are not looked at.
    """
    size = len(buffer)
    while position < size:
        try:
            header = read_data_header(buffer, position)
        except BufferUnderflow:
            return
        end = position + LOG_OVERHEAD_BYTES + header.batch_length
        if end > size:
            return
        yield position, header
        position = end


def computed_crc(buffer: Buffer, position: int, header: BatchHeader) -> int:
    """The checksum that the bytes of the whole batch at `position` give."""
    end = position + LOG_OVERHEAD_BYTES + header.batch_length
    with memoryview(buffer) as view:
        if header.magic == MAGIC:
            return crc32c(view[position + _CHECKED_AT : end])
        return zlib.crc32(view[position + _MAGIC_AT : end])


def check_data_batch(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Read the header, and check that the batch is whole and its checksum right.

    Raises BufferUnderflow if it is cut short, else CorruptBatch.
    """
    header = read_data_header(buffer, position)
    missing = position + header.size_in_bytes - len(buffer)
    if missing > 0:
        raise BufferUnderflow(f"the last {missing} of {header.size_in_bytes} bytes are missing", position)
    computed = computed_crc(buffer, position, header)
    if computed != header.crc:
        raise CorruptBatch(f"batch has CRC {header.crc:#010x}, but its bytes give {computed:#010x}", position)
    return header


def read_data_records(
    buffer: Buffer, position: int, header: BatchHeader, max_plain_bytes: int = MAX_PLAIN_BYTES
) -> tuple[Record, ...]:
    """The records of the whole batch at `position`, with absolute offsets and the timestamps that readers see.

    Raises DecodeError if they are malformed, fewer or more than the header says, or unfold to more than
    `max_plain_bytes`.
    """
    if header.magic != MAGIC:
        return read_legacy_records(buffer, position, header, max_plain_bytes)
    return parse_records(
        plain_records(buffer, position, header, max_plain_bytes),
        header.record_count,
        header.base_offset,
        header.base_timestamp_ms,
        header.max_timestamp_ms if header.is_log_append_time else None,
        most_headers=_MAX_HEADERS,
    )


def first_record_since(
    buffer: Buffer, position: int, header: BatchHeader, timestamp_ms: int, least_offset: int
) -> tuple[int, int] | None:
    """Timestamp and offset of the first record of the whole batch at `position` that is not older than `timestamp_ms`
    and not below `least_offset`; None without one. Makes no value of each record, unlike `read_data_records`: that
    takes 150 ms for 131,072 records. Raises DecodeError."""
    if header.magic != MAGIC:
        found = (
            (record.timestamp_ms, record.offset)
            for record in read_data_records(buffer, position, header)
            if record.timestamp_ms >= timestamp_ms and record.offset >= least_offset
        )
        return next(found, None)
    plain = plain_records(buffer, position, header)
    base_ms = header.base_timestamp_ms
    if header.is_log_append_time and header.max_timestamp_ms < timestamp_ms:
        return None
    first = first_at_or_after(
        plain,
        0,
        len(plain),
        header.record_count,
        least_delta=-(2**63) if header.is_log_append_time else timestamp_ms - base_ms,
        least_offset_delta=least_offset - header.base_offset,
    )
    if first is None:
        return None
    delta, offset_delta = first
    time_ms = header.max_timestamp_ms if header.is_log_append_time else base_ms + delta
    return time_ms, header.base_offset + offset_delta


def plain_records(
    buffer: Buffer, position: int, header: BatchHeader, max_plain_bytes: int = MAX_PLAIN_BYTES
) -> bytes:
    """What follows the header of a batch of magic 2, decompressed. Raises DecodeError."""
    data = buffer[position + HEADER_BYTES : position + LOG_OVERHEAD_BYTES + header.batch_length]
    plain = data if type(data) is bytes else bytes(data)
    if header.attributes & CODEC_BITS:
        return decompress(header.codec, plain, max_plain_bytes)
    return plain


def write_data_batch(
    records: Sequence[Record],
    *,
    codec: CompressionCodec = CompressionCodec.NONE,
    level: int | None = None,
    base_offset: int | None = None,
    last_offset: int | None = None,
    leader_epoch: int = NO_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    log_append_time_ms: int | None = None,
    delete_horizon_ms: int | None = None,
    max_timestamp_ms: int | None = None,
) -> bytes:
    """One batch of magic 2 of `records`, whose offsets and timestamps are absolute.

    `base_offset` and `last_offset` are those of the records unless compaction removed some. Without records the batch
    is a header alone (it keeps a producer's sequence, or the end of a compacted log), which needs both and
    `max_timestamp_ms`. `log_append_time_ms` stamps the broker's time on all. Raises ValueError for producer fields that
    contradict each other and for offsets that do not fit.
    """
    _check_producer(producer_id, producer_epoch, transactional=transactional, control=control)
    if base_offset is None or last_offset is None:
        if not records:
            raise ValueError("a batch without records needs a base offset and a last offset")
        base_offset = records[0].offset if base_offset is None else base_offset
        last_offset = records[-1].offset if last_offset is None else last_offset
    if not 0 <= last_offset - base_offset <= 0x7FFF_FFFF:
        raise ValueError(f"a batch cannot reach from offset {base_offset} to {last_offset}")
    attributes = TRANSACTIONAL_BIT * transactional | CONTROL_BIT * control
    base_timestamp_ms = NO_TIMESTAMP
    if records:
        attributes |= codec
        base_timestamp_ms = records[0].timestamp_ms
        if max_timestamp_ms is None:
            max_timestamp_ms = max(record.timestamp_ms for record in records)
    if delete_horizon_ms is not None and records:
        attributes |= DELETE_HORIZON_BIT
        base_timestamp_ms = delete_horizon_ms
    if log_append_time_ms is not None:
        attributes |= TIMESTAMP_TYPE_BIT
        max_timestamp_ms = log_append_time_ms
    body = bytearray()
    for record in records:
        append_record(body, record, base_offset, base_timestamp_ms)
    return seal_batch(
        bytes(body),
        BatchHeader(
            base_offset=base_offset,
            batch_length=0,
            partition_leader_epoch=leader_epoch,
            magic=MAGIC,
            crc=0,
            attributes=attributes,
            last_offset_delta=last_offset - base_offset,
            base_timestamp_ms=base_timestamp_ms,
            max_timestamp_ms=NO_TIMESTAMP if max_timestamp_ms is None else max_timestamp_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=len(records),
        ),
        level,
    )


def seal_batch(body: bytes, header: BatchHeader, level: int | None = None) -> bytes:
    """A batch of the fields of `header` around `body`, which is compressed with the header's codec; length and checksum
    are made right."""
    payload = compress(header.codec, body, level) if header.attributes & CODEC_BITS else body
    checked = _CHECKED.pack(
        header.attributes,
        header.last_offset_delta,
        header.base_timestamp_ms,
        header.max_timestamp_ms,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
    )
    crc = crc32c(payload, crc32c(checked))
    length = HEADER_BYTES - LOG_OVERHEAD_BYTES + len(payload)
    epoch = header.partition_leader_epoch
    return _UNCHECKED.pack(header.base_offset, length, epoch, MAGIC, crc) + checked + payload


def write_transaction_marker(
    marker: TransactionMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp_ms: int,
    offset: int = 0,
    leader_epoch: int = NO_EPOCH,
) -> bytes:
    """The control batch that ends a transaction (KIP-98): one record, never compressed, without a sequence.

    Raises ValueError for a negative producer id or epoch: a marker ends the transaction of a producer.
    """
    key, value = encode_transaction_marker(marker)
    return write_data_batch(
        [Record(offset, timestamp_ms, key, value)],
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def append_record(out: bytearray, record: Record, base_offset: int, base_timestamp_ms: int) -> None:
    """Append `record` to `out` as it stands inside a batch."""
    body = bytearray(1)
    write_varlong(body, record.timestamp_ms - base_timestamp_ms)
    write_varint(body, record.offset - base_offset)
    for part in (record.key, record.value):
        _append_part(body, part)
    write_varint(body, len(record.headers))
    for name, value in record.headers:
        _append_part(body, name.encode())
        _append_part(body, value)
    write_varint(out, len(body))
    out += body


def _append_part(out: bytearray, part: bytes | None) -> None:
    if part is None:
        out.append(1)
        return
    write_varint(out, len(part))
    out += part


def placed_header(
    header: BatchHeader,
    *,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    max_timestamp_ms: int,
    crc: int,
) -> BatchHeader:
    """The header with what a leader writes into it."""
    placed = _Draft()
    placed.base_offset = base_offset
    placed.batch_length = header.batch_length
    placed.partition_leader_epoch = leader_epoch
    placed.magic = header.magic
    placed.crc = crc
    placed.attributes = attributes
    placed.last_offset_delta = header.last_offset_delta
    placed.base_timestamp_ms = header.base_timestamp_ms
    placed.max_timestamp_ms = max_timestamp_ms
    placed.producer_id = header.producer_id
    placed.producer_epoch = header.producer_epoch
    placed.base_sequence = header.base_sequence
    placed.record_count = header.record_count
    placed.__class__ = BatchHeader
    read: BatchHeader = placed
    return read


def place_batch(batch: bytearray | memoryview, position: int, *, base_offset: int, leader_epoch: int) -> None:
    """Write base offset and leader epoch into the header at `position`; the checksum covers neither."""
    _OFFSET.pack_into(batch, position, base_offset)
    _EPOCH.pack_into(batch, position + LOG_OVERHEAD_BYTES, leader_epoch)


def stamp_batch(
    batch: bytearray | memoryview,
    position: int,
    header: BatchHeader,
    *,
    attributes: int,
    max_timestamp_ms: int,
) -> int:
    """Write attributes and maximum timestamp into the header at `position`; answers the new checksum."""
    _ATTRIBUTES.pack_into(batch, position + _CHECKED_AT, attributes)
    _OFFSET.pack_into(batch, position + _MAX_TIMESTAMP_AT, max_timestamp_ms)
    crc = computed_crc(batch, position, header)
    _CRC.pack_into(batch, position + _CRC_AT, crc)
    return crc


def _check_producer(producer_id: int, producer_epoch: int, *, transactional: bool, control: bool) -> None:
    if transactional and producer_id < 0:
        raise ValueError("a transactional batch needs a producer id")
    if producer_id >= 0 and producer_epoch < 0:
        raise ValueError(f"producer {producer_id} has epoch {producer_epoch}")
    if control and not transactional and producer_id >= 0:
        raise ValueError("a control batch of a producer ends a transaction: it is transactional")


__all__ = [
    "CODEC_BITS",
    "CONTROL_BIT",
    "DELETE_HORIZON_BIT",
    "MAX_PLAIN_BYTES",
    "NO_EPOCH",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "TIMESTAMP_TYPE_BIT",
    "TRANSACTIONAL_BIT",
    "BatchHeader",
    "CompressionCodec",
    "CorruptBatch",
    "DecodeError",
    "Record",
    "append_record",
    "check_data_batch",
    "computed_crc",
    "data_headers",
    "place_batch",
    "placed_header",
    "first_record_since",
    "plain_records",
    "read_data_header",
    "read_data_records",
    "seal_batch",
    "stamp_batch",
    "write_data_batch",
    "write_transaction_marker",
]
