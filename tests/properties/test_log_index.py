"""Offsets, epochs, flushes and reconciliation of three logs, against twins that are plain lists of records.

A twin holds one entry for each record: its epoch and a number that no other record has. Leaders change at random and
with no regard to votes, so the logs diverge more wildly than elections would let them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from unittest.mock import patch

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run

from kquorum.raft import log_index
from kquorum.raft.log_index import LogIndex, truncation_target
from kquorum.raft.ports import LogSummary
from kquorum.wire.log_batch import LogBatch, OffsetAndEpoch

LOGS = st.integers(0, 2)


@dataclass(frozen=True)
class Entry:
    """A record of the twin."""

    epoch: int
    number: int


@dataclass
class Flush:
    """One that has begun: what it will report, and the records that it makes durable."""

    end_offset: int
    truncations: int
    records: tuple[Entry, ...]


@dataclass
class Twin:
    """`records` begin at offset 0, also where the log begins at `start`: a snapshot holds the ones before."""

    start: int = 0
    records: list[Entry] = field(default_factory=list)
    durable: tuple[Entry, ...] = ()
    flushed_offset: int = 0
    running: list[Flush] = field(default_factory=list)

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """What a snapshot holds counts as well; below that nothing is known."""
        known = [entry.epoch for entry in self.records if entry.epoch <= epoch]
        if not known:
            return OffsetAndEpoch(self.start, 0)
        return OffsetAndEpoch(sum(entry.epoch <= max(known) for entry in self.records), max(known))


def shared(left: list[Entry] | tuple[Entry, ...], right: list[Entry] | tuple[Entry, ...]) -> int:
    """How many records two logs have in common from the start."""
    length = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        length += 1
    return length


class LogIndexMachine(RuleBasedStateMachine):
    make: Callable[[LogSummary], LogIndex] = LogIndex

    @initialize(first=LOGS, start=st.sampled_from([0, 0, 3]), epoch=st.integers(1, 2))
    def begin(self, first: int, start: int, epoch: int) -> None:
        """Logs that begin at `start` have a snapshot of that end, whose last record is of `epoch`."""
        self.start = start
        self.snapshots: tuple[OffsetAndEpoch, ...] = (OffsetAndEpoch(start, epoch),) if start else ()
        self.epoch = epoch if start else 0
        held = [Entry(epoch, -number) for number in range(1, start + 1)]
        self.twins = [Twin(start, list(held), tuple(held), start) for _ in range(3)]
        self.logs = [self.open(twin) for twin in self.twins]
        self.leader = first
        self.has_leader = False
        self.numbers = 0

    def open(self, twin: Twin) -> LogIndex:
        epochs: dict[int, int] = {}
        for offset, entry in enumerate(twin.records):
            if offset >= self.start:
                epochs.setdefault(entry.epoch, offset)
        return type(self).make(
            LogSummary(self.start, len(twin.records), tuple(epochs.items()), snapshots=self.snapshots)
        )

    # Writing

    def append(self, log: int, epoch: int, numbers: list[int]) -> None:
        twin = self.twins[log]
        base_offset = len(twin.records)
        twin.records.extend(Entry(epoch, number) for number in numbers)
        self.logs[log].append(LogBatch(base_offset, len(twin.records) - 1, epoch, False, b""))

    @rule(leader=LOGS, epochs=st.integers(1, 3))
    def elect(self, leader: int, epochs: int) -> None:
        """Elections may fail, so epochs may be passed over; a leader begins with a record of its own."""
        self.leader = leader
        self.has_leader = True
        self.epoch += epochs
        self.write(1)

    @precondition(lambda self: self.has_leader)
    @rule(records=st.integers(1, 4))
    def write(self, records: int) -> None:
        self.append(self.leader, self.epoch, list(range(self.numbers, self.numbers + records)))
        self.numbers += records

    @rule(log=LOGS, gap=st.sampled_from([-1, 1]))
    def a_gap_is_our_bug(self, log: int, gap: int) -> None:
        with pytest.raises(AssertionError):
            self.logs[log].append(LogBatch(len(self.twins[log].records) + gap, 99, self.epoch, False, b""))

    @rule(log=LOGS)
    def an_older_epoch_is_our_bug(self, log: int) -> None:
        index = self.logs[log]
        if index.last_epoch:
            end = index.log_end_offset
            with pytest.raises(AssertionError):
                index.append(LogBatch(end, end, index.last_epoch - 1, False, b""))

    @rule(log=LOGS, data=st.data())
    def crash(self, log: int, data: st.DataObject) -> None:
        """Of what was not durable, any part of the tail is lost; what is found is made durable again.

        A leader that comes back does not lead on: it could write others in the place of records that it lost.
        """
        self.has_leader = self.has_leader and log != self.leader
        twin = self.twins[log]
        kept = data.draw(st.integers(shared(twin.durable, twin.records), len(twin.records)))
        twin.records = twin.records[:kept]
        twin.durable, twin.flushed_offset, twin.running = tuple(twin.records), kept, []
        self.logs[log] = self.open(twin)

    # Flushing

    @rule(log=LOGS)
    def flush_begins(self, log: int) -> None:
        twin, index = self.twins[log], self.logs[log]
        twin.running.append(Flush(len(twin.records), index.truncations, tuple(twin.records)))

    @rule(log=LOGS, data=st.data())
    def flush_ends(self, log: int, data: st.DataObject) -> None:
        """In any order: the reports of two flushes may overtake each other."""
        twin, index = self.twins[log], self.logs[log]
        if not twin.running:
            return
        flush = twin.running.pop(data.draw(st.integers(0, len(twin.running) - 1)))
        if shared(flush.records, twin.records) >= shared(twin.durable, twin.records):
            twin.durable = flush.records
        index.flushed(flush.end_offset, flush.truncations)
        if flush.truncations == index.truncations:
            twin.flushed_offset = max(twin.flushed_offset, flush.end_offset)

    # Replicating

    def cut(self, log: int, end_offset: int) -> None:
        """As `Replica.truncate_to` does; the driver cuts before any flush that it begins later."""
        twin, index = self.twins[log], self.logs[log]
        index.truncate_to(end_offset)
        index.truncations += 1
        del twin.records[end_offset:]
        twin.flushed_offset = min(twin.flushed_offset, end_offset)

    @precondition(lambda self: self.has_leader)
    @rule(log=LOGS, records=st.integers(0, 6), is_flushing=st.booleans())
    def fetch(self, log: int, records: int, is_flushing: bool) -> None:
        """Reconcile, perhaps with a flush under way, then take over some of what the leader has more."""
        if log == self.leader:
            return
        if is_flushing:
            self.flush_begins(log)
        leader, follower = self.twins[self.leader], self.twins[log]
        common = shared(leader.records, follower.records)
        self.reconcile(log)
        assert follower.records == leader.records[: len(follower.records)], "not a prefix of the leader's log"
        assert len(follower.records) == common, "more was cut than had diverged"
        for entry in leader.records[common : common + records]:
            self.append(log, entry.epoch, [entry.number])

    def reconcile(self, log: int) -> None:
        leader, index = self.logs[self.leader], self.logs[log]
        rounds = 0
        while True:
            before, last_epoch = index.log_end_offset, index.last_epoch
            assert log_index.snapshot_needed(leader, before, last_epoch) is None
            diverging = log_index.diverging_point(leader, before, last_epoch)
            if diverging is None:
                return
            target = log_index.truncation_target(index, diverging)
            assert target < before, f"round {rounds} cut nothing"
            self.cut(log, target)
            rounds += 1
            assert rounds <= self.epoch + 1

    # What must hold after every step

    @invariant()
    def the_offsets_are_those_of_the_list(self) -> None:
        for index, twin in zip(self.logs, self.twins, strict=True):
            assert index.log_end_offset == len(twin.records)
            assert index.last_epoch == (twin.records[-1].epoch if twin.records else 0)
            own = list(enumerate(twin.records))[self.start :]
            starts = {entry.epoch: offset for offset, entry in reversed(own)}
            assert index.epochs == tuple(sorted(starts.items()))

    @invariant()
    def nothing_counts_as_flushed_that_a_crash_could_take(self) -> None:
        for index, twin in zip(self.logs, self.twins, strict=True):
            assert index.flushed_offset <= shared(twin.durable, twin.records)
            assert index.flushed_offset == twin.flushed_offset
            assert index.log_start_offset <= index.flushed_offset <= index.log_end_offset

    @invariant()
    def every_epoch_ends_where_the_list_says(self) -> None:
        for index, twin in zip(self.logs, self.twins, strict=True):
            for epoch in range(self.epoch + 2):
                assert index.end_offset_for_epoch(epoch) == twin.end_offset_for_epoch(epoch), epoch

    @invariant()
    def a_fetch_is_valid_for_exactly_the_prefixes(self) -> None:
        if self.epoch == 0:
            return
        leader = self.logs[self.leader]
        records = self.twins[self.leader].records
        for twin in self.twins:
            for offset in range(len(twin.records) + 1):
                last_epoch = twin.records[offset - 1].epoch if offset else 0
                if offset < self.start:
                    assert log_index.snapshot_needed(leader, offset, last_epoch) == self.snapshots[-1]
                    continue
                told = log_index.diverging_point(leader, offset, last_epoch)
                assert (told is None) == (twin.records[:offset] == records[:offset]), (offset, last_epoch)


class FlushesThroughATruncation(LogIndex):
    """The planted bug: a flush that began before a truncation acknowledges what was written after it."""

    def flushed(self, end_offset: int, truncations: int) -> None:
        super().flushed(end_offset, self.truncations)


class KeepsTheEpochAtTheCut(LogIndex):
    """The planted bug: an epoch whose first record was cut away is still known."""

    def truncate_to(self, end_offset: int) -> None:
        epochs, starts = list(self._epochs), list(self._starts)
        super().truncate_to(end_offset)
        kept = sum(start <= end_offset for start in starts)
        self._epochs, self._starts = epochs[:kept], starts[:kept]


class StaysFlushed(LogIndex):
    """The planted bug: a truncation leaves the flushed offset above the log's end."""

    def truncate_to(self, end_offset: int) -> None:
        flushed_offset = self.flushed_offset
        super().truncate_to(end_offset)
        self.flushed_offset = flushed_offset


class EndsTheEpochAtTheLogsEnd(LogIndex):
    """The planted bug: every epoch lasts to the end of the log."""

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        return OffsetAndEpoch(self.log_end_offset, super().end_offset_for_epoch(epoch).epoch)


def check(machine: type[LogIndexMachine], examples: int, *phases: Phase) -> None:
    run(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            database=None,
            phases=phases,
            # What is planted must be found by every run; what is not planted is looked for in other places each time.
            derandomize=Phase.shrink not in phases,
            report_multiple_bugs=False,
        ),
    )


def test_any_three_logs_behave_like_plain_lists() -> None:
    check(LogIndexMachine, 150, Phase.generate, Phase.shrink)


@pytest.mark.parametrize(
    "mutant", [FlushesThroughATruncation, KeepsTheEpochAtTheCut, StaysFlushed, EndsTheEpochAtTheLogsEnd]
)
def test_a_planted_bug_is_seen(mutant: type[LogIndex]) -> None:
    class Machine(LogIndexMachine):
        make = mutant

    with pytest.raises(AssertionError):
        check(Machine, 500, Phase.generate)


def never_diverges(log: LogIndex, fetch_offset: int, last_fetched_epoch: int) -> OffsetAndEpoch | None:
    """Only offsets are compared: two logs of the same length are taken for the same log."""
    end = log.end_offset_for_epoch(last_fetched_epoch)
    return end if log.log_end_offset < fetch_offset else None


def cut_one_record_too_many(log: LogIndex, diverging: OffsetAndEpoch) -> int:
    return max(0, truncation_target(log, diverging) - 1)


def cut_where_the_leader_says(log: LogIndex, diverging: OffsetAndEpoch) -> int:
    """The follower's own epochs are not looked at."""
    return min(diverging.offset, log.log_end_offset)


@pytest.mark.parametrize(
    "mutation",
    [
        partial(patch.object, log_index, "diverging_point", never_diverges),
        partial(patch.object, log_index, "truncation_target", cut_one_record_too_many),
        partial(patch.object, log_index, "truncation_target", cut_where_the_leader_says),
    ],
    ids=["never diverges", "cuts too much", "cuts too little"],
)
def test_a_bug_planted_in_the_reconciliation_is_seen(mutation: Callable[[], object]) -> None:
    with mutation(), pytest.raises(AssertionError):  # type: ignore[attr-defined]
        check(LogIndexMachine, 500, Phase.generate)
