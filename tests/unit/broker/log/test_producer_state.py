"""Idempotent and transactional producers on a partition. Each test names Kafka's test of the same behaviour."""

import struct
from dataclasses import dataclass, field

import pytest
from crc32c import crc32c

from kquorum.broker.log.errors import (
    CorruptRecord,
    InvalidProducerEpoch,
    InvalidTxnState,
    LogError,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from kquorum.broker.log.partition_log import AppendOrigin, VerificationGuard
from kquorum.broker.log.producer_state import (
    KeptBatch,
    PreparedAppend,
    ProducerEntry,
    ProducerStates,
    decode_snapshot,
    encode_snapshot,
)
from kquorum.broker.log.transactions import AbortedEntry, last_stable_offset
from kquorum.wire.data_batch import (
    Record,
    read_data_header,
    write_data_batch,
    write_transaction_marker,
)
from kquorum.wire.errors import DecodeError
from kquorum.wire.messages.error_codes import ErrorCode
from kquorum.wire.transaction_markers import TransactionMarker

LAST = 2**31 - 1
DAY_MS = 86_400_000
CLIENT, COORDINATOR, REPLICATION = AppendOrigin.CLIENT, AppendOrigin.COORDINATOR, AppendOrigin.REPLICATION


@dataclass
class Log:
    """A log of nothing but producers: what is appended gets the next offsets."""

    states: ProducerStates = field(default_factory=ProducerStates)
    end: int = 0
    aborted: list[AbortedEntry] = field(default_factory=list)

    def prepare(
        self,
        sequence: int = 0,
        *,
        producer_id: int = 1,
        epoch: int = 0,
        count: int = 1,
        transactional: bool = False,
        timestamp_ms: int = 100,
        origin: AppendOrigin = CLIENT,
        guard: VerificationGuard | None = None,
    ) -> tuple[PreparedAppend, int]:
        records = [Record(self.end + index, timestamp_ms, b"k", b"v") for index in range(count)]
        batch = write_data_batch(
            records,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
        header = read_data_header(batch)
        return self.states.prepare([header], batch, origin=origin, guard=guard), header.next_offset

    def append(
        self,
        sequence: int = 0,
        *,
        producer_id: int = 1,
        epoch: int = 0,
        count: int = 1,
        transactional: bool = False,
        timestamp_ms: int = 100,
        origin: AppendOrigin = CLIENT,
        guard: VerificationGuard | None = None,
    ) -> KeptBatch | None:
        """The duplicate, if it is one."""
        prepared, end = self.prepare(
            sequence,
            producer_id=producer_id,
            epoch=epoch,
            count=count,
            transactional=transactional,
            timestamp_ms=timestamp_ms,
            origin=origin,
            guard=guard,
        )
        if prepared.duplicate is None:
            self.aborted += self.states.apply(prepared, end)
            self.end = end
        return prepared.duplicate

    def end_transaction(
        self,
        *,
        commit: bool = True,
        producer_id: int = 1,
        epoch: int = 0,
        coordinator_epoch: int = 0,
        timestamp_ms: int = 100,
        origin: AppendOrigin = COORDINATOR,
        transaction_version: int = 0,
    ) -> PreparedAppend:
        marker = write_transaction_marker(
            TransactionMarker(commit, coordinator_epoch),
            producer_id=producer_id,
            producer_epoch=epoch,
            timestamp_ms=timestamp_ms,
            offset=self.end,
        )
        prepared = self.states.prepare(
            [read_data_header(marker)], marker, origin=origin, transaction_version=transaction_version
        )
        self.aborted += self.states.apply(prepared, self.end + 1)
        self.end += 1
        return prepared

    def entry(self, producer_id: int = 1) -> ProducerEntry:
        return self.states.entries[producer_id]

    def stable(self, high_watermark: int | None = None) -> int:
        bound = self.end if high_watermark is None else high_watermark
        return last_stable_offset(self.states.first_unstable_offset, 0, bound)

    def unstable(self) -> int | None:
        return self.states.first_unstable_offset

    def refuses(
        self,
        error: type[LogError],
        sequence: int,
        *,
        epoch: int = 0,
        count: int = 1,
        transactional: bool = False,
    ) -> str:
        before = dict(self.states.entries), self.states.first_unstable_offset
        with pytest.raises(error) as caught:
            self.append(sequence, epoch=epoch, count=count, transactional=transactional)
        assert (dict(self.states.entries), self.states.first_unstable_offset) == before
        return str(caught.value)


def test_basic_id_mapping() -> None:
    """testBasicIdMapping."""
    log = Log()
    log.append(0)
    log.append(1)
    log.refuses(OutOfOrderSequence, 0, count=2)
    log.refuses(OutOfOrderSequence, 4)
    log.append(0, epoch=1)
    log.refuses(InvalidProducerEpoch, 2, epoch=0)
    assert log.entry().epoch == 1


@pytest.mark.parametrize("first", [0, 1, 99, LAST])
def test_an_unknown_producer_may_begin_anywhere(first: int) -> None:
    """testNoValidationOnFirstEntryWhenLoadingLog, KIP-360."""
    log = Log()
    log.append(first, epoch=5)
    assert log.entry().last_sequence == first


def test_producer_sequence_wrap_around() -> None:
    """testProducerSequenceWrapAround, ...WithWrapAroundBatchRecord, ...InvalidWrapAround."""
    log = Log()
    log.append(LAST)
    log.refuses(OutOfOrderSequence, 1)
    log.append(0)
    log = Log()
    log.append(LAST - 1, count=4)
    assert log.entry().last_sequence == 1
    assert log.entry().batches[0].first_sequence == LAST - 1
    assert log.append(LAST - 1, count=4) is not None, "a duplicate is found across the wrap"
    log.append(2)


def test_duplicate_appends() -> None:
    """UnifiedLogTest.testDuplicateAppends: five batches are kept, and only a whole one is a duplicate."""
    log = Log()
    for sequence in range(6):
        log.append(sequence, timestamp_ms=1000 + sequence)
    log.append(6, count=3, timestamp_ms=1006)
    end = log.end
    assert log.append(6, count=3) == KeptBatch(8, 8, 2, 1006)
    assert log.end == end
    log.refuses(OutOfOrderSequence, 7, count=2)
    log.refuses(OutOfOrderSequence, 6, count=2)
    log.refuses(OutOfOrderSequence, 6, count=4)
    duplicate = log.append(2)
    assert duplicate == KeptBatch(2, 2, 0, 1002)
    assert (duplicate.first_offset, duplicate.last_offset) == (2, 2)
    log.refuses(OutOfOrderSequence, 1)
    log.append(9)


def test_a_duplicate_is_of_the_same_epoch() -> None:
    log = Log()
    log.append(0)
    log.append(0, epoch=1)
    assert log.end == 2
    log.refuses(InvalidProducerEpoch, 0, epoch=0)


def test_only_clients_have_duplicates_and_sequences() -> None:
    """UnifiedLogTest.testDuplicateAppendToFollower, testAcceptAppendWithSequenceGapsOnReplica,
    testAcceptAppendWithoutProducerStateOnReplica, testSequenceNotValidatedForGroupMetadataTopic."""
    log = Log()
    for sequence in (7, 7, 70, 3):
        assert log.append(sequence, origin=REPLICATION) is None
    assert (log.end, log.entry().last_sequence) == (4, 3)
    for _ in range(2):
        assert log.append(-1, producer_id=9, origin=COORDINATOR, transactional=True) is None
    assert log.entry(9).last_sequence == -1


def test_a_replica_takes_an_older_epoch_and_notes_it() -> None:
    log = Log()
    log.append(0, epoch=5, origin=REPLICATION)
    prepared, _ = log.prepare(0, epoch=4, origin=REPLICATION)
    assert "epoch 4" in prepared.notes[0]
    with pytest.raises(InvalidProducerEpoch):
        log.append(0, epoch=4, origin=COORDINATOR)


def test_prepare_does_not_mutate() -> None:
    """testPrepareUpdateDoesNotMutate."""
    log = Log()
    log.append(0)
    before = log.entry(), log.states.end_offset, log.states.snapshot_bytes()
    log.prepare(1, transactional=True)
    log.prepare(0, producer_id=2)
    assert (log.entry(), log.states.end_offset, log.states.snapshot_bytes()) == before
    assert 2 not in log.states.entries
    assert log.unstable() is None


def test_a_new_epoch_begins_at_zero() -> None:
    """testRejectNonZeroSequenceForDirectEpochBump, UnifiedLogTest.testNonZeroSequenceOnFirstAppendNonZeroEpoch."""
    log = Log()
    log.append(0)
    text = log.refuses(OutOfOrderSequence, 5, epoch=1)
    assert "sequence 5" in text
    assert "epoch 1" in text
    log.append(0, epoch=1)
    assert len(log.entry().batches) == 1


def test_control_record_bumps_producer_epoch() -> None:
    """testControlRecordBumpsProducerEpoch, testOutOfSequenceAfterControlRecordEpochBump."""
    log = Log()
    log.append(0)
    log.append(1)
    log.end_transaction(epoch=1)
    assert (log.entry().epoch, log.entry().batches) == (1, ())
    log.refuses(OutOfOrderSequence, 2, epoch=1)
    log.refuses(OutOfOrderSequence, 2, epoch=2)
    log.append(0, epoch=1)
    log.append(0, epoch=2)


def test_a_marker_of_the_same_epoch_keeps_the_sequences() -> None:
    log = Log()
    log.append(0, transactional=True)
    log.end_transaction()
    log.append(1, transactional=True)
    assert log.entry().last_sequence == 1


def test_append_empty_control_batch() -> None:
    """testAppendEmptyControlBatch: it makes the producer known, and nothing else."""
    log = Log()
    log.append(0, producer_id=1, epoch=3, transactional=True)
    for producer_id in (1, 2):
        batch = write_data_batch(
            [],
            base_offset=50,
            last_offset=50,
            max_timestamp_ms=999,
            producer_id=producer_id,
            producer_epoch=7,
            transactional=True,
            control=True,
        )
        header = read_data_header(batch)
        log.states.apply(log.states.prepare([header], batch, origin=REPLICATION), 51)
    assert log.entry(1).epoch == 3
    assert log.entry(1).has_transaction
    assert log.entry(2) == ProducerEntry(2)


def test_several_producers_in_one_append() -> None:
    """UnifiedLogTest.testMultipleProducersWithDuplicatesInSingleAppend on a follower, testMultipleProducerIds..."""
    batches, headers, offset = [], [], 0
    for producer_id, sequence in ((1, 0), (2, 0), (1, 1), (2, 1), (1, 1)):
        batch = write_data_batch(
            [Record(offset, 5, None, b"")],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
        )
        batches.append(batch)
        headers.append(read_data_header(batch))
        offset += 1
    log = Log()
    log.states.apply(log.states.prepare(headers, b"".join(batches), origin=REPLICATION), offset)
    assert log.entry(1).batches == tuple(
        KeptBatch(sequence, at, 0, 5) for sequence, at in ((0, 0), (1, 2), (1, 4))
    )
    assert log.entry(2).last_sequence == 1
    # A leader checks each batch against what the ones before it leave.
    known = Log()
    known.end_transaction(producer_id=1)
    known.states.prepare(headers[:4], b"".join(batches[:4]), origin=CLIENT)
    with pytest.raises(OutOfOrderSequence, match="sequence 1"):
        known.states.prepare(headers, b"".join(batches), origin=CLIENT)


def test_batches_without_a_producer_change_nothing_but_the_end() -> None:
    """UnifiedLogTest.testProducerIdMapOffsetUpdatedForNonIdempotentData."""
    log = Log()
    log.append(-1, producer_id=-1, epoch=-1)
    assert log.states.is_empty()
    assert log.states.end_offset == 1


def test_compacted_batches_keep_their_last_sequence() -> None:
    """UnifiedLogTest.testRebuildProducerIdMapWithCompactedData, ...WithEmptyCompactedBatch."""
    log = Log()
    records = [Record(1, 5, b"k", b""), Record(2, 5, b"l", b"")]
    sparse = write_data_batch(
        records, base_offset=0, last_offset=3, producer_id=1, producer_epoch=0, base_sequence=0
    )
    empty = write_data_batch(
        [],
        base_offset=4,
        last_offset=5,
        max_timestamp_ms=8,
        producer_id=2,
        producer_epoch=0,
        base_sequence=0,
    )
    headers = [read_data_header(sparse), read_data_header(empty)]
    log.states.apply(log.states.prepare(headers, sparse + empty, origin=REPLICATION), 6)
    assert log.entry(1).batches == (KeptBatch(3, 3, 3, 5),)
    assert log.entry(2).batches == (KeptBatch(1, 5, 1, 8),)


def test_pid_expiration() -> None:
    """testPidExpirationTimeout, testProducersWithOngoingTransactionsDontExpire: by the time of the records."""
    log = Log()
    log.append(0, producer_id=1, timestamp_ms=1000)
    log.append(0, producer_id=2, timestamp_ms=1001)
    log.append(0, producer_id=3, timestamp_ms=5, transactional=True)
    assert log.states.expire(1000 + DAY_MS - 1) == []
    assert log.states.expire(1000 + DAY_MS) == [1]
    assert sorted(log.states.entries) == [2, 3]
    log.end_transaction(producer_id=3, timestamp_ms=2000)
    assert log.states.expire(2000 + DAY_MS - 1) == [2]
    assert log.states.expire(2000 + DAY_MS) == [3]
    log.append(77, producer_id=1)


def test_transactional_and_plain_batches_do_not_mix() -> None:
    log = Log()
    log.append(0, transactional=True)
    log.refuses(InvalidTxnState, 1)
    log.end_transaction()
    log.append(1)


def test_first_unstable_offset() -> None:
    """testFirstUnstableOffset, UnifiedLogTest.testLastStableOffsetWithMixedProducerData."""
    log = Log()
    assert log.unstable() is None
    log.append(0, producer_id=1, transactional=True)
    log.append(0, producer_id=2, transactional=True)
    log.append(0, producer_id=3)
    assert log.unstable() == 0
    assert log.stable() == 0
    log.end_transaction(producer_id=1)
    assert log.unstable() == 0, "the marker at 3 is not replicated"
    log.states.on_high_watermark(3)
    assert log.unstable() == 0
    log.states.on_high_watermark(4)
    assert (log.unstable(), log.stable()) == (1, 1)
    log.end_transaction(producer_id=2, commit=False)
    log.states.on_high_watermark(5)
    assert log.unstable() is None
    assert log.stable() == 5


def test_a_transaction_that_ends_first_still_holds_the_offset_of_an_older_one() -> None:
    log = Log()
    for producer_id in (1, 2, 3):
        log.append(0, producer_id=producer_id, transactional=True)
    log.end_transaction(producer_id=3)
    log.end_transaction(producer_id=1)
    log.states.on_high_watermark(4)
    assert log.unstable() == 0, "3's marker is replicated, 1's is not"
    log.states.on_high_watermark(5)
    assert log.unstable() == 1


def test_last_stable_offset_of_a_completed_transaction() -> None:
    """testLastStableOffsetCompletedTxn: what the index notes goes by other producers' open transactions."""
    log = Log()
    for producer_id in (1, 2, 3):
        log.append(0, producer_id=producer_id, transactional=True)
    log.end_transaction(producer_id=2, commit=False)
    log.end_transaction(producer_id=1, commit=False)
    log.end_transaction(producer_id=3, commit=False)
    assert log.aborted == [AbortedEntry(2, 1, 3, 0), AbortedEntry(1, 0, 4, 2), AbortedEntry(3, 2, 5, 6)]


def test_only_aborted_transactions_with_data_are_indexed() -> None:
    log = Log()
    log.end_transaction(commit=False)
    log.append(0, transactional=True)
    log.end_transaction(commit=True)
    assert log.aborted == []
    assert log.end_transaction(commit=False).completed == ()
    assert log.entry().last_timestamp_ms == 100


def test_last_stable_offset_stays_within_the_log() -> None:
    """UnifiedLogTest.testLastStableOffsetDoesNotExceedLogStartOffset..."""
    assert last_stable_offset(None, 3, 10) == 10
    assert last_stable_offset(5, 3, 10) == 5
    assert last_stable_offset(12, 3, 10) == 10
    assert last_stable_offset(0, 5, 10) == 5


def test_the_log_start_drops_ended_transactions() -> None:
    log = Log()
    log.append(0, transactional=True)
    log.end_transaction(commit=False)
    log.states.on_log_start(1)
    assert log.unstable() == 0
    log.states.on_log_start(2)
    assert log.unstable() is None
    assert 1 in log.states.entries, "producers outlive their data (KAFKA-7190)"
    log.states.on_log_start(40)
    assert log.states.end_offset == 40


@pytest.mark.parametrize("version", [0, 1])
def test_a_legacy_marker_may_have_the_known_epoch(version: int) -> None:
    log = Log()
    log.append(0, epoch=3, transactional=True)
    with pytest.raises(InvalidProducerEpoch):
        log.end_transaction(epoch=2, transaction_version=version)
    log.end_transaction(epoch=3, transaction_version=version)


def test_a_marker_of_transaction_version_2_has_a_greater_epoch() -> None:
    """KAFKA-19446. A replica, which does not know the version, takes both."""
    log = Log()
    log.append(0, epoch=3, transactional=True)
    for epoch in (2, 3):
        with pytest.raises(InvalidProducerEpoch):
            log.end_transaction(epoch=epoch, transaction_version=2)
    log.end_transaction(epoch=4, transaction_version=2)
    assert (log.entry().epoch, log.entry().batches) == (4, ())
    prepared = log.end_transaction(epoch=3, origin=REPLICATION, transaction_version=2)
    assert len(prepared.notes) == 1


def test_a_marker_that_is_sent_again_is_taken() -> None:
    """KAFKA-19999: the answer was lost, or the coordinator was restarted. It ends no transaction a second time."""
    log = Log()
    log.append(0, epoch=3, transactional=True)
    first = log.end_transaction(commit=False, epoch=4, transaction_version=2)
    again = log.end_transaction(commit=False, epoch=4, transaction_version=2)
    assert (len(first.completed), len(again.completed)) == (1, 0)
    assert len(log.aborted) == 1
    log.append(0, epoch=4, transactional=True)
    with pytest.raises(InvalidProducerEpoch):
        log.end_transaction(epoch=4, transaction_version=2)


def test_coordinator_fencing() -> None:
    """ProducerStateManagerTest.testCoordinatorFencing, ...FencedAfterReload (KAFKA-9144 for replicas)."""
    log = Log()
    log.end_transaction(coordinator_epoch=5)
    with pytest.raises(TransactionCoordinatorFenced) as caught:
        log.end_transaction(coordinator_epoch=4)
    assert caught.value.error_code is ErrorCode.transaction_coordinator_fenced
    reloaded = Log(end=1)
    reloaded.states.load_snapshot(log.states.snapshot_bytes(), offset=1, now_ms=0)
    with pytest.raises(TransactionCoordinatorFenced):
        reloaded.end_transaction(coordinator_epoch=4)
    prepared = reloaded.end_transaction(coordinator_epoch=4, origin=REPLICATION)
    assert "coordinator epoch 4" in prepared.notes[0]
    assert reloaded.entry().coordinator_epoch == 4
    log.end_transaction(coordinator_epoch=5)


def test_a_marker_that_cannot_be_read() -> None:
    batch = write_data_batch(
        [Record(0, 5, b"\0\0\0\2", b"\0\0\0\0\0\0")],
        producer_id=1,
        producer_epoch=0,
        transactional=True,
        control=True,
    )
    with pytest.raises(CorruptRecord):
        ProducerStates().prepare([read_data_header(batch)], batch, origin=COORDINATOR)


def test_has_late_transaction() -> None:
    """testHasLateTransaction, ...InitializedAfterReload: by the producer of the oldest open transaction."""
    log = Log(ProducerStates(max_transaction_timeout_ms=1000))
    late = 1000 + 5 * 60 * 1000
    assert not log.states.has_late_transaction(10**9)
    log.append(0, producer_id=1, timestamp_ms=50, transactional=True)
    log.append(0, producer_id=2, timestamp_ms=10, transactional=True)
    assert not log.states.has_late_transaction(50 + late)
    assert log.states.has_late_transaction(51 + late)
    reloaded = ProducerStates(max_transaction_timeout_ms=1000)
    reloaded.load_snapshot(log.states.snapshot_bytes(), offset=2, now_ms=0)
    assert reloaded.has_late_transaction(51 + late)
    log.end_transaction(producer_id=1)
    assert log.states.has_late_transaction(11 + late)
    log.states.truncate(0)
    assert not log.states.has_late_transaction(10**9)


def test_snapshot_round_trip() -> None:
    """testReadWriteSnapshot, testRecoverFromSnapshotUnfinishedTransaction, ...FinishedTransaction, ...Empty..."""
    log = Log()
    for sequence in range(4):
        log.append(sequence, producer_id=1)
    log.append(9, producer_id=2, epoch=4, count=3, transactional=True, timestamp_ms=77)
    log.append(0, producer_id=3, transactional=True)
    log.end_transaction(producer_id=3, epoch=1, coordinator_epoch=6)
    data = log.states.snapshot_bytes()
    assert len(data) == 10 + 3 * 46
    states = ProducerStates()
    states.load_snapshot(data, offset=8, now_ms=0)
    assert states.end_offset == 8
    assert states.entries == {
        1: ProducerEntry(1, 0, -1, 100, -1, (KeptBatch(3, 3, 0, 100),)),
        2: ProducerEntry(2, 4, -1, 77, 4, (KeptBatch(11, 6, 2, 77),)),
        3: ProducerEntry(3, 1, 6, 100, -1, ()),
    }
    assert states.first_unstable_offset == 4, "ended transactions are not stored"
    assert states.snapshot_bytes() == data
    again = Log(states, end=8)
    again.append(12, producer_id=2, epoch=4, transactional=True)
    again.append(4, producer_id=1)
    again.refuses(OutOfOrderSequence, 2)


def test_an_empty_state_is_a_snapshot_of_ten_bytes() -> None:
    data = ProducerStates().snapshot_bytes()
    assert data.hex() == "000148674bc700000000"
    assert decode_snapshot(data) == []


def test_expired_producers_are_not_loaded() -> None:
    """testRemoveExpiredPidsOnReload, testLoadFromSnapshotRetainsNonExpiredProducers."""
    log = Log()
    log.append(0, producer_id=1, timestamp_ms=1)
    log.append(0, producer_id=2, timestamp_ms=2)
    log.append(0, producer_id=3, timestamp_ms=1, transactional=True)
    states = ProducerStates()
    states.load_snapshot(log.states.snapshot_bytes(), offset=3, now_ms=1 + DAY_MS)
    assert sorted(states.entries) == [2, 3]


def test_a_damaged_snapshot_changes_nothing() -> None:
    """testLoadFromEmptySnapshotFile, testLoadFromTruncatedSnapshotFile, testLoadFromCorruptSnapshot."""
    log = Log()
    log.append(0)
    data = log.states.snapshot_bytes()
    damaged = [data[:length] for length in range(len(data))]
    damaged += [data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :] for at in range(len(data))]
    damaged += [data + b"\0", b"\0\2" + data[2:]]
    states = ProducerStates()
    states.load_snapshot(data, offset=1, now_ms=0)
    for each in damaged:
        with pytest.raises(DecodeError):
            states.load_snapshot(each, offset=9, now_ms=0)
    assert (states.end_offset, states.snapshot_bytes()) == (1, data)


def test_a_snapshot_that_says_more_entries_than_it_has() -> None:
    for count in (-1, 1, 2**31 - 1):
        body = struct.pack(">i", count)
        with pytest.raises(DecodeError, match="producers has"):
            decode_snapshot(struct.pack(">hI", 1, crc32c(body)) + body)


def test_many_entries_in_their_order() -> None:
    entries = [ProducerEntry(number, 1, 2, 3, -1, ()) for number in (5, 1, 99, 3)]
    assert decode_snapshot(encode_snapshot(entries)) == entries


def test_truncate() -> None:
    """testTruncateFullyAndStartAt."""
    log = Log()
    log.append(0, transactional=True)
    log.states.truncate(9)
    assert log.states.is_empty()
    assert (log.states.end_offset, log.unstable()) == (9, None)


class TestVerification:
    """KIP-890: the first batch of a transaction brings the guard of its verification."""

    def log(self) -> Log:
        return Log(ProducerStates(verifies_transactions=True))

    def guard(
        self, log: Log, *, sequence: int = 0, epoch: int = 0, bumps: bool = False, now_ms: int = 0
    ) -> VerificationGuard | None:
        return log.states.start_verification(
            1, sequence=sequence, epoch=epoch, supports_epoch_bump=bumps, now_ms=now_ms
        )

    def test_a_transactional_batch_needs_it(self) -> None:
        """UnifiedLogTest.testTransactionIsOngoingAndVerificationGuardTV2, ...AllowTransactionalAppend..."""
        log = self.log()
        log.refuses(InvalidTxnState, 0, transactional=True)
        log.append(0)
        log.append(0, epoch=1)
        guard = self.guard(log, epoch=1)
        assert guard is not None
        assert self.guard(log, epoch=1) is guard, "one guard lives until it has served"
        log.refuses(InvalidTxnState, 1, epoch=1, transactional=True)
        with pytest.raises(InvalidTxnState):
            log.append(1, epoch=1, transactional=True, guard=VerificationGuard())
        guard = self.guard(log, epoch=1)
        log.append(0, epoch=2, transactional=True, guard=guard)
        assert self.guard(log, epoch=2) is None, "the transaction is open"
        log.append(1, epoch=2, transactional=True)

    def test_a_marker_drops_it(self) -> None:
        """A late answer must not open a transaction that was ended meanwhile."""
        log = self.log()
        guard = self.guard(log)
        log.end_transaction(commit=False)
        with pytest.raises(InvalidTxnState):
            log.append(0, transactional=True, guard=guard)
        assert self.guard(log) is not guard

    def test_a_marker_of_transaction_version_2_leaves_the_next_ones(self) -> None:
        log = self.log()
        log.append(0, transactional=True, guard=self.guard(log, bumps=True))
        guard = self.guard(log, epoch=1, bumps=True)
        log.end_transaction(epoch=1, transaction_version=2)
        log.append(0, epoch=1, transactional=True, guard=guard)

    def test_an_older_epoch_is_refused_at_once(self) -> None:
        """KAFKA-18042, KAFKA-19690."""
        log = self.log()
        log.append(0, epoch=3)
        with pytest.raises(InvalidProducerEpoch):
            self.guard(log, epoch=2)
        log.refuses(InvalidProducerEpoch, 0, epoch=2, transactional=True)
        log.refuses(InvalidTxnState, 0, epoch=4, transactional=True)

    def test_replicas_and_markers_need_none(self) -> None:
        log = self.log()
        log.append(0, transactional=True, origin=REPLICATION)
        log.end_transaction()

    def test_a_higher_sequence_waits_for_the_lowest(self) -> None:
        """VerificationStateEntry: a retry of the lower sequence may come first."""
        log = self.log()
        guard = self.guard(log, sequence=5)
        self.guard(log, sequence=3)
        self.guard(log, sequence=9)
        for sequence in (4, 5, 9):
            with pytest.raises(OutOfOrderSequence):
                log.append(sequence, transactional=True, guard=guard)
        log.append(3, transactional=True, guard=guard)

    def test_a_higher_epoch_replaces_the_lowest_sequence(self) -> None:
        log = self.log()
        guard = self.guard(log, sequence=3)
        self.guard(log, sequence=8, epoch=1)
        self.guard(log, sequence=0, epoch=0)
        with pytest.raises(OutOfOrderSequence):
            log.append(9, epoch=1, transactional=True, guard=guard)
        log.append(8, epoch=1, transactional=True, guard=guard)

    def test_a_transaction_of_version_2_begins_at_zero(self) -> None:
        """testRejectNonZeroSequenceForTransactionsV2WithEmptyState, testAllowNonZeroSequenceForTransactionsV1..."""
        log = self.log()
        guard = self.guard(log, sequence=5, bumps=True)
        with pytest.raises(OutOfOrderSequence):
            log.append(5, transactional=True, guard=guard)
        legacy = self.log()
        legacy.append(5, transactional=True, guard=self.guard(legacy, sequence=5))

    def test_a_verification_without_answer_expires(self) -> None:
        log = self.log()
        guard = self.guard(log, now_ms=1000)
        log.states.expire(1000 + DAY_MS - 1)
        assert self.guard(log) is guard
        log.states.expire(1000 + DAY_MS)
        assert self.guard(log) is not guard
