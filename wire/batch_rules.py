"""What KRaft asks of a batch and its records beyond Kafka's general format: the checks of Kafka's own replay.

Rules: RecordsIterator of Apache Kafka's raft module, and what its leaders write (KIP-595).
"""

from collections.abc import Sequence

from kquorum.wire.record_batch import BatchHeader, Record

_LOG_APPEND_TIME = 0x08


def header_fault(header: BatchHeader) -> str | None:
    """What is wrong with the numbers of a batch whose checksum is right; None when nothing is."""
    if header.base_offset < 0:
        return f"base offset {header.base_offset} is negative"
    if header.partition_leader_epoch < 0:
        return f"leader epoch {header.partition_leader_epoch} is negative"
    if header.record_count < 1:
        return f"the batch holds {header.record_count} records"
    if header.last_offset_delta != header.record_count - 1:
        return f"{header.record_count} records, but last offset delta {header.last_offset_delta}"
    return None


def record_fault(header: BatchHeader, records: Sequence[Record]) -> str | None:
    """The first rule that a record breaks; None when all keep all. Of control records only key and value are asked."""
    timestamp_ms = (
        header.max_timestamp_ms if header.attributes & _LOG_APPEND_TIME else header.base_timestamp_ms
    )
    is_control = header.is_control
    for offset, record in enumerate(records, header.base_offset):
        if (
            record.offset != offset
            or record.timestamp_ms != timestamp_ms
            or record.headers
            or not record.value
            or (record.key is None) == is_control
        ):
            return _fault_of(record, offset, timestamp_ms, is_control=is_control)
    return None


def _fault_of(record: Record, offset: int, timestamp_ms: int, *, is_control: bool) -> str:
    if record.offset != offset:
        return f"a record has offset {record.offset} where {offset} is due"
    if record.timestamp_ms != timestamp_ms:
        return f"record {offset} has timestamp {record.timestamp_ms}, its batch {timestamp_ms}"
    if record.headers:
        return f"record {offset} has headers"
    if not record.value:
        return f"record {offset} has no value"
    return f"control record {offset} has no key" if is_control else f"data record {offset} has a key"
