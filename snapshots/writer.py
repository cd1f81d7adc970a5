"""Record values to the bytes of a snapshot: header batch, data batches, footer batch.

Offsets count the records of the file from 0, and every batch carries the epoch of the snapshot's id.
"""

from collections.abc import Iterable, Iterator, Sequence

from kquorum.snapshots.naming import SnapshotId
from kquorum.wire.control_records import (
    ControlRecord,
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    encode_control_record,
)
from kquorum.wire.record_batch import CompressionCodec, write_batch

# Kafka's batches have up to 8 MiB. But a snapshot is written beside a node at work, and of smaller batches each costs a
# few milliseconds only; larger ones gain nothing, as lz4 compresses in blocks of 64 KiB anyway.
BATCH_BYTES = 256 * 1024
# Smaller batches gain nothing worth the work.
MIN_COMPRESSED_BYTES = 1024

_BATCH_OVERHEAD_BYTES = 61
_RECORD_OVERHEAD_BYTES_MAX = 21


class SnapshotWriter:
    """`timestamp_ms` is the time of writing, `last_contained_log_timestamp_ms` that of the last batch in the log."""

    def __init__(
        self,
        snapshot_id: SnapshotId,
        *,
        timestamp_ms: int,
        last_contained_log_timestamp_ms: int,
        voters: VotersRecord | None = None,
        kraft_version: int = 0,
        codec: CompressionCodec = CompressionCodec.NONE,
        max_batch_bytes: int = BATCH_BYTES,
    ) -> None:
        assert voters is None or kraft_version > 0, "a voter set belongs to kraft.version 1"
        self._epoch = snapshot_id.epoch
        self._timestamp_ms = timestamp_ms
        self._header = SnapshotHeaderRecord(last_contained_log_timestamp=last_contained_log_timestamp_ms)
        self._voters = voters
        self._kraft_version = kraft_version
        self._codec = codec
        self._max_batch_bytes = max_batch_bytes
        self._next_offset = 0

    def write(self, values: Iterable[bytes]) -> Iterator[bytes]:
        """The file, batch by batch."""
        assert self._next_offset == 0, "a writer writes one snapshot"
        yield self._control_batch(self._header_records())
        for chunk in self._chunks(values):
            yield self._data_batch(chunk)
        yield self._control_batch([SnapshotFooterRecord()])

    def _header_records(self) -> list[ControlRecord]:
        records: list[ControlRecord] = [self._header]
        if self._kraft_version > 0:
            records.append(KRaftVersionRecord(k_raft_version=self._kraft_version))
        if self._voters is not None:
            records.append(self._voters)
        return records

    def _chunks(self, values: Iterable[bytes]) -> Iterator[list[bytes]]:
        """As many values at a time as surely fit a batch; a single larger one has a batch of its own."""
        chunk: list[bytes] = []
        size = _BATCH_OVERHEAD_BYTES
        for value in values:
            added = len(value) + _RECORD_OVERHEAD_BYTES_MAX
            if chunk and size + added > self._max_batch_bytes:
                yield chunk
                chunk, size = [], _BATCH_OVERHEAD_BYTES
            chunk.append(value)
            size += added
        if chunk:
            yield chunk

    def _data_batch(self, values: Sequence[bytes]) -> bytes:
        is_worth_it = sum(map(len, values)) >= MIN_COMPRESSED_BYTES
        codec = self._codec if is_worth_it else CompressionCodec.NONE
        return self._batch([(None, value) for value in values], codec=codec)

    def _control_batch(self, records: Sequence[ControlRecord]) -> bytes:
        return self._batch([encode_control_record(record) for record in records], control=True)

    def _batch(
        self,
        records: Sequence[tuple[bytes | None, bytes | None]],
        *,
        control: bool = False,
        codec: CompressionCodec = CompressionCodec.NONE,
    ) -> bytes:
        batch = write_batch(
            base_offset=self._next_offset,
            leader_epoch=self._epoch,
            timestamp_ms=self._timestamp_ms,
            records=records,
            control=control,
            codec=codec,
        )
        self._next_offset += len(records)
        return batch
