"""Logs on a disk for tests: batches of producers, and a log directory to open logs in."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from kquorum.broker.adapters.log.disk_log import DiskLog
from kquorum.broker.adapters.log.log_dir import LogDir
from kquorum.broker.log.log_config import LogConfig
from kquorum.broker.log.partition_log import Isolation, LogSlice, PartitionLog, TimestampedOffset
from kquorum.storage.file_system import POSIX, FileSystem
from kquorum.wire.data_batch import (
    Record,
    data_headers,
    read_data_records,
    write_data_batch,
    write_transaction_marker,
)
from kquorum.wire.transaction_markers import TransactionMarker

NOW_MS = 1_700_000_000_000
DIRECTORY_ID = UUID(int=0xD1)
TOPIC_ID = UUID(int=0x70)


def data(
    *values: str | bytes | None, key: bytes | None = None, timestamp_ms: int = NOW_MS, **fields: Any
) -> bytes:
    """A producer's batch with these values; record `i` is `i` ms younger than the first."""
    records = [
        Record(index, timestamp_ms + index, key, value.encode() if isinstance(value, str) else value)
        for index, value in enumerate(values)
    ]
    return write_data_batch(records, **fields)


def of_leader(
    first_offset: int, *values: str | bytes | None, epoch: int = 0, timestamp_ms: int = NOW_MS, **fields: Any
) -> bytes:
    """A batch as a leader sends it to its followers."""
    records = [
        Record(
            first_offset + index,
            timestamp_ms + index,
            None,
            value.encode() if isinstance(value, str) else value,
        )
        for index, value in enumerate(values)
    ]
    return write_data_batch(records, leader_epoch=epoch, **fields)


def marker(*, commit: bool, producer_id: int, producer_epoch: int = 0, timestamp_ms: int = NOW_MS) -> bytes:
    return write_transaction_marker(
        TransactionMarker(commit, 0),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        timestamp_ms=timestamp_ms,
    )


def log_dir_at(path: Path, fs: FileSystem = POSIX) -> LogDir:
    fs.make_folder(path)
    return LogDir(path, DIRECTORY_ID, fs, now_ms=NOW_MS)


def open_log(
    log_dir: LogDir, config: LogConfig | None = None, *, name: tuple[str, int] = ("topic", 0), **given: Any
) -> DiskLog:
    topic, partition = name
    given.setdefault("now_ms", NOW_MS)
    return DiskLog.open(
        log_dir, log_dir.path / f"{topic}-{partition}", topic, partition, config or LogConfig(), **given
    )


def bytes_of(found: LogSlice) -> bytes:
    return b"".join(bytes(piece) for piece in found.pieces)


def records_in(content: bytes, *, from_offset: int = 0) -> list[Record]:
    return [
        record
        for position, header in data_headers(content)
        for record in read_data_records(content, position, header)
        if record.offset >= from_offset
    ]


def all_bytes(log: DiskLog, isolation: Isolation = Isolation.LOG_END) -> bytes:
    """The log from its start to its end, read piece by piece."""
    parts: list[bytes] = []
    offset = log.log_start_offset
    while True:
        found = bytes_of(log.read(offset, max_bytes=1 << 20, isolation=isolation, at_least_one_batch=True))
        if not found:
            return b"".join(parts)
        parts.append(found)
        offset = [header.next_offset for _, header in data_headers(found)][-1]


def values_in(log: DiskLog, isolation: Isolation = Isolation.LOG_END) -> list[str]:
    found = records_in(all_bytes(log, isolation), from_offset=log.log_start_offset)
    return [(record.value or b"").decode() for record in found]


def offset_for_time(log: PartitionLog, timestamp_ms: int) -> TimestampedOffset:
    """Searched to the end, however many parts that takes."""
    found: TimestampedOffset | int = 0
    while isinstance(found, int):
        found = log.search_time(timestamp_ms, found)
    return found


def offsets_in(content: Sequence[Record]) -> list[int]:
    return [record.offset for record in content]
