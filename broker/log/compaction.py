"""What compaction keeps of a partition's log: of each key the newest record, and what producers and readers rely on.

A round has two passes. The first notes for each key of the dirty part where its newest record is. The second copies
batch after batch without the records that a newer one of their key follows. Offsets and order never change: a batch
keeps its base offset and its last one, whatever is missing between them.

Beyond the newest record of each key stay: tombstones and transaction markers until the delete horizon of their batch,
which the first round that meets them sets (KIP-534); a producer's last batch, without records if need be, as its
sequence and epoch are known from it; the last batch of the round, so that the log's end is known (KAFKA-17076). Records
of aborted transactions go at once, and their marker after the last batch of the transaction. Records without a key go.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import md5
from typing import Final

from kquorum.broker.log.producer_state import ProducerEntry
from kquorum.broker.log.transactions import AbortedEntry
from kquorum.wire.data_batch import BatchHeader, Record, read_data_records, write_data_batch
from kquorum.wire.primitives import Buffer
from kquorum.wire.record_batch import MAGIC
from kquorum.wire.transaction_markers import control_record_type

LOAD_FACTOR: Final = 0.9
_HASH_BYTES: Final = 16
SLOT_BYTES: Final = _HASH_BYTES + 8
_PROBES_IN_HASH: Final = _HASH_BYTES - 3
_FREE: Final = bytes(_HASH_BYTES)
_NO_OFFSET: Final = -1
_ABORT, _COMMIT = 0, 1


class OffsetMap:
    """The greatest offset of each key, by the key's MD5: 24 bytes a slot, whatever the keys' lengths.

    Two keys of one hash would count as one. That is Kafka's risk too: 128 bits make it a matter of 10^19 keys. The
    table grows with the keys; it counts as full when it has grown to `most_slots`.
    """

    def __init__(self, most_slots: int, *, slots: int = 1024) -> None:
        self.most_slots = most_slots
        self.latest_offset = _NO_OFFSET
        """All records up to here are in the map."""
        self._size = 0
        self._slots = max(1, min(slots, most_slots))
        self._table = bytearray(self._slots * SLOT_BYTES)

    def __len__(self) -> int:
        return self._size

    @property
    def is_full(self) -> bool:
        return self._size >= int(self.most_slots * LOAD_FACTOR)

    def put(self, key: bytes, offset: int) -> None:
        digest = _digest(key)
        position, is_new = self._position_of(digest)
        self._table[position : position + SLOT_BYTES] = digest + offset.to_bytes(8, "big")
        if is_new:
            self._size += 1
            # A search ends at a free slot, so there always is one.
            while self._size >= min(self._slots * LOAD_FACTOR, self._slots - 1):
                self._grow()

    def get(self, key: bytes) -> int:
        """-1 for a key that is not in the map."""
        position, is_new = self._position_of(_digest(key))
        if is_new:
            return _NO_OFFSET
        return int.from_bytes(self._table[position + _HASH_BYTES : position + SLOT_BYTES], "big")

    def _position_of(self, digest: bytes) -> tuple[int, bool]:
        """The slot that holds the hash, or the free one where it belongs. One is always free."""
        table, slots = self._table, self._slots
        attempt = 0
        while True:
            start = min(attempt, _PROBES_IN_HASH - 1)
            probe = int.from_bytes(digest[start : start + 4], "big") + max(0, attempt - _PROBES_IN_HASH + 1)
            position = probe % slots * SLOT_BYTES
            held = table[position : position + _HASH_BYTES]
            if held == digest:
                return position, False
            if held == _FREE:
                return position, True
            attempt += 1

    def _grow(self) -> None:
        old = self._table
        self._slots = 2 * self._slots
        self._table = bytearray(self._slots * SLOT_BYTES)
        for start in range(0, len(old), SLOT_BYTES):
            digest = bytes(old[start : start + _HASH_BYTES])
            if digest != _FREE:
                position, _ = self._position_of(digest)
                self._table[position : position + SLOT_BYTES] = old[start : start + SLOT_BYTES]


def _digest(key: bytes) -> bytes:
    return md5(key, usedforsecurity=False).digest()


class CleanedTransactions:
    """The transactions that the batches read so far belong to: which data are aborted, and which marker is the last
    that is left of its transaction. One object sees all batches of a pass, as transactions cross segments (KAFKA-8351).
    """

    def __init__(self, aborted: Iterable[AbortedEntry] = ()) -> None:
        self.kept: list[AbortedEntry] = []
        """What the index of the result gets: aborted transactions whose marker stays for their data."""
        self._coming: list[tuple[int, int, AbortedEntry]] = []
        self._known: set[tuple[int, int]] = set()
        self._aborted: dict[int, AbortedEntry] = {}
        self._with_data: set[int] = set()
        self._committed: set[int] = set()
        self.add_aborted(aborted)

    def add_aborted(self, entries: Iterable[AbortedEntry]) -> None:
        """Entries of the transaction indexes, each before the batches that it speaks of."""
        for entry in entries:
            name = (entry.first_offset, entry.producer_id)
            if name not in self._known:
                self._known.add(name)
                heapq.heappush(self._coming, (*name, entry))

    def on_data(self, header: BatchHeader) -> bool:
        """Whether the batch is of an aborted transaction."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._with_data.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def on_marker(self, header: BatchHeader, records: Sequence[Record]) -> bool:
        """Whether no batch is left of the transaction that the marker ends. Raises DecodeError."""
        self._begin_up_to(header.last_offset)
        if not records:
            return True
        producer_id = header.producer_id
        kind = control_record_type(records[0].key)
        if kind == _COMMIT:
            has_data = producer_id in self._committed
            self._committed.discard(producer_id)
            return not has_data
        if kind != _ABORT:
            return False
        entry = self._aborted.pop(producer_id, None)
        has_data = producer_id in self._with_data
        self._with_data.discard(producer_id)
        if entry is None or not has_data:
            return True
        self.kept.append(entry)
        return False

    def take_kept(self) -> list[AbortedEntry]:
        kept, self.kept = self.kept, []
        return kept

    def _begin_up_to(self, offset: int) -> None:
        while self._coming and self._coming[0][0] <= offset:
            entry = heapq.heappop(self._coming)[2]
            self._aborted.setdefault(entry.producer_id, entry)


class KeyPass:
    """The first pass: the keys of the dirty part, from `first_dirty_offset` on."""

    def __init__(self, offsets: OffsetMap, first_dirty_offset: int, aborted: Iterable[AbortedEntry]) -> None:
        self._offsets = offsets
        self._first_dirty_offset = first_dirty_offset
        self._transactions = CleanedTransactions(aborted)

    def add(self, header: BatchHeader, batch: Buffer) -> bool:
        """False where the map is full: the round then ends before this batch. The first batch goes in whatever its
        size, or a round would come to nothing. Raises DecodeError."""
        offsets, least = self._offsets, self._first_dirty_offset
        if header.is_control:
            self._transactions.on_marker(header, read_data_records(batch, 0, header))
        elif not self._transactions.on_data(header):
            for record in read_data_records(batch, 0, header):
                if record.key is not None and record.offset >= least:
                    if offsets.is_full and offsets.latest_offset >= 0:
                        return False
                    offsets.put(record.key, record.offset)
        if header.last_offset >= least:
            offsets.latest_offset = max(offsets.latest_offset, header.last_offset)
        return True

    def end_segment(self, next_base_offset: int) -> None:
        """The segment is read to its end. Offsets that compaction took from there are no reason to come back
        (KAFKA-8764)."""
        self._offsets.latest_offset = max(self._offsets.latest_offset, next_base_offset - 1)


@dataclass(frozen=True, slots=True)
class LastRecord:
    """What must stay of a producer: its last batch of data, or where none is known, a marker of its epoch."""

    data_offset: int | None
    epoch: int


def last_records(producers: Mapping[int, ProducerEntry]) -> dict[int, LastRecord]:
    return {
        producer_id: LastRecord(entry.batches[-1].last_offset if entry.batches else None, entry.epoch)
        for producer_id, entry in producers.items()
    }


@dataclass(slots=True, kw_only=True)
class CopyPass:
    """The second pass: what stays of each batch.

    `end_offset` is the first offset that the round may not clean. `now_ms` is one moment for the whole round.
    """

    offsets: OffsetMap
    last_records: Mapping[int, LastRecord]
    end_offset: int
    now_ms: int
    delete_retention_ms: int
    transactions: CleanedTransactions = field(default_factory=CleanedTransactions)
    keeps_legacy_tombstones: bool = True
    """Messages of magic 0 and 1 have no delete horizon: the age of their segment decides."""
    without_key: int = 0
    """Records that were dropped as they have no key."""

    def kept(self, header: BatchHeader, batch: Buffer) -> Buffer | None:
        """The batch, what is left of it, or None. Raises DecodeError."""
        records, is_over = self._records(header, batch)
        horizon_ms = header.delete_horizon_ms
        if header.is_control:
            is_gone = is_over and horizon_ms is not None and horizon_ms <= self.now_ms
            kept = () if is_gone else records
            is_horizon_due = is_over and horizon_ms is None
        else:
            kept = records if is_over else [each for each in records if self._stays(each, header)]
            is_horizon_due = horizon_ms is None and any(each.value is None for each in kept)
        if not kept:
            return self._emptied(header) if self._is_needed(header) else None
        if len(kept) == header.record_count and not is_horizon_due and header.magic == MAGIC:
            return batch
        if is_horizon_due:
            horizon_ms = self.now_ms + self.delete_retention_ms
        return _rebuilt(header, kept, horizon_ms)

    def _records(self, header: BatchHeader, batch: Buffer) -> tuple[Sequence[Record], bool]:
        """The records, none of them where they are of an aborted transaction; and whether the batch is one, or a marker
        that has no data left."""
        if header.is_control:
            records: Sequence[Record] = read_data_records(batch, 0, header)
            return records, self.transactions.on_marker(header, records)
        if self.transactions.on_data(header):
            return (), True
        return read_data_records(batch, 0, header), False

    def _stays(self, record: Record, header: BatchHeader) -> bool:
        if record.offset > self.offsets.latest_offset:
            return True
        if record.key is None:
            self.without_key += 1
            return False
        if record.offset < self.offsets.get(record.key):
            return False
        if record.value is not None:
            return True
        if header.magic < MAGIC:
            return self.keeps_legacy_tombstones
        horizon_ms = header.delete_horizon_ms
        return horizon_ms is None or self.now_ms < horizon_ms

    def _is_needed(self, header: BatchHeader) -> bool:
        """Whether the batch stays although none of its records does."""
        if header.next_offset == self.end_offset:
            return True
        last = self.last_records.get(header.producer_id) if header.has_producer_id else None
        if last is None:
            return False
        if last.data_offset is not None:
            return header.last_offset == last.data_offset
        return header.is_control and header.producer_epoch == last.epoch

    def _emptied(self, header: BatchHeader) -> bytes:
        return write_data_batch(
            (),
            base_offset=header.base_offset,
            last_offset=header.last_offset,
            leader_epoch=header.partition_leader_epoch,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            transactional=header.is_transactional,
            control=header.is_control,
            max_timestamp_ms=header.max_timestamp_ms,
            log_append_time_ms=header.max_timestamp_ms if header.is_log_append_time else None,
        )


def _rebuilt(header: BatchHeader, kept: Sequence[Record], horizon_ms: int | None) -> bytes:
    """The batch with these records only. Messages of the formats before 2 become a batch of magic 2."""
    is_current = header.magic == MAGIC
    return write_data_batch(
        kept,
        codec=header.codec,
        base_offset=header.base_offset if is_current else kept[0].offset,
        last_offset=header.last_offset if is_current else kept[-1].offset,
        leader_epoch=header.partition_leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        control=header.is_control,
        delete_horizon_ms=horizon_ms,
        log_append_time_ms=header.max_timestamp_ms if header.is_log_append_time else None,
    )
