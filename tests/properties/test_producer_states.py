"""Producers of a partition against a twin that is the plain list of its batches.

The twin computes everything from the list each time: what a producer may send next, which transactions are open, how
far committed records may be read, and what of a read was aborted. Sequences wrap, coordinators mark, high watermarks
lag, logs are truncated and read again from snapshots.
"""

import struct
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run

from kquorum.broker.log import producer_state
from kquorum.broker.log.errors import InvalidProducerEpoch, InvalidTxnState, LogError, OutOfOrderSequence
from kquorum.broker.log.partition_log import AppendOrigin
from kquorum.broker.log.producer_state import ProducerStates
from kquorum.broker.log.transactions import (
    AbortedEntry,
    CompletedTransaction,
    OpenTransactions,
    aborted_between,
    encode_entry,
    last_stable_offset,
)
from kquorum.wire.data_batch import (
    BatchHeader,
    Record,
    read_data_header,
    write_data_batch,
    write_transaction_marker,
)
from kquorum.wire.transaction_markers import TransactionMarker

PRODUCERS = st.integers(0, 2)
LAST = 2**31 - 1


@dataclass(frozen=True)
class Batch:
    """One batch of the twin's log; a marker has no sequence."""

    first: int
    last: int
    producer_id: int
    epoch: int
    sequence: int
    is_transactional: bool
    is_marker: bool = False
    is_abort: bool = False

    @property
    def last_sequence(self) -> int:
        return (self.sequence + self.last - self.first) & LAST

    def encoded(self) -> bytes:
        if self.is_marker:
            return write_transaction_marker(
                TransactionMarker(not self.is_abort, 0),
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                timestamp_ms=5,
                offset=self.first,
            )
        records = [Record(offset, 5, b"k", b"v") for offset in range(self.first, self.last + 1)]
        return write_data_batch(
            records,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
            transactional=self.is_transactional,
        )


@dataclass(frozen=True)
class Transaction:
    """From its first batch to its marker; `marker` is None while it is open."""

    producer_id: int
    first: int
    marker: int | None
    is_abort: bool


@dataclass
class Twin:
    """The log as a list."""

    batches: list[Batch] = field(default_factory=list)

    @property
    def end(self) -> int:
        return self.batches[-1].last + 1 if self.batches else 0

    def epoch(self, producer_id: int) -> int:
        return max((each.epoch for each in self.batches if each.producer_id == producer_id), default=-1)

    def kept(self, producer_id: int) -> list[Batch]:
        """The data batches of the producer's epoch, as far as that epoch goes back."""
        epoch, kept = self.epoch(producer_id), []
        for batch in self.batches:
            if batch.producer_id == producer_id and batch.epoch == epoch and not batch.is_marker:
                kept.append(batch)
        return kept

    def transactions(self) -> list[Transaction]:
        begun: dict[int, int] = {}
        found = []
        for batch in self.batches:
            if batch.is_marker:
                if batch.producer_id in begun:
                    first = begun.pop(batch.producer_id)
                    found.append(Transaction(batch.producer_id, first, batch.first, batch.is_abort))
            elif batch.is_transactional:
                begun.setdefault(batch.producer_id, batch.first)
        return found + [Transaction(producer_id, first, None, False) for producer_id, first in begun.items()]

    def is_open(self, producer_id: int) -> bool:
        return any(each.producer_id == producer_id and each.marker is None for each in self.transactions())

    def stable(self, high_watermark: int) -> int:
        unstable = [
            each.first for each in self.transactions() if each.marker is None or each.marker >= high_watermark
        ]
        return min([*unstable, high_watermark])

    def verdict(self, batch: Batch) -> type[LogError] | Batch | None:
        """What a leader says of a client's batch: an error, the batch that it repeats, or nothing."""
        epoch, kept = self.epoch(batch.producer_id), self.kept(batch.producer_id)
        if batch.epoch == epoch:
            for old in kept[-5:]:
                if (old.sequence, old.last_sequence) == (batch.sequence, batch.last_sequence):
                    return old
        if batch.epoch < epoch:
            return InvalidProducerEpoch
        if epoch >= 0:
            due = (kept[-1].last_sequence + 1) & LAST if kept and batch.epoch == epoch else 0
            if batch.sequence != due:
                return OutOfOrderSequence
        if self.is_open(batch.producer_id) and not batch.is_transactional:
            return InvalidTxnState
        return None


class ProducersAndTwin(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.twin = Twin()
        self.states = ProducerStates()
        self.index: list[AbortedEntry] = []
        self.high_watermark = 0
        self.snapshots: dict[int, bytes] = {}

    def _append(self, batch: Batch, origin: AppendOrigin) -> None:
        data = batch.encoded()
        prepared = self.states.prepare([read_data_header(data)], data, origin=origin)
        self.index += self.states.apply(prepared, batch.last + 1)

    @rule(
        producer_id=PRODUCERS,
        epoch_step=st.sampled_from([0, 0, 0, 0, 1, -1]),
        step=st.sampled_from([0, 0, 0, 0, 0, 0, 1, -1, -2]),
        size=st.integers(1, 4),
        transactional=st.booleans(),
        fresh=st.sampled_from([0, 7, LAST - 3]),
    )
    def produce(
        self, producer_id: int, epoch_step: int, step: int, size: int, transactional: bool, fresh: int
    ) -> None:
        epoch, kept = self.twin.epoch(producer_id), self.twin.kept(producer_id)
        sequence = fresh if epoch < 0 else 0
        if kept and not epoch_step:
            sequence = (kept[-1].last_sequence + 1 + step) & LAST
        batch = Batch(
            self.twin.end,
            self.twin.end + size - 1,
            producer_id,
            max(epoch + epoch_step, 0),
            sequence,
            transactional or self.twin.is_open(producer_id),
        )
        self._check(batch)

    @precondition(lambda self: self.twin.batches)
    @rule(data=st.data(), size=st.sampled_from([None, None, 1, 2]))
    def produce_again(self, data: st.DataObject, size: int | None) -> None:
        """A batch of before, or its first records alone: a retry, or a client that is broken."""
        sent = [each for each in self.twin.batches if not each.is_marker]
        old = data.draw(st.sampled_from(sent)) if sent else None
        if old is not None:
            last = self.twin.end + (old.last - old.first if size is None else size - 1)
            self._check(
                Batch(self.twin.end, last, old.producer_id, old.epoch, old.sequence, old.is_transactional)
            )

    def _check(self, batch: Batch) -> None:
        verdict = self.twin.verdict(batch)
        data = batch.encoded()
        if isinstance(verdict, type):
            with pytest.raises(verdict):
                self.states.prepare([read_data_header(data)], data, origin=AppendOrigin.CLIENT)
        elif verdict is not None:
            prepared = self.states.prepare([read_data_header(data)], data, origin=AppendOrigin.CLIENT)
            assert prepared.duplicate is not None
            assert (prepared.duplicate.first_offset, prepared.duplicate.last_offset) == (
                verdict.first,
                verdict.last,
            )
        else:
            self._append(batch, AppendOrigin.CLIENT)
            self.twin.batches.append(batch)

    @rule(producer_id=PRODUCERS, is_abort=st.booleans(), bump=st.sampled_from([0, 0, 1]))
    def mark(self, producer_id: int, is_abort: bool, bump: int) -> None:
        end, epoch = self.twin.end, max(self.twin.epoch(producer_id) + bump, 0)
        marker = Batch(end, end, producer_id, epoch, -1, True, is_marker=True, is_abort=is_abort)
        self._append(marker, AppendOrigin.COORDINATOR)
        self.twin.batches.append(marker)

    @rule(step=st.integers(0, 6))
    def advance_high_watermark(self, step: int) -> None:
        self.high_watermark = min(self.high_watermark + step, self.twin.end)
        self.states.on_high_watermark(self.high_watermark)

    @rule()
    def take_snapshot(self) -> None:
        """Of replicated transactions alone, as ended ones are not in it."""
        self.high_watermark = self.twin.end
        self.states.on_high_watermark(self.high_watermark)
        self.snapshots[self.twin.end] = self.states.snapshot_bytes()

    @rule(data=st.data())
    def truncate_and_read_again(self, data: st.DataObject) -> None:
        """The log loses its tail above the high watermark; its state is made from a snapshot and the batches."""
        ends = [0, *(batch.last + 1 for batch in self.twin.batches)]
        end = data.draw(st.sampled_from([each for each in ends if each >= self.high_watermark] or [ends[-1]]))
        self.twin.batches = [batch for batch in self.twin.batches if batch.last < end]
        self.snapshots = {offset: each for offset, each in self.snapshots.items() if offset <= end}
        self.index = [entry for entry in self.index if entry.last_offset < end]
        offset = data.draw(st.sampled_from([0, *self.snapshots]))
        states = ProducerStates()
        if offset in self.snapshots:
            states.load_snapshot(self.snapshots[offset], offset=offset, now_ms=0)
        written = []
        for batch in self.twin.batches:
            if batch.first >= offset:
                encoded = batch.encoded()
                prepared = states.prepare(
                    [read_data_header(encoded)], encoded, origin=AppendOrigin.REPLICATION
                )
                written += states.apply(prepared, batch.last + 1)
        assert written == [entry for entry in self.index if entry.last_offset >= offset]
        states.on_high_watermark(self.high_watermark)
        if offset:
            # The twin keeps five batches of each producer, a snapshot one: go on with the state that read all.
            for producer_id, entry in states.entries.items():
                known = self.states.entries.get(producer_id)
                if known is not None and self.states.end_offset == end:
                    assert entry.batches[-1:] == known.batches[-1:]
                    assert (entry.epoch, entry.transaction_first_offset) == (
                        known.epoch,
                        known.transaction_first_offset,
                    )
            states = ProducerStates()
            for batch in self.twin.batches:
                encoded = batch.encoded()
                states.apply(
                    states.prepare([read_data_header(encoded)], encoded, origin=AppendOrigin.REPLICATION),
                    batch.last + 1,
                )
            states.on_high_watermark(self.high_watermark)
        self.states = states

    @invariant()
    def no_record_is_stored_twice_or_out_of_order(self) -> None:
        for producer_id in range(3):
            by_epoch: dict[int, list[Batch]] = {}
            for batch in self.twin.batches:
                if batch.producer_id == producer_id and not batch.is_marker:
                    by_epoch.setdefault(batch.epoch, []).append(batch)
            for batches in by_epoch.values():
                for before, after in pairwise(batches):
                    assert after.sequence == (before.last_sequence + 1) & LAST

    @invariant()
    def committed_reads_end_where_the_twin_says(self) -> None:
        found = last_stable_offset(self.states.first_unstable_offset, 0, self.high_watermark)
        assert found == self.twin.stable(self.high_watermark)

    @invariant()
    def a_read_gets_each_aborted_transaction_that_it_overlaps(self) -> None:
        bound = self.twin.stable(self.high_watermark)
        aborted = [each for each in self.twin.transactions() if each.is_abort]
        for start in range(0, bound, 3):
            for end in {start + 1, start + 3, bound}:
                found, _ = aborted_between(b"".join(map(encode_entry, self.index)), start, min(end, bound))
                assert {(each.producer_id, each.first_offset) for each in found} == {
                    (each.producer_id, each.first)
                    for each in aborted
                    if each.first < min(end, bound) and each.marker is not None and each.marker >= start
                }

    @invariant()
    def a_snapshot_is_read_back(self) -> None:
        data = self.states.snapshot_bytes()
        assert producer_state.encode_snapshot(producer_state.decode_snapshot(data)) == data


RUNS = settings(max_examples=60, stateful_step_count=40, deadline=None)
HUNTS = settings(RUNS, max_examples=2_000, phases=[Phase.generate], report_multiple_bugs=False, database=None)


def test_producers_agree_with_the_list_of_their_batches() -> None:
    run(ProducersAndTwin, settings=RUNS)


def _nothing(*_: object) -> None:
    return None


def _forget_at_once(self: OpenTransactions, completed: CompletedTransaction) -> None:
    self._open.pop(completed.first_offset)


def _stable_after_marker(_: OpenTransactions, completed: CompletedTransaction) -> int:
    return completed.last_offset + 1


def _by_count(header: BatchHeader) -> int:
    return header.base_sequence + header.record_count - 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cls", "method", "broken"),
    [
        pytest.param(producer_state._Append, "_check_sequence", _nothing, id="sequences are not checked"),
        pytest.param(producer_state._Append, "_check_epoch", _nothing, id="epochs are not checked"),
        pytest.param(ProducerStates, "_duplicate_of", _nothing, id="a repeated batch is not recognised"),
        pytest.param(
            OpenTransactions,
            "complete",
            _forget_at_once,
            id="an ended transaction is not awaited below the marker",
        ),
        pytest.param(
            OpenTransactions,
            "last_stable_offset_after",
            _stable_after_marker,
            id="the index does not mind other open transactions",
        ),
        pytest.param(
            OpenTransactions,
            "forget_replicated",
            _nothing,
            id="replicated transactions hold readers back for ever",
        ),
        pytest.param(BatchHeader, "last_sequence", property(_by_count), id="sequences do not wrap"),
    ],
)
def test_the_twin_finds_a_planted_mistake(
    cls: type, method: str, broken: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cls, method, broken)
    with pytest.raises((AssertionError, LogError, pytest.fail.Exception, struct.error)):
        run(ProducersAndTwin, settings=HUNTS)
