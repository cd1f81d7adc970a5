"""One partition of `__transaction_state` that this broker leads: its transactional ids, and what is to happen to them.

Sans-IO: `now_ms` is an argument, and the shard reads and writes the log through the partition. A request becomes the
next value of its transaction, as a record; the value counts when the record is committed, and the answer goes out then.
Until then the transaction has a pending value, and other changes get CONCURRENT_TRANSACTIONS. So what a client hears is
in the log of every in-sync replica, and the next coordinator goes on from there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from kquorum.broker.coordinators.answers import Done, KeyValue
from kquorum.broker.coordinators.batches import in_batches
from kquorum.broker.coordinators.loading import ShardState
from kquorum.broker.coordinators.shard import CoordinatorShard
from kquorum.broker.coordinators.timers import Earliest
from kquorum.broker.log.producer_state import ProducerEpoch
from kquorum.broker.replica.partition import ACKS_ALL, Partition, TopicPartition
from kquorum.broker.transactions.markers import MarkerJob, MarkerQueue
from kquorum.broker.transactions.peers import RETRY_BACKOFF_MS
from kquorum.broker.transactions.settings import TransactionSettings
from kquorum.broker.transactions.transaction import (
    EPOCH_BUMP,
    NewProducerId,
    Transaction,
    TransactionState,
    add_partitions,
    check_producer,
    end,
    end_before_version_2,
    fence,
    initialise,
    transaction_of,
)
from kquorum.wire.data_batch import read_data_records
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.record_batch import BatchHeader
from kquorum.wire.transaction_records import (
    NO_EPOCH,
    NO_PRODUCER,
    decode_transaction_key,
    decode_transaction_value,
    encode_transaction_key,
    encode_transaction_value,
)

log = logging.getLogger("broker.transactions")

# What one turn of the loop does at most, of work that grows with the number of transactional ids.
_ABORTED_AT_ONCE: Final = 100
_LOOKED_AT_ONCE: Final = 10_000
# What the ids of a partition may take in memory. Kafka has no bound; an id stays for `transactional.id.expiration.ms`.
MOST_BYTES: Final = 32 << 20
_ENTRY_BYTES: Final = 500

_WARNING_PAUSE_MS: Final = 60_000

ProducerDone = Callable[[ErrorCode, ProducerEpoch], None]
"""The error, and the producer id and epoch to go on with."""
NO_PRODUCER_EPOCH: Final = ProducerEpoch(NO_PRODUCER, NO_EPOCH)


class _Entry:
    """Of a transactional id. `current` is what is committed, None for an id whose first record is not; `pending` what
    is written and not committed. An id that is being removed has neither: see `is_leaving`."""

    __slots__ = ("current", "is_leaving", "pending")

    def __init__(self, current: Transaction | None) -> None:
        self.current = current
        self.pending: Transaction | None = None
        self.is_leaving = False

    @property
    def is_pending(self) -> bool:
        return self.pending is not None or self.is_leaving


class TransactionShard(CoordinatorShard):
    SERVES = "transactions"
    REQUIRED_ACKS = ACKS_ALL

    def __init__(
        self,
        partition: Partition,
        settings: Callable[[], TransactionSettings],
        version: Callable[[], int],
        new_producer_id: NewProducerId,
        markers: MarkerQueue,
        earliest: Earliest | None = None,
    ) -> None:
        """`version` is the cluster's transaction.version."""
        super().__init__(partition, log, earliest)
        self.index = partition.topic_partition.partition
        self.aborted_by_timeout = 0
        self._settings = settings
        self._version = version
        self._new_producer_id = new_producer_id
        self._markers = markers
        self._entries: dict[str, _Entry] = {}
        self._held_bytes = 0
        self._next_warning_ms = 0
        self._open: dict[str, None] = {}
        self._waiting: dict[str, dict[Callable[[], None], None]] = {}
        self._end_of_load: int | None = None
        self._looking: Iterator[str] | None = None

    @property
    def count(self) -> int:
        """The transactional ids."""
        return len(self._entries)

    @property
    def open_count(self) -> int:
        """The transactions that are ongoing."""
        return len(self._open)

    # Loading

    @property
    def load_buffer_bytes(self) -> int:
        return self._settings().load_buffer_bytes

    @property
    def has_to_read(self) -> bool:
        """A shard that has read all may still wait for its replicas."""
        return self.state is ShardState.LOADING and self._end_of_load is None

    def loaded(self, now_ms: int) -> None:
        self._end_of_load = self._load.next_offset
        self._maybe_begin(now_ms)

    def replay_batch(self, data: bytes, position: int, header: BatchHeader) -> None:
        if header.is_control:
            return
        for record in read_data_records(data, position, header):
            if record.key is None:
                continue
            transactional_id = decode_transaction_key(record.key)
            if transactional_id is None:
                log.warning("a record of an unknown type at offset %d is skipped", record.offset)
            elif record.value is None:
                self._set(transactional_id, None)
            else:
                self._set(transactional_id, transaction_of(decode_transaction_value(record.value)))

    def _maybe_begin(self, now_ms: int) -> None:
        """What the former leader wrote has to be committed: a marker cannot be taken back, so the decision for it must
        not be lost."""
        if self._end_of_load is None or self.partition.log.high_watermark < self._end_of_load:
            return
        self.state = ShardState.ACTIVE
        settings = self._settings()
        self.timers.set("abort", now_ms + settings.abort_check_ms, self.abort_timed_out)
        self.timers.set("expiry", now_ms + settings.expiration_check_ms, self.remove_expired)
        log.info(
            "%s-%d: %d transactional ids loaded, %d with an open transaction, leader epoch %d",
            *self.partition.topic_partition,
            len(self._entries),
            len(self._open),
            self.leader_epoch,
        )
        for transactional_id, entry in tuple(self._entries.items()):
            if entry.current is not None and entry.current.is_prepared:
                self._send_markers(now_ms, transactional_id, entry.current)

    def given_up(self) -> None:
        self._markers.forget(self.index)
        waiting, self._waiting = self._waiting, {}
        for acts in waiting.values():
            for act in acts:
                act()

    # State

    def _set(self, transactional_id: str, transaction: Transaction | None) -> None:
        if transaction is None:
            self._drop(transactional_id)
        else:
            entry = self._entries.get(transactional_id)
            if entry is None:
                self._keep(transactional_id, _Entry(transaction))
            else:
                entry.current, entry.pending = transaction, None
        if transaction is not None and transaction.state is TransactionState.ONGOING:
            self._open[transactional_id] = None
        else:
            self._open.pop(transactional_id, None)

    def _keep(self, transactional_id: str, entry: _Entry) -> None:
        if transactional_id not in self._entries:
            self._held_bytes += _bytes_of(transactional_id)
        self._entries[transactional_id] = entry

    def _drop(self, transactional_id: str) -> None:
        if self._entries.pop(transactional_id, None) is not None:
            self._held_bytes -= _bytes_of(transactional_id)

    def _warn_of_too_many(self, now_ms: int) -> None:
        if now_ms < self._next_warning_ms:
            return
        self._next_warning_ms = now_ms + _WARNING_PAUSE_MS
        log.warning(
            "%s-%d: another transactional id is refused (POLICY_VIOLATION): the %d ids of this partition take %d "
            "bytes, as many as they may. Clients should use their ids again; with a shorter "
            "transactional.id.expiration.ms unused ones are forgotten sooner",
            *self.partition.topic_partition,
            len(self._entries),
            self._held_bytes,
        )

    def when_at_rest(self, transactional_id: str, act: Callable[[], None]) -> None:
        """Call `act` once when no change of the transaction is on its way any more, and its end is complete; or when
        this broker gives the partition up."""
        self._waiting.setdefault(transactional_id, {})[act] = None

    def stop_waiting(self, transactional_id: str, act: Callable[[], None]) -> None:
        waiting = self._waiting.get(transactional_id, {})
        waiting.pop(act, None)
        if not waiting:
            self._waiting.pop(transactional_id, None)

    def _wake(self, transactional_id: str) -> None:
        if transactional_id not in self._waiting:
            return
        entry = self._entries.get(transactional_id)
        known = None if entry is None else entry.current
        if entry is None or not (entry.is_pending or (known is not None and known.is_prepared)):
            for act in self._waiting.pop(transactional_id):
                act()

    def transactions(self) -> Iterator[tuple[str, Transaction]]:
        """Those that are there at the first step and committed at their own, and are not being removed."""
        for transactional_id, entry in tuple(self._entries.items()):
            if entry.current is not None and not entry.is_leaving:
                yield transactional_id, entry.current

    def find(self, transactional_id: str) -> Transaction | None:
        entry = self._entries.get(transactional_id)
        return None if entry is None or entry.is_leaving else entry.current

    # Writing

    def _write(
        self, now_ms: int, transactional_id: str, entry: _Entry, following: Transaction, done: Done
    ) -> None:
        record = (
            encode_transaction_key(transactional_id),
            encode_transaction_value(following.record(), 1 if self._version() >= 1 else 0),
        )

        def committed(now_ms: int) -> None:
            self._set(transactional_id, following)
            if following.is_prepared:
                self._send_markers(now_ms, transactional_id, following)
            self._wake(transactional_id)

        entry.pending = following
        self._keep(transactional_id, entry)
        error = self.log.write(now_ms, [record], done, timeout_ms=following.timeout_ms, committed=committed)
        if error is not ErrorCode.none:
            entry.pending = None
            if entry.current is None:
                self._drop(transactional_id)
            done(error)
            self._wake(transactional_id)

    def advance(self, now_ms: int) -> None:
        """The high watermark may have moved."""
        if self.state is ShardState.LOADING:
            self._maybe_begin(now_ms)
        super().advance(now_ms)

    # Requests

    def init_producer_id(
        self,
        now_ms: int,
        transactional_id: str,
        *,
        timeout_ms: int,
        expected: ProducerEpoch | None,
        done: ProducerDone,
    ) -> None:
        """A producer takes over the id. A transaction that is open is aborted first: the producer asks again."""
        entry = self._entries.get(transactional_id)
        if entry is None and self._held_bytes + _bytes_of(transactional_id) > MOST_BYTES:
            self._warn_of_too_many(now_ms)
            done(ErrorCode.policy_violation, NO_PRODUCER_EPOCH)
            return
        if entry is None:
            producer_id = self._new_producer_id()
            if producer_id is None:
                done(ErrorCode.coordinator_load_in_progress, NO_PRODUCER_EPOCH)
                return
            entry = _Entry(None)
        elif entry.is_pending:
            done(ErrorCode.concurrent_transactions, NO_PRODUCER_EPOCH)
            return
        else:
            producer_id = NO_PRODUCER
        known = entry.current
        if known is not None and known.state is TransactionState.ONGOING:
            if expected is not None and not known.may_expect(expected):
                done(ErrorCode.producer_fenced, NO_PRODUCER_EPOCH)
                return

            def aborted(error: ErrorCode) -> None:
                done(
                    ErrorCode.concurrent_transactions if error is ErrorCode.none else error, NO_PRODUCER_EPOCH
                )

            self._fence(now_ms, transactional_id, entry, known, aborted)
            return
        if known is None:
            known = Transaction(producer_id=producer_id, epoch=NO_EPOCH, timeout_ms=timeout_ms)
        following = initialise(
            known,
            now_ms,
            timeout_ms=timeout_ms,
            expected=expected,
            new_producer_id=self._new_producer_id,
        )
        if isinstance(following, ErrorCode):
            done(following, NO_PRODUCER_EPOCH)
            return
        given = ProducerEpoch(following.producer_id, following.epoch)
        self._write(
            now_ms,
            transactional_id,
            entry,
            following,
            lambda error: done(error, given if error is ErrorCode.none else NO_PRODUCER_EPOCH),
        )

    def _fence(
        self, now_ms: int, transactional_id: str, entry: _Entry, known: Transaction, done: Done
    ) -> None:
        following = fence(known, now_ms, self._version(), self._new_producer_id)
        if isinstance(following, ErrorCode):
            done(following)
        else:
            self._write(now_ms, transactional_id, entry, following, done)

    def add_partitions(
        self,
        now_ms: int,
        transactional_id: str,
        producer: ProducerEpoch,
        partitions: Collection[TopicPartition],
        *,
        version: int,
        done: Done,
    ) -> None:
        """`version` is the transaction.version by which the client goes."""
        entry = self._entries.get(transactional_id)
        if entry is None:
            done(ErrorCode.invalid_producer_id_mapping)
            return
        if entry.is_pending or entry.current is None:
            # First: the producer may have the id and epoch that are pending.
            done(ErrorCode.concurrent_transactions)
            return
        following = add_partitions(entry.current, now_ms, producer, partitions, version)
        if isinstance(following, ErrorCode):
            done(following)
        else:
            self._write(now_ms, transactional_id, entry, following, done)

    def verify_partitions(
        self, transactional_id: str, producer: ProducerEpoch, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Whether each is in the producer's transaction."""
        known = self.find(transactional_id)
        error = ErrorCode.invalid_producer_id_mapping if known is None else check_producer(known, producer)
        if known is None or error is not ErrorCode.none:
            return dict.fromkeys(partitions, error)
        return {
            each: ErrorCode.none if each in known.partitions else ErrorCode.transaction_abortable
            for each in partitions
        }

    def end(
        self,
        now_ms: int,
        transactional_id: str,
        producer: ProducerEpoch,
        *,
        is_commit: bool,
        version: int,
        done: ProducerDone,
    ) -> None:
        """Decide the end of the transaction. The answer does not wait for the markers."""
        entry = self._entries.get(transactional_id)
        if entry is None:
            done(ErrorCode.invalid_producer_id_mapping, NO_PRODUCER_EPOCH)
            return
        known = entry.current
        if known is None:
            done(ErrorCode.concurrent_transactions, NO_PRODUCER_EPOCH)
            return
        following = (
            end(
                known,
                now_ms,
                producer,
                is_commit=is_commit,
                is_pending=entry.is_pending,
                new_producer_id=self._new_producer_id,
            )
            if version >= EPOCH_BUMP
            else end_before_version_2(
                known, now_ms, producer, is_commit=is_commit, is_pending=entry.is_pending
            )
        )
        if following is ErrorCode.none:
            done(ErrorCode.none, ProducerEpoch(known.producer_id, known.epoch))
        elif isinstance(following, ErrorCode):
            done(following, NO_PRODUCER_EPOCH)
        else:
            given = following.next_producer
            self._write(
                now_ms,
                transactional_id,
                entry,
                following,
                lambda error: done(error, given if error is ErrorCode.none else NO_PRODUCER_EPOCH),
            )

    # Markers

    def _send_markers(self, now_ms: int, transactional_id: str, transaction: Transaction) -> None:
        self._markers.add(
            now_ms,
            MarkerJob(
                shard=self.index,
                transactional_id=transactional_id,
                producer=ProducerEpoch(transaction.producer_id, transaction.epoch),
                is_commit=transaction.is_commit,
                coordinator_epoch=self.leader_epoch,
                version=transaction.client_version,
                left=set(transaction.partitions),
                done=self._markers_written,
            ),
        )

    def _markers_written(self, now_ms: int, job: MarkerJob) -> None:
        self._complete(now_ms, job.transactional_id)

    def _complete(self, now_ms: int, transactional_id: str) -> None:
        entry = self._entries.get(transactional_id)
        if self.state is not ShardState.ACTIVE or entry is None or entry.is_pending:
            return
        if entry.current is None or not entry.current.is_prepared:
            return

        def written(error: ErrorCode) -> None:
            if error is ErrorCode.coordinator_not_available and not entry.is_pending:
                # The partition has too few in-sync replicas: the record is not in the log.
                self.timers.set(
                    ("complete", transactional_id),
                    now_ms + RETRY_BACKOFF_MS,
                    lambda later_ms: self._complete(later_ms, transactional_id),
                )

        self._write(now_ms, transactional_id, entry, entry.current.completed(now_ms), written)

    # Time

    def abort_timed_out(self, now_ms: int) -> None:
        """Rules T7.1 and T7.2: the time runs from the first partition on, also at the next coordinator."""
        late: list[tuple[str, _Entry, Transaction]] = []
        for transactional_id in self._open:
            entry = self._entries[transactional_id]
            known = entry.current
            if known is not None and not entry.is_pending and known.has_timed_out(now_ms):
                late.append((transactional_id, entry, known))
                if len(late) == _ABORTED_AT_ONCE:
                    break
        aborted = 0
        for transactional_id, entry, known in late:

            def done(error: ErrorCode, transactional_id: str = transactional_id) -> None:
                if error is ErrorCode.none:
                    log.info("%s: its time is over, the transaction is aborted", transactional_id)
                elif error is not ErrorCode.not_coordinator:
                    log.warning(
                        "%s: its time is over, but it is not aborted yet: %s", transactional_id, error.name
                    )

            self._fence(now_ms, transactional_id, entry, known, done)
            aborted += entry.pending is not None or entry.current is not known
        self.aborted_by_timeout += aborted
        # Where the log refuses one, the others wait for the next look as well.
        is_more = len(late) == _ABORTED_AT_ONCE and aborted
        self.timers.set(
            "abort", now_ms if is_more else now_ms + self._settings().abort_check_ms, self.abort_timed_out
        )

    def remove_expired(self, now_ms: int) -> None:
        """Rule T7.3: ids without a transaction whose last change is long ago. A part of them in each call."""
        if self._looking is None:
            self._looking = iter(tuple(self._entries))
        oldest_ms = now_ms - self._settings().expiration_ms
        looked = tuple(islice(self._looking, _LOOKED_AT_ONCE))
        expired: list[str] = []
        for transactional_id in looked:
            entry = self._entries.get(transactional_id)
            if entry is None or entry.is_pending or entry.current is None:
                continue
            if entry.current.is_at_rest and entry.current.last_update_ms <= oldest_ms:
                expired.append(transactional_id)
        for part in in_batches(expired, len):
            self._remove(now_ms, part)
        if len(looked) < _LOOKED_AT_ONCE:
            self._looking = None
        pause_ms = self._settings().expiration_check_ms if self._looking is None else 0
        self.timers.set("expiry", now_ms + pause_ms, self.remove_expired)

    def _remove(self, now_ms: int, transactional_ids: Sequence[str]) -> None:
        entries = [self._entries[each] for each in transactional_ids]
        tombstones: list[KeyValue] = [(encode_transaction_key(each), None) for each in transactional_ids]

        def committed(_now_ms: int) -> None:
            for each in transactional_ids:
                self._set(each, None)
                self._wake(each)

        for entry in entries:
            entry.is_leaving = True
        error = self.log.write(
            now_ms,
            tombstones,
            lambda _error: None,
            timeout_ms=self._settings().max_timeout_ms,
            committed=committed,
        )
        if error is not ErrorCode.none:
            for entry in entries:
                entry.is_leaving = False
            log.warning(
                "%s-%d: %d expired transactional ids are not removed yet: %s",
                *self.partition.topic_partition,
                len(entries),
                error.name,
            )


def _bytes_of(transactional_id: str) -> int:
    """About what an id takes in memory with its last transaction."""
    return _ENTRY_BYTES + len(transactional_id)
