"""What a partition's log remembers of its producers: the last batches of each, its epochs, and its open transaction.

It answers whether a batch of an idempotent producer is new, a repeat, or out of order (KIP-98, KIP-360), and what a
transaction marker ends. The state follows the log: it is rebuilt from the last snapshot file and the batches behind it.

A snapshot file: version int16 (1), CRC-32C uint32 of all behind it, int32 count, then 46 bytes a producer: producer id
int64, epoch int16, last sequence int32, last offset int64, offset delta int32, timestamp int64, coordinator epoch
int32, first offset of the open transaction int64 (-1 without one). Of each producer only the last batch is in it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from crc32c import crc32c

from kquorum.broker.log.errors import (
    CorruptRecord,
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from kquorum.broker.log.partition_log import ActiveProducer, AppendOrigin, VerificationGuard
from kquorum.broker.log.transactions import AbortedEntry, CompletedTransaction, OpenTransactions
from kquorum.wire.data_batch import BatchHeader, read_data_records
from kquorum.wire.errors import DecodeError
from kquorum.wire.primitives import Buffer
from kquorum.wire.transaction_markers import TransactionMarker, decode_transaction_marker

KEPT_BATCHES: Final = 5
"""A Java producer has so many unanswered requests at most, so that any of them can be recognised as a repeat."""
MOST_PRODUCERS: Final = 20_000
"""Of one log: some 500 bytes each. A client names its producer id itself, so that without a bound anyone who may write
fills the memory. Kafka has none."""
_LOOKED_THROUGH: Final = 100
DEFAULT_EXPIRATION_MS: Final = 86_400_000
DEFAULT_TRANSACTION_TIMEOUT_MS: Final = 900_000
LATE_TRANSACTION_BUFFER_MS: Final = 5 * 60 * 1000

_NONE: Final = -1
_LAST_SEQUENCE: Final = 0x7FFF_FFFF
_VERSION: Final = 1
_HEAD: Final = struct.Struct(">hIi")
_CHECKED_AT: Final = 6
_ENTRY: Final = struct.Struct(">qhiqiqiq")


class ProducerEpoch(NamedTuple):
    """A producer, as a request names it."""

    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class KeptBatch:
    """A batch that a producer appended."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & _LAST_SEQUENCE

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


@dataclass(frozen=True, slots=True)
class ProducerEntry:
    """What is known of a producer; -1 stands for an epoch, a timestamp or an open transaction that is not."""

    producer_id: int
    epoch: int = _NONE
    coordinator_epoch: int = _NONE
    last_timestamp_ms: int = _NONE
    transaction_first_offset: int = _NONE
    batches: tuple[KeptBatch, ...] = ()

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else _NONE

    @property
    def has_transaction(self) -> bool:
        return self.transaction_first_offset >= 0

    def with_batch(self, header: BatchHeader) -> ProducerEntry:
        """The entry after a batch of data. A new epoch forgets the batches of the last one."""
        batch = KeptBatch(
            header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp_ms
        )
        known = self.batches if header.producer_epoch == self.epoch else ()
        first_offset = self.transaction_first_offset
        if header.is_transactional and first_offset < 0:
            first_offset = header.base_offset
        return ProducerEntry(
            self.producer_id,
            header.producer_epoch,
            self.coordinator_epoch,
            header.max_timestamp_ms,
            first_offset,
            (*known[1 - KEPT_BATCHES :], batch),
        )

    def with_marker(self, epoch: int, coordinator_epoch: int, timestamp_ms: int) -> ProducerEntry:
        """The entry after the end of a transaction."""
        batches = self.batches if epoch == self.epoch else ()
        return ProducerEntry(self.producer_id, epoch, coordinator_epoch, timestamp_ms, _NONE, batches)


@dataclass(slots=True)
class _Verification:
    """A producer whose transaction is being verified, and the lowest sequence that waits for it."""

    guard: VerificationGuard
    since_ms: int
    lowest_sequence: int
    epoch: int
    supports_epoch_bump: bool

    def add(self, sequence: int, epoch: int) -> None:
        if epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence


@dataclass(frozen=True, slots=True)
class PreparedAppend:
    """What an append would change. With a `duplicate` nothing is to be written: its offsets are the answer."""

    duplicate: KeptBatch | None = None
    entries: Mapping[int, ProducerEntry] = field(default_factory=dict)
    begun: tuple[tuple[int, int], ...] = ()
    """First offset and producer id of each transaction that the append opens."""
    completed: tuple[CompletedTransaction, ...] = ()
    verified: tuple[int, ...] = ()
    """Producers whose guard has served."""
    notes: tuple[str, ...] = ()
    """What a leader would have refused; a replica takes it, and its log says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """`verifies_transactions`: the first batch of a transaction has to bring a guard (KIP-890)."""

    expiration_ms: int = DEFAULT_EXPIRATION_MS
    max_transaction_timeout_ms: int = DEFAULT_TRANSACTION_TIMEOUT_MS
    verifies_transactions: bool = False


class ProducerStates:
    """The producers of one partition's log, and its transactions. Knows no file and no clock."""

    def __init__(
        self,
        *,
        expiration_ms: int = DEFAULT_EXPIRATION_MS,
        max_transaction_timeout_ms: int = DEFAULT_TRANSACTION_TIMEOUT_MS,
        verifies_transactions: bool = False,
    ) -> None:
        self.expiration_ms = expiration_ms
        self.max_transaction_timeout_ms = max_transaction_timeout_ms
        self.verifies_transactions = verifies_transactions
        self.end_offset = 0
        """The state holds for the log below this offset."""
        self.transactions = OpenTransactions()
        self._entries: dict[int, ProducerEntry] = {}
        self._verifications: dict[int, _Verification] = {}

    @property
    def entries(self) -> Mapping[int, ProducerEntry]:
        """The producers by their id."""
        return self._entries

    @property
    def first_unstable_offset(self) -> int | None:
        return self.transactions.first_unstable_offset

    def active(self, most: int) -> list[ActiveProducer]:
        """As DescribeProducers tells them; at most so many, those with a transaction first."""
        entries: Iterable[ProducerEntry] = self._entries.values()
        if len(self._entries) > most:
            with_transaction = [entry for entry in entries if entry.has_transaction][:most]
            others = (entry for entry in reversed(self._entries.values()) if not entry.has_transaction)
            entries = [*with_transaction, *islice(others, most - len(with_transaction))]
        return [
            ActiveProducer(
                entry.producer_id,
                entry.epoch,
                entry.last_sequence,
                entry.last_timestamp_ms,
                entry.coordinator_epoch,
                entry.transaction_first_offset,
            )
            for entry in entries
        ]

    def is_empty(self) -> bool:
        """No producer is known, and no ended transaction waits for its replication."""
        return not self._entries and not self.transactions.has_unreplicated()

    def prepare(
        self,
        batches: Sequence[BatchHeader],
        records: Buffer,
        *,
        origin: AppendOrigin,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
    ) -> PreparedAppend:
        """Check an append of `batches`, whose offsets are assigned; `records` holds their bytes, one behind the other.

        Nothing is changed. `transaction_version` is that of the request which brought a marker: from 2 on its epoch
        must be above that of the open transaction. Raises OutOfOrderSequence, InvalidProducerEpoch, InvalidTxnState,
        TransactionCoordinatorFenced, and CorruptRecord for a marker that cannot be read.
        """
        if not any(header.producer_id >= 0 for header in batches):
            return _NOTHING
        append = _Append(self, origin, transaction_version)
        position = 0
        for header in batches:
            if header.producer_id >= 0:
                if origin is AppendOrigin.CLIENT:
                    duplicate = self._duplicate_of(header)
                    if duplicate is not None:
                        return PreparedAppend(duplicate=duplicate)
                if origin is not AppendOrigin.REPLICATION and header.is_transactional:
                    self._check_verified(header, guard)
                append.add(header, records, position)
            position += header.size_in_bytes
        return append.prepared()

    def apply(self, prepared: PreparedAppend, end_offset: int) -> list[AbortedEntry]:
        """The append was written, and the log now ends at `end_offset`. Answers what the active segment's transaction
        index gets."""
        for producer_id, entry in prepared.entries.items():
            # The one that wrote longest ago comes first.
            self._entries.pop(producer_id, None)
            self._entries[producer_id] = entry
        if len(self._entries) > MOST_PRODUCERS:
            self._forget_oldest()
        for producer_id in prepared.verified:
            self._verifications.pop(producer_id, None)
        for first_offset, producer_id in prepared.begun:
            self.transactions.begin(first_offset, producer_id)
        aborted = []
        for completed in prepared.completed:
            stable = self.transactions.last_stable_offset_after(completed)
            if completed.is_aborted:
                aborted.append(
                    AbortedEntry(completed.producer_id, completed.first_offset, completed.last_offset, stable)
                )
            self.transactions.complete(completed)
        self.end_offset = end_offset
        return aborted

    def start_verification(
        self, producer_id: int, *, sequence: int, epoch: int, supports_epoch_bump: bool, now_ms: int
    ) -> VerificationGuard | None:
        """What the first batch of a transaction has to bring; None where one is open. Raises InvalidProducerEpoch."""
        entry = self._entries.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            raise _stale_epoch(producer_id, epoch, entry.epoch)
        if entry is not None and entry.has_transaction and entry.epoch == epoch:
            return None
        waiting = self._verifications.get(producer_id)
        if waiting is None:
            waiting = _Verification(VerificationGuard(), now_ms, sequence, epoch, supports_epoch_bump)
            if len(self._verifications) >= MOST_PRODUCERS:
                # The one that waits longest: its batch is refused as one without a guard. Clients choose producer ids,
                # and a verification that the coordinator refused stays until it expires.
                del self._verifications[next(iter(self._verifications))]
            self._verifications[producer_id] = waiting
        waiting.add(sequence, epoch)
        return waiting.guard

    def awaits_marker(self, producer_id: int, epoch: int) -> bool:
        """Whether a transaction of an earlier epoch of the producer is open."""
        entry = self._entries.get(producer_id)
        return entry is not None and entry.has_transaction and entry.epoch < epoch

    def on_high_watermark(self, high_watermark: int) -> None:
        """Transactions whose marker lies below the high watermark no longer hold the last stable offset back."""
        self.transactions.forget_replicated(high_watermark)

    def on_log_start(self, log_start_offset: int) -> None:
        """The log's start moved up. Its producers stay known (KAFKA-7190)."""
        self.transactions.forget_replicated(log_start_offset)
        self.end_offset = max(self.end_offset, log_start_offset)

    def has_late_transaction(self, now_ms: int) -> bool:
        """Whether the oldest open transaction should have been ended by its coordinator long ago."""
        producer_id = self.transactions.oldest_producer_id
        entry = None if producer_id is None else self._entries.get(producer_id)
        if entry is None or entry.last_timestamp_ms <= 0:
            return False
        return now_ms - entry.last_timestamp_ms > self.max_transaction_timeout_ms + LATE_TRANSACTION_BUFFER_MS

    def expire(self, now_ms: int) -> list[int]:
        """Forget producers without a recent record, and verifications that no answer came for; answers the ids."""
        gone = [key for key, entry in self._entries.items() if self._is_expired(entry, now_ms)]
        for producer_id in gone:
            del self._entries[producer_id]
        for producer_id, waiting in list(self._verifications.items()):
            if now_ms - waiting.since_ms >= self.expiration_ms:
                del self._verifications[producer_id]
        return gone

    def truncate(self, offset: int) -> None:
        """Forget everything: the log was emptied and goes on at `offset`, or is about to be read again from there."""
        self._entries.clear()
        self.transactions.clear()
        self.end_offset = offset

    def load_snapshot(self, data: bytes, *, offset: int, now_ms: int) -> None:
        """Take over the snapshot that holds for the log below `offset`; expired producers are left out.

        Raises DecodeError for a damaged file, with the state as it was: the caller tries the one before.
        """
        entries = decode_snapshot(data)
        self.truncate(offset)
        for entry in entries:
            if not self._is_expired(entry, now_ms):
                self._entries[entry.producer_id] = entry
                if entry.has_transaction:
                    self.transactions.begin(entry.transaction_first_offset, entry.producer_id)

    def snapshot_bytes(self) -> bytes:
        """The snapshot file for `end_offset`."""
        return encode_snapshot(self._entries.values())

    def _is_expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        return not entry.has_transaction and now_ms - entry.last_timestamp_ms >= self.expiration_ms

    def _forget_oldest(self) -> None:
        """As if they had expired: their next batches are taken whatever their sequence. Transactions stay."""
        due = len(self._entries) - MOST_PRODUCERS
        old = islice(self._entries.values(), due + _LOOKED_THROUGH)
        for entry in [entry for entry in old if not entry.has_transaction][:due]:
            del self._entries[entry.producer_id]

    def _duplicate_of(self, header: BatchHeader) -> KeptBatch | None:
        entry = self._entries.get(header.producer_id)
        if entry is None or entry.epoch != header.producer_epoch:
            return None
        for batch in entry.batches:
            if batch.last_sequence == header.last_sequence and batch.first_sequence == header.base_sequence:
                return batch
        return None

    def _check_verified(self, header: BatchHeader, guard: VerificationGuard | None) -> None:
        """A transactional batch belongs to an open transaction, or brings the guard of its verification (KIP-890)."""
        entry = self._entries.get(header.producer_id)
        if entry is not None:
            if entry.has_transaction and entry.epoch == header.producer_epoch:
                return
            if header.producer_epoch < entry.epoch:
                raise _stale_epoch(header.producer_id, header.producer_epoch, entry.epoch)
        if header.is_control or not self.verifies_transactions:
            return
        waiting = self._verifications.get(header.producer_id)
        if guard is None or waiting is None or waiting.guard is not guard:
            raise InvalidTxnState(
                f"producer {header.producer_id} has no ongoing transaction, and none was verified for this batch"
            )

    def _waiting(self, producer_id: int) -> _Verification | None:
        return self._verifications.get(producer_id)


class _Append:
    """Collects what one append changes, batch by batch, each checked against the state that the ones before leave."""

    def __init__(self, states: ProducerStates, origin: AppendOrigin, transaction_version: int) -> None:
        self._states = states
        self._origin = origin
        self._transaction_version = transaction_version
        self._entries: dict[int, ProducerEntry] = {}
        self._begun: list[tuple[int, int]] = []
        self._completed: list[CompletedTransaction] = []
        self._verified: list[int] = []
        self._notes: list[str] = []

    def prepared(self) -> PreparedAppend:
        return PreparedAppend(
            None,
            self._entries,
            tuple(self._begun),
            tuple(self._completed),
            tuple(self._verified),
            tuple(self._notes),
        )

    def add(self, header: BatchHeader, records: Buffer, position: int) -> None:
        producer_id = header.producer_id
        known = self._states.entries.get(producer_id) or ProducerEntry(producer_id)
        entry = self._entries.get(producer_id, known)
        if not header.is_control:
            self._entries[producer_id] = self._with_data(header, entry, known)
        elif header.record_count:
            self._entries[producer_id] = self._with_marker(header, entry, records, position)
        else:
            # The cleaner removed the whole transaction and its marker: the batch only makes the producer known.
            self._entries[producer_id] = entry
        if header.is_transactional:
            waiting = self._states._waiting(producer_id)
            is_of_next = (
                waiting is not None
                and waiting.supports_epoch_bump
                and header.is_control
                and header.producer_epoch == waiting.epoch
            )
            if not is_of_next:
                self._verified.append(producer_id)

    def _with_data(self, header: BatchHeader, entry: ProducerEntry, known: ProducerEntry) -> ProducerEntry:
        self._check_epoch(header, entry, 0)
        if self._origin is AppendOrigin.CLIENT:
            self._check_sequence(header, entry, known)
        if header.is_transactional:
            if not entry.has_transaction:
                self._begun.append((header.base_offset, header.producer_id))
        elif entry.has_transaction:
            raise InvalidTxnState(
                f"producer {header.producer_id} sent a batch outside of its transaction, which is open since offset "
                f"{entry.transaction_first_offset}"
            )
        return entry.with_batch(header)

    def _with_marker(
        self, header: BatchHeader, entry: ProducerEntry, records: Buffer, position: int
    ) -> ProducerEntry:
        marker, timestamp_ms = _read_marker(header, records, position)
        replicated = self._origin is AppendOrigin.REPLICATION
        self._check_epoch(header, entry, 0 if replicated else self._transaction_version)
        if marker.coordinator_epoch < entry.coordinator_epoch:
            self._refuse(
                TransactionCoordinatorFenced(
                    f"a marker for producer {header.producer_id} has coordinator epoch {marker.coordinator_epoch}, "
                    f"{entry.coordinator_epoch} is known"
                )
            )
        if entry.has_transaction:
            # A transaction without data needs no entry: it holds nothing back and nothing of it is read.
            self._completed.append(
                CompletedTransaction(
                    header.producer_id,
                    entry.transaction_first_offset,
                    header.base_offset,
                    not marker.is_commit,
                )
            )
        return entry.with_marker(header.producer_epoch, marker.coordinator_epoch, timestamp_ms)

    def _check_epoch(self, header: BatchHeader, entry: ProducerEntry, transaction_version: int) -> None:
        # Since transaction.version 2 the coordinator raises the epoch with each marker (KIP-890): while a transaction
        # is open, one with the known epoch belongs to the one before. Else it was sent again (KAFKA-19999).
        least = entry.epoch + (transaction_version >= 2 and entry.has_transaction)
        if header.producer_epoch < least:
            self._refuse(_stale_epoch(header.producer_id, header.producer_epoch, entry.epoch))

    def _refuse(self, error: InvalidProducerEpoch | TransactionCoordinatorFenced) -> None:
        """A replica takes what its leader took, and notes it: such logs exist (KAFKA-9144)."""
        if self._origin is not AppendOrigin.REPLICATION:
            raise error
        self._notes.append(str(error))

    def _check_sequence(self, header: BatchHeader, entry: ProducerEntry, known: ProducerEntry) -> None:
        sequence = header.base_sequence
        waiting = self._states._waiting(header.producer_id)
        if waiting is not None:
            if waiting.supports_epoch_bump and sequence and not known.batches:
                raise _out_of_order(header, 0, "no batch of it is known")
            if sequence > waiting.lowest_sequence:
                raise _out_of_order(
                    header, waiting.lowest_sequence, "an earlier batch waits for verification"
                )
        if header.producer_epoch != entry.epoch:
            if sequence and entry.epoch != _NONE:
                raise _out_of_order(header, 0, f"epoch {header.producer_epoch} is new after {entry.epoch}")
        elif known.epoch != _NONE:
            due = (entry.last_sequence + 1) & _LAST_SEQUENCE
            if sequence != due:
                raise _out_of_order(header, due, f"its last one is {entry.last_sequence}")


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """A snapshot file of the entries, in their order."""
    parts = []
    for entry in entries:
        last = entry.batches[-1] if entry.batches else _NO_BATCH
        parts.append(
            _ENTRY.pack(
                entry.producer_id,
                entry.epoch,
                last.last_sequence,
                last.last_offset,
                last.offset_delta,
                entry.last_timestamp_ms,
                entry.coordinator_epoch,
                entry.transaction_first_offset,
            )
        )
    body = struct.pack(">i", len(parts)) + b"".join(parts)
    return struct.pack(">hI", _VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> list[ProducerEntry]:
    """The entries of a snapshot file, in their order. Raises DecodeError."""
    try:
        version, crc, count = _HEAD.unpack_from(data)
    except struct.error:
        raise DecodeError(
            f"a producer snapshot has {_HEAD.size} bytes at least, this one {len(data)}"
        ) from None
    if version != _VERSION:
        raise DecodeError(f"a producer snapshot has version {version} instead of {_VERSION}")
    computed = crc32c(data[_CHECKED_AT:])
    if computed != crc:
        raise DecodeError(f"a producer snapshot has CRC {crc:#010x}, but its bytes give {computed:#010x}")
    if len(data) != _HEAD.size + count * _ENTRY.size:
        raise DecodeError(f"a producer snapshot of {count} producers has {len(data)} bytes")
    entries = []
    for fields in _ENTRY.iter_unpack(data[_HEAD.size :]):
        producer_id, epoch, sequence, last_offset, delta, timestamp_ms, coordinator_epoch, first_offset = (
            fields
        )
        batches = () if last_offset < 0 else (KeptBatch(sequence, last_offset, delta, timestamp_ms),)
        entries.append(
            ProducerEntry(producer_id, epoch, coordinator_epoch, timestamp_ms, first_offset, batches)
        )
    return entries


def _read_marker(header: BatchHeader, records: Buffer, position: int) -> tuple[TransactionMarker, int]:
    try:
        record = read_data_records(records, position, header)[0]
        return decode_transaction_marker(record.key, record.value), record.timestamp_ms
    except DecodeError as error:
        raise CorruptRecord(
            f"the control batch at offset {header.base_offset} is damaged: {error}"
        ) from error


def _stale_epoch(producer_id: int, epoch: int, known: int) -> InvalidProducerEpoch:
    return InvalidProducerEpoch(f"producer {producer_id} sent epoch {epoch}, but {known} is known")


def _out_of_order(header: BatchHeader, due: int, why: str) -> OutOfOrderSequence:
    return OutOfOrderSequence(
        f"producer {header.producer_id} (epoch {header.producer_epoch}) sent sequence {header.base_sequence} at offset "
        f"{header.base_offset} instead of {due}: {why}"
    )


_NO_BATCH: Final = KeptBatch(_NONE, _NONE, 0, _NONE)
_NOTHING: Final = PreparedAppend()
