"""What a replica needs of the log of its partition: the port between replication and the log on disk.

`broker.replica` decides with this port alone, so that the simulator runs the same decisions on a log in memory.
The port is synchronous: an append writes to the operating system's cache and does not wait for the disk
(Kafka's default: durability comes from replication; `flush.messages` and `flush.ms` ask for more).
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID


class AppendOrigin(enum.Enum):
    """The source of an append: it decides which of the validator's rules apply."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    REPLICATION = "replication"


class Isolation(enum.Enum):
    """How far a reader may read."""

    LOG_END = "log_end"
    """A follower, a future replica and the log's own tools: up to the end of the log."""
    HIGH_WATERMARK = "high_watermark"
    """A consumer with read_uncommitted."""
    COMMITTED = "committed"
    """A consumer with read_committed: up to the last stable offset, with the list of aborted transactions."""


@dataclass(slots=True)
class AppendedBatches:
    """What one append wrote. Offsets are inclusive; `first_offset` is -1 where nothing was written."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    """The time the broker stamped on the records (LogAppendTime), or -1."""
    max_timestamp_ms: int
    log_start_offset: int
    size_bytes: int
    duplicate: bool = False
    """True where an idempotent producer sent a batch again: the offsets are those of the first append."""


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """An aborted transaction that overlaps a read."""

    producer_id: int
    first_offset: int


@dataclass(slots=True)
class LogSlice:
    """What one read found: whole batches (except where the first batch alone is longer than asked for)."""

    start_offset: int
    """The offset asked for; the first batch may begin below it."""
    pieces: Sequence[bytes | memoryview]
    size_bytes: int
    aborted_transactions: Sequence[AbortedTransaction] | None = None
    """None where the reader did not ask for committed records only."""


@dataclass(slots=True)
class EpochEnd:
    """The largest epoch not above the one asked for and the offset behind its last record; -1, -1 if unknown."""

    leader_epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class TimestampedOffset:
    """The answer of a search by time; -1 for each where nothing was found."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    """A producer that the log remembers (DescribeProducers, KIP-664); -1 stands for what is not known."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_first_offset: int
    """Where its open transaction begins; -1 without one."""


class VerificationGuard:
    """Names one wait for the transaction coordinator's word that a partition belongs to a transaction (KIP-890).

    A guard is equal to itself alone, so that a late answer cannot open a transaction that was ended meanwhile.
    """

    __slots__ = ()


class PartitionLog(Protocol):
    """One partition's log. Every error is one of `broker.log.errors`; a failed call leaves the log as it was."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def topic_id(self) -> UUID: ...
    @property
    def directory_id(self) -> UUID:
        """The id of the log directory that the log lies in."""
        ...

    @property
    def log_start_offset(self) -> int: ...
    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        ...

    @property
    def high_watermark(self) -> int: ...
    @property
    def last_stable_offset(self) -> int:
        """The first offset of the oldest open or not yet replicated transaction, at most the high watermark."""
        ...

    @property
    def latest_epoch(self) -> int | None:
        """The last leader epoch with a record or an assigned start; None in an empty log."""
        ...

    @property
    def size_bytes(self) -> int: ...

    def append_as_leader(
        self,
        records: bytes | memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
    ) -> AppendedBatches:
        """Validate the batch, give it offsets and the leader's epoch, check its producer, append it.

        `guard` comes from `start_verification`. `transaction_version` is that of the transaction that a marker ends
        (KIP-890, KIP-1228).
        """
        ...

    def start_verification(
        self, producer_id: int, *, sequence: int, epoch: int, supports_epoch_bump: bool, now_ms: int
    ) -> VerificationGuard | None:
        """What the first batch of a transaction has to bring, after the coordinator's word that the partition is in
        it; None where the transaction is open here. Raises InvalidProducerEpoch."""
        ...

    def awaits_marker(self, producer_id: int, epoch: int) -> bool:
        """Whether a transaction of an earlier epoch of the producer is open."""
        ...

    def has_late_transaction(self, now_ms: int) -> bool:
        """Whether the oldest open transaction should have been ended by its coordinator long ago."""
        ...

    def active_producers(self, most: int) -> Sequence[ActiveProducer]:
        """At most so many, those with an open transaction first."""
        ...

    def append_as_follower(
        self, records: bytes | memoryview, *, leader_epoch: int, now_ms: int
    ) -> AppendedBatches:
        """Append what the leader sent, with its offsets. `leader_epoch` is that of this replica's Fetch."""
        ...

    def read(
        self,
        offset: int,
        *,
        max_bytes: int,
        isolation: Isolation,
        at_least_one_batch: bool,
    ) -> LogSlice:
        """Read from the batch that holds `offset`. Raises OffsetOutOfRange below the start and above the log's end;
        between the bound of `isolation` and the end there is nothing yet to read."""
        ...

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark within [log start, log end] and return it. The caller decides about going back."""
        ...

    def assign_epoch_start(self, leader_epoch: int) -> None:
        """A new leader notes that its epoch begins at the end of the log."""
        ...

    def end_of_epoch(self, leader_epoch: int) -> EpochEnd:
        """Source: OffsetForLeaderEpoch and the diverging epoch of Fetch (KIP-101, KIP-320, KIP-595)."""
        ...

    def truncate_to(self, offset: int) -> bool:
        """Remove all records from `offset` on; False where there were none."""
        ...

    def truncate_fully_and_start_at(self, offset: int, *, log_start_offset: int | None = None) -> None:
        """Remove all records and go on at `offset` (the leader's log no longer overlaps)."""
        ...

    def advance_log_start_offset(self, offset: int) -> bool:
        """DeleteRecords, and a follower that learns its leader's start. Raises OffsetOutOfRange above the watermark."""
        ...

    def search_time(self, timestamp_ms: int, from_offset: int) -> TimestampedOffset | int:
        """The first record from `from_offset` on whose timestamp is not below the one asked for. After some thousand
        batches without it, the offset from which to search on: no index bounds the search where times go back."""
        ...

    def offset_of_max_time(self) -> TimestampedOffset:
        """The record with the greatest timestamp (ListOffsets -3)."""
        ...

    def flush(self) -> None:
        """Write all to the disk and advance the recovery point."""
        ...
